import { describe, expect, test } from 'vitest'
import {
  CountersignClientError,
  type CountersignClientOptions,
  clearStoredToken,
  createCountersignClient,
  readStoredToken,
  signInWithWallet,
  type Wallet,
} from '../../../src/browser/client/index.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { codeOf, connectClient, MapStorage, pageWallet } from './support.ts'

const wallet = makeWallet()

async function setUp(options: CountersignClientOptions = {}) {
  const storage = new MapStorage()
  const { url } = await startService({ appName: 'Tally' })
  const client = createCountersignClient({ baseUrl: url, storage, wallet: pageWallet(wallet), ...options })
  return { url, storage, client }
}

const ways: { way: string; signIn: (url: string, options: CountersignClientOptions) => Promise<unknown> }[] = [
  {
    way: 'signInWallet over Connect',
    signIn: (baseUrl, options) => connectClient({ baseUrl, ...options }).signInWallet(),
  },
  {
    way: 'signInWallet over REST',
    signIn: (baseUrl, options) => createCountersignClient({ baseUrl, ...options }).signInWallet(),
  },
  { way: 'signInWithWallet', signIn: (baseUrl, options) => signInWithWallet(fetch, { baseUrl, ...options }) },
]

describe.each(ways)('$way', ({ signIn }) => {
  test('signs in and keeps the token', async () => {
    const { url, storage } = await setUp()
    const result = await signIn(url, { storage, wallet: pageWallet(wallet) })
    expect(result).toEqual({
      ok: true,
      token: expect.stringMatching(/^css_/),
      session: expect.objectContaining({
        adapterId: 'nimiq',
        publicKeyHex: wallet.publicKeyHex,
        address: wallet.address,
        createdAt: expect.any(Number),
        current: true,
      }),
    })
    const token = storage.getItem('countersign.token')
    expect(token).toBe((result as { token: string }).token)
    expect((await rest(url, '/session', undefined, { authorization: `Bearer ${token}` })).status).toBe(200)
  })

  test('leaves the storage alone, but for an older token, with autoPersistToken false', async () => {
    const { url, storage } = await setUp()
    storage.setItem('countersign.token', 'of an earlier session')
    await signIn(url, { storage, wallet: pageWallet(wallet), autoPersistToken: false })
    expect(storage.entries.size).toBe(0)
  })

  test('keeps the token under tokenStorageKey', async () => {
    const { url, storage } = await setUp()
    await signIn(url, { storage, wallet: pageWallet(wallet), tokenStorageKey: 'mine' })
    const options = { storage, tokenStorageKey: 'mine' }
    expect(readStoredToken(options)).toMatch(/^css_/)
    expect(readStoredToken({ storage })).toBeUndefined()
    clearStoredToken(options)
    expect(readStoredToken(options)).toBeUndefined()
  })

  test('sends the address with requestAddressBeforeVerify', async () => {
    const { url, storage } = await setUp()
    const other: Wallet = { ...pageWallet(wallet), getAddress: () => makeWallet().address }
    expect(await codeOf(signIn(url, { storage, wallet: other, requestAddressBeforeVerify: true }))).toBe(
      'ADDRESS_MISMATCH',
    )
    await signIn(url, { storage, wallet: pageWallet(wallet), requestAddressBeforeVerify: true })
  })

  test('is refused when the application name differs from the service\u2019s', async () => {
    const { url, storage } = await setUp()
    const options = { storage, wallet: pageWallet(wallet) }
    expect(await codeOf(signIn(url, { ...options, appName: 'Another' }))).toBe('APP_NAME_MISMATCH')
    await signIn(url, { ...options, appName: 'Tally' })
  })

  test('says what is wrong with the wallet\u2019s proof', async () => {
    const { url, storage } = await setUp()
    const signature = wallet.sign('another message')
    const lying: Wallet = { sign: () => ({ publicKey: wallet.publicKeyHex, signature }) }
    const error = await signIn(url, { storage, wallet: lying }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(CountersignClientError)
    expect(error).toMatchObject({ code: 'SIGNATURE_INVALID', name: 'CountersignClientError' })
    expect(storage.entries.size).toBe(0)
  })

  test('has a code for a service that is not there, and for one that is another', async () => {
    const storage = new MapStorage()
    const { url } = await startService()
    const options = { storage, wallet: pageWallet(wallet) }
    expect(await codeOf(signIn('http://127.0.0.1:1', options))).toBe('NETWORK')
    const fetch = async () => new Response('<html>Welcome</html>', { headers: { 'content-type': 'text/html' } })
    expect(await codeOf(createCountersignClient({ baseUrl: url, fetch, ...options }).signInWallet())).toBe(
      'UNEXPECTED_ANSWER',
    )
    expect(await codeOf(signInWithWallet(fetch, { baseUrl: url, ...options }))).toBe('UNEXPECTED_ANSWER')
  })

  test('passes on how long to wait', async () => {
    const { url } = await startService({ rateLimit: true })
    const options = { storage: new MapStorage(), wallet: pageWallet(wallet) }
    let failure: unknown
    for (let call = 0; call < 500 && failure === undefined; call++) {
      await signIn(url, options).catch((thrown: unknown) => {
        failure = thrown
      })
    }
    expect(failure).toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: expect.any(Number) })
    expect((failure as CountersignClientError).retryAfterMs).toBeGreaterThan(0)
  })
})

test('a challenge that the page kept while a wallet took its place is signed in with, once', async () => {
  const { client, url } = await setUp()
  const challenge = await client.issueNonce()
  const requests: string[] = []
  const later = createCountersignClient({
    baseUrl: url,
    fetch: (input, init) => {
      requests.push(input)
      return fetch(input, init)
    },
  })
  const { session } = await later.signInWallet({ wallet: pageWallet(wallet), challenge })
  expect(session.address).toBe(wallet.address)
  expect(requests.filter((request) => /nonce/i.test(request))).toEqual([])
  expect(await codeOf(later.signInWallet({ wallet: pageWallet(wallet), challenge }))).toBe('NONCE_NOT_FOUND')
})

test('a sign-in can be aborted while the wallet has no answer', async () => {
  const { client } = await setUp()
  const controller = new AbortController()
  const asked = Promise.withResolvers<void>()
  const silent: Wallet = {
    sign: () => {
      asked.resolve()
      return new Promise(() => {})
    },
  }
  const running = client.signInWallet({ wallet: silent, signal: controller.signal })
  await asked.promise
  controller.abort('enough')
  await expect(running).rejects.toMatchObject({ code: 'ABORTED', cause: 'enough' })
})

describe('a storage that does not work', () => {
  const broken = {
    getItem: () => {
      throw new DOMException('denied', 'SecurityError')
    },
    setItem: () => {
      throw new DOMException('full', 'QuotaExceededError')
    },
    removeItem: () => {
      throw new DOMException('denied', 'SecurityError')
    },
  }

  test('breaks nothing: the token lives as long as the page', async () => {
    const { client } = await setUp({ storage: broken })
    expect(client.readStoredToken()).toBeUndefined()
    const { token } = await client.signInWallet()
    expect(client.readStoredToken()).toBe(token)
    expect((await client.getCurrentSession())?.address).toBe(wallet.address)
    await client.signOut()
    expect(client.readStoredToken()).toBeUndefined()
    expect(await client.getCurrentSession()).toBeUndefined()
  })
})

test('a developer\u2019s mistake is a TypeError', () => {
  for (const baseUrl of [
    'auth.example',
    'ftp://auth.example',
    'https://auth.example?x=1',
    'https://user@auth.example',
  ]) {
    expect(() => createCountersignClient({ baseUrl })).toThrow(TypeError)
  }
})
