import { concatHex, type Hex, hashMessage } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test, vi } from 'vitest'
import {
  createSignInChallenge,
  type SignInChallenge,
  type SignInChallengeOptions,
  verifySignIn,
} from '../../../src/integrations/core/index.ts'
import { makeTestWallet } from '../../../src/integrations/testing/wallet.ts'
import { startChain } from '../../support/evm.ts'
import { makeSolanaWallet } from '../../support/solana.ts'
import vectors from '../../vectors/ethereum.json' with { type: 'json' }

const origin = 'https://app.example'
const wallet = makeTestWallet()
const begin = (options: Partial<SignInChallengeOptions> = {}) =>
  createSignInChallenge({ appName: 'Example', origin, ...options })
const sign = (message: string, by = wallet) => ({ publicKeyHex: by.publicKeyHex, signatureHex: by.sign(message) })
const reason = (expected: string) => expect.objectContaining({ reason: expected })

test('a challenge that went through JSON signs its wallet in', async () => {
  const challenge = JSON.parse(JSON.stringify(begin()))
  expect(await verifySignIn({ challenge, proof: sign(challenge.message), origin })).toEqual({
    adapterId: 'nimiq',
    subject: wallet.publicKeyHex,
    publicKeyHex: wallet.publicKeyHex,
    address: wallet.address,
  })
})

test('the text names application, origin, nonce and times', () => {
  const { message, nonce, issuedAt, expiresAt } = begin({ ttlSeconds: 60 })
  expect(message.split('\n')).toEqual([
    'Example requests authentication',
    'Action: auth.login',
    `Origin: ${origin}`,
    'Challenge ID: login',
    `Nonce: ${nonce}`,
    `Issued At: ${new Date(issuedAt).toISOString()}`,
    `Expires At: ${new Date(issuedAt + 60_000).toISOString()}`,
  ])
  expect(expiresAt).toBe(issuedAt + 60_000)
  expect(nonce).toMatch(/^[\w-]{43}$/)
  expect(begin().nonce).not.toBe(nonce)
})

describe('wallets with a form of their own', () => {
  test('an account of ethereum signs EIP-4361 text that names its chain', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const named = { adapters: ['ethereum'], adapterId: 'ethereum', address: account.address, chainId: '1' }
    const challenge = begin(named)
    expect(challenge.message).toMatch(/^app\.example wants you to sign in with your Ethereum account:\n0x/)
    const signatureHex = (await account.signMessage({ message: challenge.message })).slice(2)
    const proof = { adapterId: 'ethereum', publicKeyHex: '', signatureHex, address: account.address, chainId: '1' }
    const verify = (changed: object) =>
      verifySignIn({ challenge, proof: { ...proof, ...changed }, origin, adapters: ['ethereum'] })
    expect(await verify({})).toMatchObject({ adapterId: 'ethereum', address: account.address, publicKeyHex: '' })
    await expect(verify({ chainId: '10' })).rejects.toEqual(reason('SIGNATURE_INVALID'))
  })

  test('a wallet of solana signs the text of Sign-In With Solana', async () => {
    const solana = makeSolanaWallet()
    const challenge = begin({ adapters: ['solana'], adapterId: 'solana', address: solana.address })
    const proof = {
      adapterId: 'solana',
      publicKeyHex: solana.publicKeyHex,
      signatureHex: solana.sign(challenge.message),
    }
    expect(await verifySignIn({ challenge, proof, origin, adapters: ['solana'] })).toMatchObject({
      adapterId: 'solana',
      address: solana.address,
    })
  })

  test('a contract wallet signs in by the RPC of its chain, and is refused without it', async () => {
    const chain = await startChain()
    const { contract } = vectors
    const address = await chain.deploy(contract.runtime)
    const challenge = begin({ adapters: ['ethereum'], adapterId: 'ethereum', address, chainId: '1' })
    const owner = privateKeyToAccount(contract.ownerPrivateKey as Hex)
    const signature = concatHex([await owner.sign({ hash: hashMessage(challenge.message) })])
    const proof = { adapterId: 'ethereum', publicKeyHex: '', signatureHex: signature.slice(2), address, chainId: '1' }
    const verify = (evmRpc: Record<string, string>, changed = {}) =>
      verifySignIn({ challenge, proof: { ...proof, ...changed }, origin, adapters: ['ethereum'], evmRpc })
    expect(await verify({ '1': chain.url })).toMatchObject({ subject: `eip155:1:${address}` })
    // Of the length that a key's signature has, it could be one.
    await expect(verify({})).rejects.toEqual(reason('SIGNATURE_INVALID'))
    await expect(verify({}, { signatureHex: '11'.repeat(66) })).rejects.toEqual(reason('CONTRACT_WALLET_NEEDS_RPC'))
    await expect(verify({ '1': 'http://127.0.0.1:9' })).rejects.toEqual(reason('EVM_RPC_UNAVAILABLE'))
  })
})

describe('refused is', () => {
  test('a proof over another challenge', async () => {
    await expect(verifySignIn({ challenge: begin(), proof: sign(begin().message), origin })).rejects.toEqual(
      reason('SIGNATURE_INVALID'),
    )
  })

  test('a proof over a text that the client changed, also if the kept text was changed alike', async () => {
    const challenge = begin()
    const message = challenge.message.replace('Example', 'Another')
    for (const kept of [challenge, { ...challenge, message }]) {
      await expect(verifySignIn({ challenge: kept, proof: sign(message), origin })).rejects.toEqual(
        reason('SIGNATURE_INVALID'),
      )
    }
  })

  test.each(['https://evil.example', 'https://app.example:8443', 'https://APP.example', 'null', '', null, undefined])(
    'the origin %j',
    async (other) => {
      const challenge = begin()
      await expect(verifySignIn({ challenge, proof: sign(challenge.message), origin: other })).rejects.toEqual(
        reason('ORIGIN_MISMATCH'),
      )
    },
  )

  test('a challenge from the millisecond on at which it expires', async () => {
    const challenge = begin({ ttlSeconds: 1 })
    const proof = sign(challenge.message)
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      vi.setSystemTime(challenge.expiresAt - 1)
      await verifySignIn({ challenge, proof, origin })
      vi.setSystemTime(challenge.expiresAt)
      await expect(verifySignIn({ challenge, proof, origin })).rejects.toEqual(reason('NONCE_EXPIRED'))
    } finally {
      vi.useRealTimers()
    }
  })

  test("another wallet's key, and another wallet's address", async () => {
    const challenge = begin()
    const [proof, other] = [sign(challenge.message), makeTestWallet()]
    const verify = (changed: object) => verifySignIn({ challenge, proof: { ...proof, ...changed }, origin })
    await expect(verify({ publicKeyHex: other.publicKeyHex })).rejects.toEqual(reason('SIGNATURE_INVALID'))
    await expect(verify({ address: other.address })).rejects.toEqual(reason('ADDRESS_MISMATCH'))
  })

  test('a proof of another wallet than the challenge was asked for with', async () => {
    const other = makeTestWallet()
    const named = { adapterId: 'nimiq', address: wallet.address }
    const challenge: SignInChallenge = JSON.parse(JSON.stringify(begin(named)))
    const verify = (changed: object, by = wallet) =>
      verifySignIn({ challenge, proof: { ...sign(challenge.message, by), ...changed }, origin })
    expect(await verify({})).toMatchObject(named)
    await expect(verify({}, other)).rejects.toEqual(reason('ADDRESS_MISMATCH'))
    await expect(verify({ address: other.address }, other)).rejects.toEqual(reason('ADDRESS_MISMATCH'))
    const ofKind = begin({ adapterId: 'ed25519' })
    const proof = { ...sign(ofKind.message), adapterId: 'nimiq' }
    await expect(verifySignIn({ challenge: ofKind, proof, origin })).rejects.toEqual(reason('ADDRESS_MISMATCH'))
  })

  test('an adapter that is not configured, and a proof of another one', async () => {
    const challenge = begin()
    const proof = sign(challenge.message)
    const verify = (adapterId: string) => verifySignIn({ challenge, proof: { ...proof, adapterId }, origin })
    await expect(verify('ethereum')).rejects.toEqual(reason('ADAPTER_UNKNOWN'))
    await expect(verify('ed25519')).rejects.toEqual(reason('SIGNATURE_INVALID'))
    expect(() => begin({ adapterId: 'solana' })).toThrow(reason('ADAPTER_UNKNOWN'))
  })

  test.each([
    undefined,
    null,
    {},
    { signatureHex: 1 },
    { signatureHex: 'zz', publicKeyHex: '00' },
    { signatureHex: '00'.repeat(20_000) },
    { signatureHex: '00', publicKeyHex: [] },
    { signatureHex: '00', adapterId: null },
  ])('the proof %j', async (proof) => {
    await expect(verifySignIn({ challenge: begin(), proof: proof as never, origin })).rejects.toEqual(
      reason('INVALID_REQUEST'),
    )
  })
})

test.each([
  { origin: 'app.example' },
  { appName: 'two\nlines' },
  { appName: '' },
  { ttlSeconds: 0 },
  { ttlSeconds: 3601 },
  { ttlSeconds: 1.5 },
  { adapters: [] },
])("the options %j are the developer's mistake", (options) => {
  expect(() => begin(options)).toThrow(TypeError)
})

test.each([
  { origin: 'https://app.example/' },
  { nonce: 1 },
  { expiresAt: 'soon' },
  { issuedAt: undefined },
  { askedFor: 'nimiq' },
  { askedFor: { address: 1 } },
])("a challenge with %j is the developer's mistake", async (wrong) => {
  const challenge = begin()
  await expect(
    verifySignIn({ challenge: { ...challenge, ...wrong } as never, proof: sign(challenge.message), origin }),
  ).rejects.toThrow(TypeError)
})
