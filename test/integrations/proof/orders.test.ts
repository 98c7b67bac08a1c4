import { toJson } from '@bufbuild/protobuf'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { base58 } from '@scure/base'
import nacl from 'tweetnacl'
import { getAddress, type Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { FinalizeOrderResponseSchema, OrderService } from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { ed25519Adapter } from '../../../src/index.ts'
import {
  type ProofArtifact,
  ProofError,
  type ProofOptions,
  verifyProofArtifact,
} from '../../../src/integrations/proof/index.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { type AdapterId, adapterIds } from '../../../src/shared/adapters.ts'
import { rpcKey, sendJson, startChain } from '../../support/evm.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import ethereumVectors from '../../vectors/ethereum.json' with { type: 'json' }

const payload = '{"amount":250,"to":"Green Bakery"}'

/** A wallet as its own library makes it. */
interface Signer {
  readonly adapterId: string
  readonly publicKeyHex: string
  readonly address: string
  readonly chainId?: string
  sign(text: string): string | Promise<string>
}

function ed25519Signer(): Signer {
  const { publicKey, secretKey } = nacl.sign.keyPair()
  const sign = (text: string) => Buffer.from(nacl.sign.detached(Buffer.from(text), secretKey)).toString('hex')
  return { adapterId: 'ed25519', publicKeyHex: Buffer.from(publicKey).toString('hex'), address: '', sign }
}

function solanaSigner(): Signer {
  const signer = ed25519Signer()
  return { ...signer, adapterId: 'solana', address: base58.encode(Buffer.from(signer.publicKeyHex, 'hex')) }
}

function ethereumSigner(key: Hex = generatePrivateKey()): Signer {
  const account = privateKeyToAccount(key)
  const sign = async (message: string) => (await account.signMessage({ message })).slice(2)
  return { adapterId: 'ethereum', publicKeyHex: '', address: account.address, sign }
}

function answerOf({ status, json }: Awaited<ReturnType<typeof rest>>) {
  expect(status, JSON.stringify(json)).toBe(200)
  return json
}

/** Has a wallet approve a sign order, and returns what names the order to the desktop. */
async function approved(url: string, { sign, chainId, ...wallet }: Signer, details: object = { payload }) {
  const holder = answerOf(await rest(url, '/cross-device/start', { kind: 'sign', displayTitle: 'Pay', ...details }))
  const { orderId, claimToken, desktopToken } = holder
  const { challengeToken } = answerOf(await rest(url, '/cross-device/claim', { orderId, claimToken }))
  const account = {
    adapterId: wallet.adapterId,
    ...(chainId === undefined ? {} : { address: wallet.address, chainId }),
  }
  const path = `/cross-device/challenge?${new URLSearchParams({ orderId, ...account })}`
  const { message } = answerOf(await rest(url, path, undefined, { authorization: `Bearer ${challengeToken}` }))
  const { address } = wallet
  const proof = { ...wallet, address: address || undefined, chainId, signatureHex: await sign(message) }
  answerOf(await rest(url, '/cross-device/approve', { orderId, challengeToken, proof }))
  return { orderId, desktopToken }
}

/** The artifact of a sign order that a wallet approved. */
async function artifactOf(url: string, signer: Signer, details?: object): Promise<ProofArtifact> {
  const holder = await approved(url, signer, details)
  return answerOf(await rest(url, '/cross-device/finalize', holder)).proofArtifact
}

async function serve(options: CountersignOptions = {}): Promise<{ url: string; options: ProofOptions }> {
  const { url } = await startService({
    appName: 'Example',
    adapters: [...adapterIds],
    ...options,
  })
  return { url, options: { appName: 'Example', origin: url } }
}

async function reasonOf(artifact: ProofArtifact, options: ProofOptions): Promise<string> {
  try {
    await verifyProofArtifact(artifact, options)
    return 'verified'
  } catch (error) {
    if (!(error instanceof ProofError)) throw error
    expect(error.message).not.toContain(rpcKey)
    return error.reason
  }
}

type WithAccount = 'solana, with its account in the text' | 'ethereum, with its account in the text'

const wallets: Readonly<Record<AdapterId | WithAccount, () => Signer>> = {
  nimiq: () => ({ adapterId: 'nimiq', ...makeWallet() }),
  ed25519: ed25519Signer,
  solana: solanaSigner,
  'solana, with its account in the text': () => ({ ...solanaSigner(), chainId: 'mainnet' }),
  ethereum: ethereumSigner,
  'ethereum, with its account in the text': () => ({ ...ethereumSigner(), chainId: '8453' }),
}

describe.each(Object.entries(wallets))('the order that a wallet of %s approved', (_, make) => {
  test('is proven by what REST and gRPC answer, in both spellings, and by no other content', async () => {
    const { url, options } = await serve()
    const signer = make()
    const holder = await approved(url, signer)
    const { proofArtifact } = answerOf(await rest(url, '/cross-device/finalize', holder))
    const owner = { adapterId: signer.adapterId, address: proofArtifact.address }
    const proof = await verifyProofArtifact(proofArtifact, { ...options, payload, owner, notBefore: 0 })
    expect(proof).toMatchObject({
      orderId: holder.orderId,
      origin: url,
      payload,
      displayTitle: 'Pay',
      adapterId: signer.adapterId,
      publicKeyHex: signer.publicKeyHex,
      address: proofArtifact.address,
    })
    expect(Date.now() - proof.issuedAt).toBeLessThan(60_000)

    const orders = createClient(OrderService, createGrpcTransport({ baseUrl: url }))
    const response = await orders.finalizeOrder(holder)
    expect(await verifyProofArtifact(response.proofArtifact!, options)).toEqual(proof)
    // biome-ignore lint/suspicious/noExplicitAny: JSON.
    const { proof_artifact }: any = toJson(FinalizeOrderResponseSchema, response, { useProtoFieldName: true })
    expect(proof_artifact).toHaveProperty('signature_hex')
    expect(await verifyProofArtifact(proof_artifact, options)).toEqual(proof)

    const more = payload.replace('250', '2500')
    expect(await reasonOf(proofArtifact, { ...options, payload: more })).toBe('PAYLOAD_MISMATCH')
    expect(await reasonOf(proofArtifact, { ...options, origin: 'https://other.example' })).toBe('ORIGIN_MISMATCH')
    expect(await reasonOf(proofArtifact, { ...options, appName: 'example' })).toBe('APP_NAME_MISMATCH')
    expect(await reasonOf(proofArtifact, { ...options, notBefore: proof.issuedAt + 1 })).toBe('TOO_OLD')
    const stranger = await artifactOf(url, make())
    expect(await reasonOf(stranger, { ...options, owner })).toBe('WRONG_WALLET')
  })
})

describe('a contract wallet', () => {
  /** An order that was approved by a contract wallet of chain 8453, and another contract wallet with the same owner. */
  async function approvedByContract() {
    const chain = await startChain(8453)
    const { runtime, ownerPrivateKey } = ethereumVectors.contract
    const [address, other] = [getAddress(await chain.deploy(runtime)), getAddress(await chain.deploy(runtime))]
    const evmRpc = { '8453': chain.url }
    const { url, options } = await serve({ evmRpc })
    const signer = { ...ethereumSigner(ownerPrivateKey as Hex), address, chainId: '8453' }
    return { artifact: await artifactOf(url, signer), signer, other, chain, evmRpc, options }
  }

  test('is asked by its RPC, and only for its own chain and address', async () => {
    const { artifact, signer, other, chain, evmRpc, options } = await approvedByContract()
    const owner = { adapterId: 'ethereum', address: artifact.address.toLowerCase() }
    expect(await verifyProofArtifact(artifact, { ...options, evmRpc, owner, payload })).toMatchObject({
      subject: `eip155:8453:${signer.address.toLowerCase()}`,
      address: `eip155:8453:${signer.address}`,
      account: `eip155:8453:${signer.address}`,
    })
    expect(await reasonOf(artifact, options)).toBe('CONTRACT_WALLET_NEEDS_RPC')
    expect(await reasonOf(artifact, { ...options, evmRpc: { '1': chain.url } })).toBe('CONTRACT_WALLET_NEEDS_RPC')
    const elsewhere = { ...artifact, address: `eip155:1:${signer.address}` }
    expect(await reasonOf(elsewhere, { ...options, evmRpc })).toBe('CONTRACT_WALLET_NEEDS_RPC')
    expect(await reasonOf({ ...artifact, chainId: '1' }, { ...options, evmRpc })).toBe('ADDRESS_MISMATCH')
    // Its owner's signature holds for every contract of the same owner. The text says for which one it was made.
    const ofOther = { ...artifact, address: `eip155:8453:${other}` }
    expect(await reasonOf(ofOther, { ...options, evmRpc })).toBe('ADDRESS_MISMATCH')
    expect(await reasonOf({ ...artifact, address: signer.address }, { ...options, evmRpc })).toBe('SIGNATURE_INVALID')
    const message = artifact.message.replace(/\nAccount: .*/, '')
    const anyContract = { ...ofOther, message, signatureHex: await signer.sign(message) }
    expect(await reasonOf(anyContract, { ...options, evmRpc })).toBe('MESSAGE_MALFORMED')
    const changed = { ...artifact, message: artifact.message.replace('Title: Pay', 'Title: Play') }
    expect(await reasonOf(changed, { ...options, evmRpc })).toBe('SIGNATURE_INVALID')
  })

  test('is neither proven nor disproven while its RPC is away, or serves another chain', async () => {
    const { artifact, chain, evmRpc, options } = await approvedByContract()
    chain.trouble((_call, response) => sendJson(response, { message: 'busy' }, 503))
    await expect(verifyProofArtifact(artifact, { ...options, evmRpc })).rejects.toMatchObject({
      reason: 'EVM_RPC_UNAVAILABLE',
      message: expect.stringMatching(/HTTP status 503$/),
    })
    const { url } = await startChain(1)
    await expect(verifyProofArtifact(artifact, { ...options, evmRpc: { '8453': url } })).rejects.toMatchObject({
      reason: 'EVM_RPC_UNAVAILABLE',
      message: expect.stringMatching(/that serves chain 1$/),
    })
  })
})

describe("an adapter of the application's own", () => {
  const tag = ed25519Adapter({
    id: 'tag',
    displayName: 'Tag',
    signedBytes: (text) => new TextEncoder().encode(`tag\n${text}`),
    deriveAddress: (publicKey) => `tag1${Buffer.from(publicKey).toString('hex')}`,
    readAddress: (text) => (/^tag1/i.test(text) ? text.toLowerCase() : undefined),
  })
  const withAccounts = { ...tag, accountId: (address: string, chainId: string) => `tag:${chainId}:${address}` }

  test('judges its proofs here as it does in the service', async () => {
    const { url, options } = await serve({ adapters: [withAccounts] })
    const { publicKeyHex, sign } = ed25519Signer()
    const address = `tag1${publicKeyHex}`
    const signer = {
      adapterId: 'tag',
      publicKeyHex,
      address,
      chainId: 'main',
      sign: (text: string) => sign(`tag\n${text}`),
    }
    const artifact = await artifactOf(url, signer)
    expect(artifact.message).toMatch(/\nAccount: tag:main:tag1\w+$/)
    expect(await verifyProofArtifact(artifact, { ...options, adapters: [withAccounts] })).toMatchObject({ address })
    expect(await reasonOf(artifact, options)).toBe('ADAPTER_UNKNOWN')
    const named = { ...artifact, message: artifact.message.replace(/tag1\w+$/, `tag1${'0'.repeat(64)}`) }
    const other = { ...named, signatureHex: await signer.sign(named.message) }
    expect(await reasonOf(other, { ...options, adapters: [withAccounts] })).toBe('ADDRESS_MISMATCH')
  })

  test('that fails does not say that the proof is wrong, and cannot speak for another adapter', async () => {
    const { url, options } = await serve()
    const artifact = { ...(await artifactOf(url, ed25519Signer())), adapterId: 'tag' }
    const broken = { ...tag, verify: () => Promise.reject(new Error('the directory is away')) }
    await expect(verifyProofArtifact(artifact, { ...options, adapters: [broken] })).rejects.toThrow(/^the directory/)
    const identity = { adapterId: 'nimiq', subject: 's', publicKeyHex: '', address: artifact.address }
    const liar = { ...tag, readAddress: () => 'any', verify: () => identity }
    await expect(verifyProofArtifact(artifact, { ...options, adapters: [liar] })).rejects.toThrow(
      'adapter "tag" returned an identity of "nimiq"',
    )
    const careless = { ...tag, verify: () => ({ ...identity, adapterId: 'tag' }) }
    expect(await reasonOf({ ...artifact, address: 'tag2' }, { ...options, adapters: [careless] })).toBe(
      'ADDRESS_MISMATCH',
    )
  })
})
