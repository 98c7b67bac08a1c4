import { base58 } from '@scure/base'
import type { SolanaSignOffchainMessageInput } from '@solana/wallet-standard-features'
import { createSignInMessage, type SolanaSignInInputWithRequiredFields } from '@solana/wallet-standard-util'
import nacl from 'tweetnacl'
import { describe, expect, test } from 'vitest'
import { readWalletAnswer } from '../../../src/browser/client/wallet-answer.ts'
import { solanaWallet } from '../../../src/browser/wallets/index.ts'
import { isSolanaWallet } from '../../../src/browser/wallets/solana-wallet.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { formText } from '../../../src/core/wallet/sign-in-form.ts'
import { solana } from '../../../src/core/wallet/solana.ts'
import { codeOf } from '../client/support.ts'
import { declined, type SolanaOptions, TestSolana } from './wallets.ts'

const order = 'Tally requests approval\n\nAction: order.approve'

function connected(options?: SolanaOptions) {
  const provider = new TestSolana(options)
  return { provider, wallet: solanaWallet(provider) }
}

function formFor(address: string): string {
  return formText(
    'Solana',
    {
      domain: 'app.example',
      uri: 'https://app.example',
      statement: 'Sign in.',
      nonce: 'ab'.repeat(32),
      issuedAt: Date.UTC(2026, 0, 1),
      expiresAt: Date.UTC(2026, 0, 1, 0, 5),
      resources: ['urn:countersign:sha256:x'],
    },
    { address, chainId: 'mainnet' },
  )
}

interface Answer {
  readonly publicKey: Uint8Array
  readonly signature: Uint8Array
  readonly address: string
}

async function signed(wallet: { sign(text: string): unknown }, text: string): Promise<Answer> {
  return (await wallet.sign(text)) as Answer
}

function expectSignature({ publicKey, signature, address }: Answer, message: string | Uint8Array): void {
  const bytes = typeof message === 'string' ? new TextEncoder().encode(message) : message
  expect(base58.encode(publicKey)).toBe(address)
  expect(nacl.sign.detached.verify(bytes, signature, publicKey)).toBe(true)
}

const offChain = (message: Uint8Array, key: Uint8Array): Uint8Array =>
  Uint8Array.of(0xff, ...new TextEncoder().encode('solana offchain'), 1, 1, ...key, ...message)

describe('a wallet of Solana', () => {
  test('names its account and chain, and signs the form in with solana:signIn', async () => {
    const { provider, wallet } = connected()
    const { address, chainId } = await wallet.getAccount()
    expect({ address, chainId }).toEqual({ address: provider.account.address, chainId: 'mainnet' })
    const text = formFor(address)
    expectSignature(await signed(wallet, text), text)
    expect(provider.calls).toEqual(['connect', 'signIn'])
  })

  test('a wallet of Solana that has only signMessage signs the same text', async () => {
    const { provider, wallet } = connected({ without: ['solana:signIn'] })
    const text = formFor((await wallet.getAccount()).address)
    expectSignature(await signed(wallet, text), text)
    expect(provider.calls).toEqual(['connect', 'signMessage'])
  })

  test('signs the text of an order with signMessage, as it is', async () => {
    const { provider, wallet } = connected()
    await wallet.getAccount()
    expectSignature(await signed(wallet, order), order)
    expect(provider.calls).toEqual(['connect', 'signMessage'])
  })

  test('a wallet of Solana that was not asked for its account fills it into the form', async () => {
    for (const without of [[], ['solana:signIn']]) {
      const { provider, wallet } = connected({ without })
      expectSignature(await signed(wallet, formFor('')), formFor(provider.account.address))
    }
  })

  test('a wallet of Solana that signs in an off-chain envelope is believed, with either feature', async () => {
    for (const without of [[], ['solana:signIn']]) {
      const { provider, wallet } = connected({ without, frame: offChain })
      const text = formFor((await wallet.getAccount()).address)
      const [key] = provider.keys
      expectSignature(await signed(wallet, text), offChain(new TextEncoder().encode(text), key!.publicKey))
    }
  })

  test('a wallet of Solana that signs in with another text is asked for the message, and from then on at once', async () => {
    const { provider, wallet } = connected({ rewrite: ({ resources: _, ...input }) => input })
    const text = formFor((await wallet.getAccount()).address)
    for (const calls of [
      ['connect', 'signIn', 'signMessage'],
      ['connect', 'signIn', 'signMessage', 'signMessage'],
    ]) {
      expectSignature(await signed(wallet, text), text)
      expect(provider.calls).toEqual(calls)
    }
  })

  test.each<[string, (bytes: Uint8Array) => unknown]>([
    ['a Buffer that went through JSON', (bytes) => JSON.parse(JSON.stringify(Buffer.from(bytes)))],
    ['a Uint8Array that went through JSON', (bytes) => JSON.parse(JSON.stringify(bytes))],
    ['an ArrayBuffer', (bytes) => Uint8Array.from(bytes).buffer],
    ['an array', (bytes) => [...bytes]],
    ['an object with toBytes', (bytes) => ({ toBytes: () => bytes })],
  ])('whose key, text and signature are each %s signs the form and an order', async (_, form) => {
    const provider = new TestSolana()
    const [pair] = provider.keys
    const account = { ...provider.account, publicKey: form(pair!.publicKey) }
    const sign = (message: Uint8Array) => ({
      signedMessage: form(message),
      signature: form(nacl.sign.detached(message, pair!.secretKey)),
    })
    const wallet = solanaWallet({
      ...provider,
      accounts: [account],
      features: {
        ...provider.features,
        'solana:signIn': {
          signIn: async (input: SolanaSignInInputWithRequiredFields) => [
            { account, ...sign(createSignInMessage(input)) },
          ],
        },
        'solana:signMessage': {
          signMessage: async ({ message }: { message: Uint8Array }) => [sign(message)],
        },
      },
    })
    await wallet.getAccount()
    for (const text of [formFor(account.address), order]) {
      const { publicKeyHex, signatureHex } = readWalletAnswer(await wallet.sign(text), 'solana')
      const [signature, key] = [signatureHex, publicKeyHex].map((hex) => Buffer.from(hex, 'hex'))
      expect(nacl.sign.detached.verify(new TextEncoder().encode(text), signature!, key!)).toBe(true)
    }
  })

  test('whose answers have the signature behind the text signs the form and an order', async () => {
    const provider = new TestSolana()
    const [pair] = provider.keys
    const sign = (message: Uint8Array) => {
      const signature = nacl.sign.detached(message, pair!.secretKey)
      return { signature, signedMessage: Uint8Array.of(...message, ...signature) }
    }
    // As Mobile Wallet Adapter answers once it is connected.
    const signIn = () => Promise.reject(new Error('Sign in failed, no sign in result returned by wallet'))
    const signMessage = async ({ message }: { message: Uint8Array }) => [sign(message)]
    const own = { 'solana:signIn': { signIn }, 'solana:signMessage': { signMessage } }
    const wallet = solanaWallet({ ...provider, accounts: [], features: { ...provider.features, ...own } })
    const { address } = await wallet.getAccount()
    for (const text of [formFor(address), order]) expectSignature(await signed(wallet, text), text)
  })

  test.each([
    ['something before it', (message: Uint8Array) => Uint8Array.of(0x20, ...message)],
    ['something after it', (message: Uint8Array) => Uint8Array.of(...message, 0x0a)],
    ['something else', () => new Uint8Array(40)],
  ])('that signs the message with %s fails', async (_, frame) => {
    const { wallet } = connected({ frame })
    await wallet.getAccount()
    expect(await codeOf(signed(wallet, order))).toBe('WALLET_FAILED')
  })

  test('a wallet of Solana that cannot sign messages cannot sign an order', async () => {
    const { wallet } = connected({ without: ['solana:signMessage'] })
    await wallet.getAccount()
    expect(await codeOf(signed(wallet, order))).toBe('WALLET_FAILED')
  })

  test.each([
    [['solana:devnet', 'solana:testnet'], 'devnet'],
    [['solana:localnet'], 'localnet'],
    [['solana:of-its-own'], undefined],
  ] as const)('for the chains %j is on chain %s', async (chains, chainId) => {
    const { wallet } = connected({ chains })
    expect((await wallet.getAccount()).chainId).toBe(chainId)
  })

  test('whose accounts are not of Solana fails', async () => {
    const { wallet } = connected({ chains: ['sui:mainnet'] })
    expect(await codeOf(wallet.getAccount())).toBe('WALLET_FAILED')
  })

  test('a wallet of Solana that is connected already is not asked to connect', async () => {
    const { provider, wallet } = connected()
    provider.isConnected = true
    await wallet.getAccount()
    expect(provider.calls).toEqual([])
  })
})

describe('a wallet of Solana whose user has switched accounts', () => {
  test.each(['form', 'order'])('is not asked to sign the %s', async (kind) => {
    const { provider, wallet } = connected()
    const { address } = await wallet.getAccount()
    provider.switchAccount()
    const text = kind === 'form' ? formFor(address) : order
    expect(await codeOf(signed(wallet, text))).toBe('WALLET_WRONG_KEY')
    expect(provider.calls).toEqual(['connect'])
  })

  test.each(['form', 'order'])('while it asked, has not signed the %s for the page', async (kind) => {
    const { provider, wallet } = connected()
    const { address } = await wallet.getAccount()
    provider.onAsked = () => provider.switchAccount()
    const text = kind === 'form' ? formFor(address) : order
    expect(await codeOf(signed(wallet, text))).toBe('WALLET_WRONG_KEY')
  })

  test('tells the page, and tells it no more once it has stopped listening', async () => {
    const { provider, wallet } = connected()
    const told: unknown[] = []
    const stop = wallet.onAccountChange((account) => told.push(account))
    await wallet.getAccount()
    provider.switchAccount()
    provider.lock()
    const other = base58.encode(provider.keys[1]!.publicKey)
    expect(told).toEqual([{ address: other, chainId: 'mainnet' }, undefined])
    stop()
    await wallet.getAccount()
    provider.switchAccount()
    expect(told).toHaveLength(2)
    expect(provider.listeners.size).toBe(0)
  })
})

test('a wallet of Solana that declines has declined', async () => {
  for (const without of [[], ['solana:signIn']]) {
    const { provider, wallet } = connected({ without })
    const { address } = await wallet.getAccount()
    provider.onAsked = declined
    expect(await codeOf(signed(wallet, formFor(address)))).toBe('WALLET_DECLINED')
    expect(provider.calls.filter((call) => call.startsWith('sign'))).toHaveLength(1)
  }
  const { provider, wallet } = connected()
  provider.onAsked = declined
  expect(await codeOf(wallet.getAccount())).toBe('WALLET_DECLINED')
})

test('a signature of another scheme is refused', async () => {
  const provider = new TestSolana()
  const { signMessage } = provider.features['solana:signMessage'] as {
    signMessage(input: unknown): Promise<readonly object[]>
  }
  const wallet = solanaWallet({
    ...provider,
    accounts: [provider.account],
    features: {
      ...provider.features,
      'solana:signMessage': {
        signMessage: async (input: unknown) =>
          (await signMessage(input)).map((output) => ({ ...output, signatureType: 'secp256k1' })),
      },
    },
  })
  expect(await codeOf(signed(wallet, order))).toBe('WALLET_FAILED')
})

test('a wallet that offers only solana:signOffchainMessage is listed, and signs what the service takes', async () => {
  const provider = new TestSolana()
  const { secretKey, publicKey } = provider.keys[0]!
  const offchainOnly = {
    ...provider,
    accounts: [provider.account],
    features: {
      'standard:connect': provider.features['standard:connect'],
      'solana:signOffchainMessage': {
        version: '1.0.0',
        supportedMessageVersions: [1],
        signOffchainMessage: async ({ messageVersion, message, requiredSigners }: SolanaSignOffchainMessageInput) => {
          expect({ messageVersion, requiredSigners }).toEqual({ messageVersion: 1, requiredSigners: [publicKey] })
          const signedOffchainMessage = offChain(new TextEncoder().encode(message), publicKey)
          return [{ signedOffchainMessage, signature: nacl.sign.detached(signedOffchainMessage, secretKey) }]
        },
      },
    },
  }
  expect(isSolanaWallet(offchainOnly)).toBe(true)
  const wallet = solanaWallet(offchainOnly)
  const { address } = await wallet.getAccount()
  for (const text of [formFor(address), order]) {
    const answer = await signed(wallet, text)
    const publicKeyHex = Buffer.from(answer.publicKey).toString('hex')
    const signatureHex = Buffer.from(answer.signature).toString('hex')
    const proven = await solana.verify(text, { publicKeyHex, signatureHex, address }, nativeVerifier)
    expect(proven).toMatchObject({ adapterId: 'solana', address })
  }
})
