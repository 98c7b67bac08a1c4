import { base58 } from '@scure/base'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeEach, describe, expect, test } from 'vitest'
import { type CountersignClient, createCountersignClient } from '../../../src/browser/client/index.ts'
import { rainbowKit, signInForm, siwx } from '../../../src/browser/client/siwe.ts'
import { startService } from '../../support/service.ts'
import { makeSolanaWallet } from '../../support/solana.ts'
import { codeOf, connectClient, MapStorage } from './support.ts'

const newAccount = () => privateKeyToAccount(generatePrivateKey())
const account = newAccount()
const other = newAccount()
const solanaMainnet = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'

let url: string
let client: CountersignClient
beforeEach(async () => {
  url = (await startService({ adapters: ['ethereum', 'solana'], nonceTtlSeconds: 60 })).url
  client = createCountersignClient({ baseUrl: url, storage: new MapStorage() })
})

const signedIn = async () => (await client.getCurrentSession())?.address

describe('the steps for any stack', () => {
  test.each([
    ['REST', () => client],
    ['Connect', () => connectClient({ baseUrl: url, storage: new MapStorage() })],
  ])('sign in with an account that is chosen after the nonce, over %s', async (_, made) => {
    const used = made()
    const { issueNonce, createMessage, verify } = signInForm(used)
    const nonce = await issueNonce()
    const named = { address: account.address, chainId: 10 }
    const signature = await account.signMessage({ message: await createMessage(nonce, named) })
    const { session } = await verify(nonce, { ...named, signature })
    expect(session.address).toBe(account.address)
    expect((await used.getCurrentSession())?.address).toBe(account.address)
  })

  test('write an address without a checksum with the one of EIP-55', async () => {
    const { issueNonce, createMessage, verify } = signInForm(client)
    const nonce = await issueNonce()
    const named = { address: account.address.toLowerCase(), chainId: '1' }
    const message = await createMessage(nonce, named)
    expect(message.split('\n')[1]).toBe(account.address)
    await verify(nonce, { ...named, signature: await account.signMessage({ message }) })
    expect(await signedIn()).toBe(account.address)
  })

  test('sign in with Solana, by a signature as bytes', async () => {
    const wallet = makeSolanaWallet()
    const { issueNonce, createMessage, verify } = signInForm(client)
    const nonce = await issueNonce({ adapterId: 'solana' })
    const named = { address: wallet.address, chainId: 'mainnet' }
    const signature = Buffer.from(wallet.sign(await createMessage(nonce, named)), 'hex')
    await verify(nonce, { ...named, signature })
    expect(await signedIn()).toBe(wallet.address)
  })
})

describe('the adapter for RainbowKit', () => {
  const input = (nonce: string, signer = account) => ({ nonce, address: signer.address, chainId: 1 })

  test('signs in and out', async () => {
    const adapter = rainbowKit(client)
    const message = await adapter.createMessage(input(await adapter.getNonce()))
    expect(await adapter.verify({ message, signature: await account.signMessage({ message }) })).toBe(true)
    expect(await signedIn()).toBe(account.address)
    await adapter.signOut()
    expect(await signedIn()).toBeUndefined()
  })

  test('keeps the forms of several nonces apart', async () => {
    const adapter = rainbowKit(client)
    const nonces = await Promise.all([adapter.getNonce(), adapter.getNonce(), adapter.getNonce()])
    const signers = [account, other, newAccount()]
    const messages = await Promise.all(nonces.map((nonce, at) => adapter.createMessage(input(nonce, signers[at]))))
    for (const [at, message] of messages.entries()) {
      expect(message).toContain(`Nonce: ${nonces[at]}`)
      const signature = await signers[at]!.signMessage({ message })
      expect(await adapter.verify({ message, signature })).toBe(true)
      expect(await signedIn()).toBe(signers[at]!.address)
    }
  })

  test('writes the text with a new nonce after a try that failed, as RainbowKit keeps the old one', async () => {
    const adapter = rainbowKit(client)
    const nonce = await adapter.getNonce()
    const message = await adapter.createMessage(input(nonce))
    const wrong = await other.signMessage({ message })
    expect(await codeOf(adapter.verify({ message, signature: wrong }))).toBe('SIGNATURE_INVALID')
    expect(await codeOf(adapter.verify({ message, signature: wrong }))).toBe('NONCE_NOT_FOUND')
    const second = await adapter.createMessage(input(nonce))
    expect(second).not.toContain(nonce)
    expect(await adapter.verify({ message: second, signature: await account.signMessage({ message: second }) })).toBe(
      true,
    )
  })

  test('knows no nonce of another tab, and keeps only the last twenty', async () => {
    const [tab, otherTab] = [rainbowKit(client), rainbowKit(client)]
    const message = await tab.createMessage(input(await tab.getNonce()))
    const signature = await account.signMessage({ message })
    expect(await codeOf(otherTab.verify({ message, signature }))).toBe('NONCE_NOT_FOUND')
    for (let more = 0; more < 20; more++) await tab.getNonce()
    expect(await codeOf(tab.verify({ message, signature }))).toBe('NONCE_NOT_FOUND')
  })

  test('sends a text that the page changed to the service, which refuses it', async () => {
    const adapter = rainbowKit(client)
    const message = await adapter.createMessage(input(await adapter.getNonce()))
    const changed = message.replace(account.address, other.address)
    const signature = await account.signMessage({ message: changed })
    expect(await codeOf(adapter.verify({ message: changed, signature }))).toBe('SIGNATURE_INVALID')
  })
})

describe('SIWX of AppKit', () => {
  const evm = { accountAddress: account.address as string, chainId: 'eip155:8453' as const }

  test('signs in over the text, is a session of that account only, and ends it', async () => {
    const config = siwx(client)
    const data = await config.createMessage({ ...evm, accountAddress: account.address.toLowerCase() })
    expect(data).toMatchObject({ ...evm, domain: new URL(url).host, uri: url, version: '1', statement: 'Sign in.' })
    const message = data.toString()
    await config.addSession({ data, message, signature: await account.signMessage({ message }) })
    for (const chainId of ['eip155:8453', 'eip155:1']) {
      const sessions = await config.getSessions(chainId, account.address.toLowerCase())
      expect(sessions.map((session) => session.data.chainId)).toEqual([chainId])
    }
    expect(await config.getSessions('eip155:1', other.address)).toEqual([])
    expect(await config.getSessions(solanaMainnet, account.address)).toEqual([])
    await config.revokeSession('eip155:1', other.address)
    expect(await signedIn()).toBe(account.address)
    await config.revokeSession('eip155:1', account.address)
    expect(await signedIn()).toBeUndefined()
  })

  test('signs in with Solana, by a signature in base58', async () => {
    const wallet = makeSolanaWallet()
    const config = siwx(client)
    const data = await config.createMessage({ accountAddress: wallet.address, chainId: solanaMainnet })
    const signature = base58.encode(Buffer.from(wallet.sign(data.toString()), 'hex'))
    await config.addSession({ data, message: data.toString(), signature })
    expect(await config.getSessions(solanaMainnet, wallet.address)).toHaveLength(1)
    expect(await config.getSessions('eip155:1', wallet.address)).toEqual([])
    await config.setSessions([])
    expect(await signedIn()).toBeUndefined()
  })

  test('signs in with a wallet that fills its address in, and leaves out a session over another text', async () => {
    const config = siwx(client)
    const data = await config.createMessage({ ...evm, accountAddress: '<<AccountAddress>>' })
    const message = data.toString().replace('<<AccountAddress>>', account.address)
    const session = { data: { ...data, accountAddress: account.address }, message }
    const foreign = `${message}\n- urn:recap:e30`
    await config.setSessions([
      { ...session, message: foreign, signature: await account.signMessage({ message: foreign }) },
    ])
    expect(await signedIn()).toBeUndefined()
    await config.setSessions([{ ...session, signature: await account.signMessage({ message }) }])
    expect(await signedIn()).toBe(account.address)
  })

  test('is not a session if the service cannot be asked', async () => {
    const away = siwx(createCountersignClient({ baseUrl: 'http://localhost:1', storage: new MapStorage() }))
    expect(await away.getSessions('eip155:1', account.address)).toEqual([])
  })
})
