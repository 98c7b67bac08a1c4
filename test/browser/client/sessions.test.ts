import { describe, expect, test } from 'vitest'
import { createCountersignClient } from '../../../src/browser/client/index.ts'
import { verifyAccessToken } from '../../../src/integrations/backend/index.ts'
import { hasPart } from '../../support/optional.ts'
import { RedisServer } from '../../support/redis-server.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { CuttableProxy } from './proxy.ts'
import { codeOf, connectClient, MapStorage, pageWallet } from './support.ts'

function browser(baseUrl: string, wallet = makeWallet()) {
  const storage = new MapStorage()
  return { storage, client: createCountersignClient({ baseUrl, storage, wallet: pageWallet(wallet), timeoutMs: 3000 }) }
}

test('the stored token speaks for the user until the sign-out', async () => {
  const { url } = await startService()
  const { client, storage } = browser(url)
  expect(await client.getCurrentSession()).toBeUndefined()
  const { session } = await client.signInWallet()
  expect(await client.getCurrentSession()).toMatchObject({ id: session.id, current: true })
  await client.signOut()
  expect(storage.entries.size).toBe(0)
  expect(await client.getCurrentSession()).toBeUndefined()
})

test('a user sees and ends the other sessions', async () => {
  const { url } = await startService()
  const wallet = makeWallet()
  const [phone, laptop, tablet] = [browser(url, wallet), browser(url, wallet), browser(url, wallet)] as const
  for (const { client } of [phone, laptop, tablet]) await client.signInWallet()

  const sessions = await laptop.client.listSessions()
  expect(sessions.map(({ current }) => current).sort()).toEqual([false, false, true])
  const phoneId = (await phone.client.getCurrentSession())?.id as string
  await laptop.client.revokeSession(phoneId)
  expect(await codeOf(laptop.client.revokeSession(phoneId))).toBe('SESSION_NOT_FOUND')
  expect(await laptop.client.revokeOtherSessions()).toBe(1)
  expect(await tablet.client.getCurrentSession()).toBeUndefined()
  expect((await laptop.client.listSessions()).map(({ current }) => current)).toEqual([true])
})

test.each([
  ['Connect', connectClient],
  ['REST', createCountersignClient],
])('the client over %s gets access tokens for backends', async (_protocol, createClient) => {
  const { url } = await startService({ accessTokens: { audiences: ['orders'] } })
  const client = createClient({ baseUrl: url, storage: new MapStorage(), wallet: pageWallet(makeWallet()) })
  expect(await codeOf(client.issueAccessToken('orders'))).toBe('SESSION_REQUIRED')
  const { session } = await client.signInWallet()
  const { accessToken, expiresAt } = await client.issueAccessToken('orders')
  expect(await verifyAccessToken(accessToken, { issuer: url, audience: 'orders' })).toMatchObject({
    userId: session.userId,
    sessionId: session.id,
    expiresAt,
  })
  expect(await codeOf(client.issueAccessToken('other'))).toBe('AUDIENCE_UNKNOWN')
  expect(await client.getCurrentSession()).toBeDefined()
})

test('a token that the service calls invalid is dropped, unless another took its place meanwhile', async () => {
  const { url } = await startService()
  const { client, storage } = browser(url)
  storage.setItem('countersign.token', 'css_old.wrong')
  expect(await codeOf(client.listSessions())).toBe('SESSION_INVALID')
  expect(storage.entries.size).toBe(0)

  const slow = createCountersignClient({
    baseUrl: url,
    storage,
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      storage.setItem('countersign.token', 'css_new.of another tab')
      return response
    },
  })
  storage.setItem('countersign.token', 'css_old.wrong')
  expect(await codeOf(slow.listSessions())).toBe('SESSION_INVALID')
  expect(client.readStoredToken()).toBe('css_new.of another tab')
})

test('the token is sent where a session authorises, and nowhere else', async () => {
  const { url } = await startService()
  const sent: string[] = []
  const recording: typeof fetch = (input, init) => {
    if (new Headers(init?.headers).has('authorization')) sent.push(String(input).split('/').at(-1) as string)
    return fetch(input, init)
  }
  const wallet = pageWallet(makeWallet())
  const client = createCountersignClient({ baseUrl: url, storage: new MapStorage(), wallet, fetch: recording })
  await client.signInWallet()
  await client.signInWallet()
  await client.cancelOrder(await client.startOrder({ kind: 'login' }))
  expect(sent).toEqual([])
  await client.listSessions()
  expect(sent).toEqual(['sessions'])
})

test('a call that gets no answer ends when its time is up', async () => {
  const { url } = await startService()
  const proxy = await CuttableProxy.start(url)
  const client = createCountersignClient({ baseUrl: proxy.url, timeoutMs: 300 })
  proxy.holdAnswers()
  expect(await codeOf(client.getCurrentSession())).toBe('NETWORK')
  const controller = new AbortController()
  const call = client.listSessions({ signal: controller.signal })
  controller.abort()
  expect(await codeOf(call)).toBe('ABORTED')
})

describe('a sign-out that the service did not confirm', () => {
  test('keeps the token when no answer comes', async () => {
    const { url } = await startService()
    const proxy = await CuttableProxy.start(url)
    // The proxy's port is not the service's: the origin of a browser says where the page is from.
    const { client, storage } = browser(proxy.url)
    const direct = createCountersignClient({ baseUrl: url, storage, wallet: pageWallet(makeWallet()) })
    await direct.signInWallet()
    void proxy.refuse()
    expect(await codeOf(client.signOut())).toBe('NETWORK')
    expect(await codeOf(client.getCurrentSession())).toBe('NETWORK')
    expect(client.readStoredToken()).toBeDefined()
    proxy.forward()
    await client.signOut()
    expect(client.readStoredToken()).toBeUndefined()
  })

  test.runIf(hasPart('redis-server'))('keeps the token when the store is away', async () => {
    await using redis = await RedisServer.start()
    const { url } = await startService({ store: redis.url, secret: 'a secret for tests, not for anything else' })
    const { client } = browser(url)
    await client.signInWallet()
    await redis.kill()
    expect(await codeOf(client.signOut())).toBe('STORE_UNAVAILABLE')
    expect(await codeOf(client.getCurrentSession())).toBe('STORE_UNAVAILABLE')
    expect(client.readStoredToken()).toBeDefined()
  })
})
