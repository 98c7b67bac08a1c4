import { base58 } from '@scure/base'
import nacl from 'tweetnacl'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import {
  createCountersignClient,
  type OrderChallenge,
  signInWithWallet,
  type Wallet,
} from '../../../src/browser/client/index.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { codeOf, connectClient, MapStorage, pageWallet } from './support.ts'

const adapterId = 'ethereum'

/** A wallet as Ethereum's are: it answers with the signature alone. Keeps what it was asked for. */
class EvmWallet implements Wallet {
  readonly adapterId = adapterId
  readonly asked: string[] = []
  account = privateKeyToAccount(generatePrivateKey())
  chainId = '1'
  async getAccount() {
    this.asked.push('account')
    return { address: this.account.address, chainId: this.chainId }
  }
  async sign(message: string): Promise<string> {
    this.asked.push(message)
    return await this.account.signMessage({ message })
  }
}

async function setUp() {
  const { url } = await startService({ adapters: ['nimiq', 'ethereum', 'solana'] })
  const requests: string[] = []
  const counting: typeof fetch = (input, init) => {
    requests.push(new URL(String(input)).pathname.split('/').at(-1) as string)
    return fetch(input, init)
  }
  const wallet = new EvmWallet()
  const options = { baseUrl: url, storage: new MapStorage(), fetch: counting, wallet }
  return { url, wallet, requests, client: createCountersignClient(options), options }
}

describe('a wallet that has accounts', () => {
  test('signs in over the form for its account, which is asked for first', async () => {
    const { url, wallet, client, requests } = await setUp()
    const { session } = await client.signInWallet()
    expect(session).toMatchObject({ adapterId, address: wallet.account.address, publicKeyHex: '' })
    const [first, form, ...more] = wallet.asked
    expect([first, more]).toEqual(['account', []])
    expect(form?.split('\n').slice(0, 2)).toEqual([
      `${new URL(url).host} wants you to sign in with your Ethereum account:`,
      wallet.account.address,
    ])
    expect(form).toContain('Chain ID: 1\n')
    expect(requests).toEqual(['nonce', 'verify'])
  })

  test('signs in over Connect, and without a client', async () => {
    const { url, wallet, options } = await setUp()
    expect((await connectClient(options).signInWallet()).session.address).toBe(wallet.account.address)
    const signedIn = await signInWithWallet(fetch, { baseUrl: url, storage: new MapStorage(), wallet })
    expect(signedIn.session.address).toBe(wallet.account.address)
  })

  test('uses a nonce that was prepared for its account, and no other', async () => {
    const { wallet, client, requests } = await setUp()
    await client.prepareSignIn()
    await client.signInWallet()
    expect(requests).toEqual(['nonce', 'nonce', 'verify'])

    const account = { adapterId, address: wallet.account.address, chainId: '1' }
    for (const [chainId, nonces] of [
      ['1', 1],
      ['8453', 2],
    ] as const) {
      requests.length = 0
      wallet.chainId = chainId
      await client.prepareSignIn({ account })
      await client.signInWallet()
      expect(requests.filter((name) => name === 'nonce')).toHaveLength(nonces)
      expect(wallet.asked.at(-1)).toContain(`Chain ID: ${chainId}\n`)
    }
    await client.prepareSignIn({ account })
    await client.signInWallet({ wallet: pageWallet(makeWallet()) })
  })

  test('approves a login order over the form, a sign order over the text with its account', async () => {
    const { wallet, client } = await setUp()
    for (const kind of ['login', 'sign'] as const) {
      const order = await client.startOrder({ kind })
      const claim = await client.claimOrder(order.claimUrl)
      const challenge = await client.getOrderChallenge(claim)
      expect(await client.approveOrder(claim, { challenge })).toMatchObject({ status: 'approved' })
      const signed = wallet.asked.at(-1)!
      if (kind === 'login') expect(signed).toContain('wants you to sign in with your Ethereum account')
      else expect(signed).toBe(`${challenge.message}\nAccount: eip155:1:${wallet.account.address}`)
      const finalized = await client.finalizeOrder(order)
      if (finalized.kind === 'sign') expect(finalized.proofArtifact).toMatchObject({ message: signed, adapterId })
      if (finalized.kind === 'login') expect(finalized.session.address).toBe(wallet.account.address)
    }
  })

  test('signs the text that the page has read for its account, without being asked again', async () => {
    const { wallet, client, requests } = await setUp()
    const account = { adapterId, ...(await wallet.getAccount()) }
    const claim = await client.claimOrder(await client.startOrder({ kind: 'login' }))
    const challenge: OrderChallenge = await client.getOrderChallenge(claim, { account })
    expect(challenge.message).toContain(wallet.account.address)
    wallet.asked.length = 0
    requests.length = 0
    const approving = client.approveOrder(claim, { challenge, account })
    expect(wallet.asked).toEqual([challenge.message])
    expect(await approving).toMatchObject({ status: 'approved' })
    expect(requests).toEqual(['approve'])
  })

  test('cannot sign with another account than it named', async () => {
    const { wallet, client } = await setUp()
    const switching: Wallet = {
      adapterId,
      getAccount: () => wallet.getAccount(),
      sign: async (message) => {
        const other = privateKeyToAccount(generatePrivateKey())
        return { signature: await other.signMessage({ message }), address: other.address }
      },
    }
    expect(await codeOf(client.signInWallet({ wallet: switching }))).toBe('WALLET_WRONG_KEY')
    // Its word is not needed: the service sees it from the signature.
    const silent = {
      ...switching,
      sign: async (message: string) => ((await switching.sign(message)) as { signature: string }).signature,
    }
    expect(await codeOf(client.signInWallet({ wallet: silent }))).toBe('SIGNATURE_INVALID')
  })

  test('a wallet that has no account to name, fails or declines does not get a nonce', async () => {
    const { wallet, client, requests } = await setUp()
    const withAccount = (getAccount: () => unknown): Wallet =>
      ({ adapterId, getAccount, sign: (message: string) => wallet.sign(message) }) as Wallet
    const declined = withAccount(() => Promise.reject({ code: 4001, message: 'User rejected the request.' }))
    expect(await codeOf(client.signInWallet({ wallet: declined }))).toBe('WALLET_DECLINED')
    for (const account of [undefined, null, 'an address', { address: '' }, { address: '0x00', chainId: 1 }]) {
      expect(await codeOf(client.signInWallet({ wallet: withAccount(() => account) }))).toBe('WALLET_FAILED')
    }
    expect(requests).toEqual([])
    const controller = new AbortController()
    const silent = withAccount(() => {
      controller.abort()
      return new Promise(() => {})
    })
    expect(await codeOf(client.signInWallet({ wallet: silent, signal: controller.signal }))).toBe('ABORTED')
  })

  test('may learn its address only when it signs, if it is Solana\u2019s', async () => {
    const { client } = await setUp()
    const { publicKey, secretKey } = nacl.sign.keyPair()
    const address = base58.encode(publicKey)
    const solana: Wallet = {
      adapterId: 'solana',
      getAccount: () => ({ chainId: 'mainnet' }),
      sign: (message) => {
        // As wallets do with `solana:signIn`.
        const filled = message.replace('Solana account:\n\n', `Solana account:\n${address}\n`)
        return { publicKey, signature: nacl.sign.detached(new TextEncoder().encode(filled), secretKey), address }
      },
    }
    expect((await client.signInWallet({ wallet: solana })).session).toMatchObject({ adapterId: 'solana', address })
    for (const kind of ['login', 'sign'] as const) {
      const order = await client.startOrder({ kind })
      const claim = await client.claimOrder(order.claimUrl)
      const challenge = await client.getOrderChallenge(claim)
      expect(await client.approveOrder(claim, { challenge, wallet: solana })).toMatchObject({ status: 'approved' })
    }
  })
})
