import { sha256 } from '@noble/hashes/sha2.js'
import { base64urlnopad } from '@scure/base'
import { payloadLine } from '../../core/challenge-text.ts'
import { canonicalPayload } from '../../core/order/canonical-payload.ts'
import { walletAdapters } from '../../core/wallet/adapters.ts'
import { portableVerifier } from '../../core/wallet/ed25519.ts'
import { isChainId, parseAccountId } from '../../core/wallet/ethereum/address.ts'
import { RpcFailure } from '../../core/wallet/ethereum/rpc.ts'
import { isSameAddress, type Proof, type ProvenIdentity, type WalletAdapter } from '../../core/wallet/wallet.ts'
import { adapterIds } from '../../shared/adapters.ts'
import { CountersignError } from '../../shared/errors.ts'
import { parseOrigin } from '../../shared/origin.ts'
import { type ProofArtifact, type ProofArtifactFields, ProofError, readArtifact } from './artifact.ts'
import { readSignedText, type SignedText } from './signed-text.ts'

/** What a proof artifact proves: which wallet signed, and what its holder was shown. */
export interface VerifiedProof extends SignedText, ProvenIdentity {
  /** Canonical form (RFC 8785) of what `payloadHash` is the hash of, if text, artifact or options have it. */
  readonly payload?: string
}

/**
 * Verifies what a finalized sign order returned, in browsers and on servers, without asking the service. Use what it
 * resolves with and nothing of the artifact: only the text is signed, and the other fields may be anyone's.
 *
 * A proof shows that the holder of a wallet signed a text. It does not show that an order was approved in time, or at
 * all by way of the service, and it is as good the second time as the first: act on an `orderId` or a payload once.
 *
 * The signature of a contract wallet is judged by its contract as it is now. Takes about 10 ms for an Ed25519
 * signature.
 *
 * @throws ProofError with a `reason` if the artifact does not hold. The signature comes first, so that what other
 * reasons say of the text is what was signed.
 * @throws TypeError for options that are wrong.
 */
export async function verifyProofArtifact(
  artifact: ProofArtifact | ProofArtifactFields,
  options: ProofOptions,
): Promise<VerifiedProof> {
  const expected = checkOptions(options)
  const given = readArtifact(artifact)
  const adapter = expected.adapters.find(({ id }) => id === given.adapterId)
  if (adapter === undefined) {
    const ids = expected.adapters.map(({ id }) => id).join(', ')
    throw new ProofError('ADAPTER_UNKNOWN', `The artifact's adapter_id is none of ${ids}`)
  }
  const text = readSignedText(given.message)
  const identity = await prove(adapter, given, expected)
  requireAccount(text, identity, adapter)
  const payload = requirePayload(text, given, expected)
  requireExpected(text, expected)
  requireOwner(identity, adapter, expected)
  return { ...text, ...identity, ...(payload === undefined ? {} : { payload }) }
}

/** The wallet whose signature it is. */
async function prove(
  adapter: WalletAdapter,
  given: ProofArtifact,
  { evmRpc }: CheckedOptions,
): Promise<ProvenIdentity> {
  const { message, adapterId, publicKeyHex, signatureHex } = given
  // A contract wallet's address names its chain. The adapter takes the two apart.
  const contract = adapterId === 'ethereum' ? parseAccountId(given.address) : undefined
  const { address, chainId } = contract ?? given
  if (given.chainId !== undefined && given.chainId !== chainId) throw otherAddress()
  const proof: Proof = { adapterId, publicKeyHex, signatureHex, address, chainId }
  const proven = await judge(adapter, message, proof)
  if (proven === undefined) {
    // Such a signature can have the length of a key's, so that the adapter does not ask for an RPC.
    if (contract !== undefined && !Object.hasOwn(evmRpc, contract.chainId)) throw needsRpc()
    throw new ProofError('SIGNATURE_INVALID', 'The signature is not one of this wallet over this text')
  }
  if (!isSameAddress(adapter, given.address, proven.address)) throw otherAddress()
  return proven
}

/** The identity that a proof proves to the adapter, or `undefined` if the signature does not hold. */
async function judge(adapter: WalletAdapter, message: string, proof: Proof): Promise<ProvenIdentity | undefined> {
  try {
    const proven = await adapter.verify(message, proof, portableVerifier)
    if (proven === undefined) return undefined
    const { adapterId, subject, publicKeyHex, address } = proven
    if (adapterId !== adapter.id) throw new TypeError(`adapter "${adapter.id}" returned an identity of "${adapterId}"`)
    return { adapterId, subject, publicKeyHex, address }
  } catch (error) {
    throw asProofError(error)
  }
}

function asProofError(error: unknown): unknown {
  if (!(error instanceof CountersignError)) return error
  const { cause, metadata, message } = error
  switch (error.reason) {
    case 'SIGNATURE_INVALID':
      return new ProofError('SIGNATURE_INVALID', message, { cause: error })
    case 'INVALID_REQUEST': {
      if (metadata.field !== 'address') return new ProofError('SIGNATURE_INVALID', message, { cause: error })
      const problem = 'The artifact has no address that such a wallet can have'
      return new ProofError('ADDRESS_MISMATCH', problem, { cause: error })
    }
    case 'ADDRESS_MISMATCH':
      return otherAddress()
    case 'CONTRACT_WALLET_NEEDS_RPC':
      return needsRpc()
    case 'EVM_RPC_UNAVAILABLE': {
      // These two say nothing of the server's address, which may contain a key.
      const why = cause instanceof RpcFailure || cause instanceof TypeError ? `: ${cause.message}` : ''
      return new ProofError('EVM_RPC_UNAVAILABLE', `The RPC of the wallet's chain could not be asked${why}`, { cause })
    }
    default:
      return error
  }
}

function otherAddress(): ProofError {
  return new ProofError('ADDRESS_MISMATCH', "The artifact's address is not that of the wallet that signed")
}

function needsRpc(): ProofError {
  return new ProofError('CONTRACT_WALLET_NEEDS_RPC', 'A contract wallet signed, and evmRpc has no server of its chain')
}

/**
 * Refuses a text that names another account than the one that signed. A contract wallet's text has to name it: the
 * signature of an owner of two of them could be presented for either.
 */
function requireAccount({ account }: SignedText, { address }: ProvenIdentity, adapter: WalletAdapter): void {
  const isContract = adapter.id === 'ethereum' && parseAccountId(address) !== undefined
  if (account === undefined) {
    if (isContract)
      throw new ProofError('MESSAGE_MALFORMED', 'The signed text has no line Account, for a contract wallet')
    return
  }
  // CAIP-10: namespace, reference of the chain, address.
  const named = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}:(.+)$/.exec(account)?.[1] ?? ''
  if (adapter.accountId !== undefined && [account, named].some((one) => isSameAddress(adapter, one, address))) return
  throw new ProofError('ADDRESS_MISMATCH', 'The signed text names another account than the one that signed')
}

/**
 * Compares everything that is known of the payload with the text, and returns the payload in its canonical form if it
 * is known. The line `Payload` is made anew: a signer may have seen nothing else of the payload.
 */
function requirePayload(
  { payloadHash, payload: line }: SignedText,
  artifact: ProofArtifact,
  expected: CheckedOptions,
): string | undefined {
  const inArtifact = artifact.payload === undefined ? undefined : canonicalOf(artifact.payload)
  const isOf = (hash: string | undefined): boolean => hash === undefined || hash === payloadHash
  if (!isOf(artifact.payloadHash)) throw otherPayload("the artifact's payload_hash")
  if (!isOf(hashOf(inArtifact))) throw otherPayload("the artifact's payload")
  if (!isOf(expected.payloadHash)) throw otherPayload('the payloadHash that is expected')
  if (!isOf(hashOf(expected.payload))) throw otherPayload('the payload that is expected')
  const known = expected.payload ?? inArtifact
  if (line === undefined) {
    const isMissing = known !== undefined && payloadLine(known) !== undefined
    if (isMissing && expected.payloadLine === 'required') throw otherPayload('a payload that it shows')
    return known
  }
  const payload = known ?? canonicalOf(line, "The signed text's line Payload")
  if (hashOf(payload) !== payloadHash || payloadLine(payload) !== line) throw otherPayload('what its line Payload says')
  return payload
}

function canonicalOf(payload: string, whose = "The artifact's payload"): string {
  try {
    return canonicalPayload(payload)
  } catch (cause) {
    throw new ProofError('PAYLOAD_MISMATCH', `${whose} is not one that an order can have`, { cause })
  }
}

function hashOf(payload: string | undefined): string | undefined {
  if (payload === undefined) return undefined
  return `sha256:${base64urlnopad.encode(sha256(new TextEncoder().encode(payload)))}`
}

function otherPayload(than: string): ProofError {
  return new ProofError('PAYLOAD_MISMATCH', `The signed text is not about ${than}`)
}

function requireExpected({ appName, origin, issuedAt }: SignedText, expected: CheckedOptions): void {
  if (appName !== expected.appName) {
    throw new ProofError(
      'APP_NAME_MISMATCH',
      `The text was signed for ${quoted(appName)}, not ${quoted(expected.appName)}`,
    )
  }
  if (origin !== expected.origin) {
    throw new ProofError('ORIGIN_MISMATCH', `The text was signed for ${quoted(origin)}, not ${quoted(expected.origin)}`)
  }
  if (issuedAt < expected.notBefore) {
    throw new ProofError('TOO_OLD', `The text was issued at ${new Date(issuedAt).toISOString()}, before notBefore`)
  }
}

function quoted(text: string): string {
  return JSON.stringify(text)
}

function requireOwner(
  { adapterId, publicKeyHex, address }: ProvenIdentity,
  adapter: WalletAdapter,
  { owner }: CheckedOptions,
): void {
  if (owner === undefined) return
  const isOwner =
    owner.adapterId === adapterId &&
    (owner.publicKeyHex === undefined || owner.publicKeyHex === publicKeyHex) &&
    (owner.address === undefined || isSameAddress(adapter, owner.address, address))
  if (!isOwner) throw new ProofError('WRONG_WALLET', 'Another wallet than that of the owner signed')
}

/**
 * What a proof artifact has to agree with. An option that is there needs a value: `undefined` is a `TypeError`, because
 * a check that a missing value switches off would go unnoticed.
 */
export interface ProofOptions {
  /** The service's `appName`, the first line of the text. */
  readonly appName: string
  /** Origin of the page that starts the orders, such as `https://app.example`. */
  readonly origin: string
  /** What the order was about, as the application knows it: the hash that it was started with. Default: any. */
  readonly payloadHash?: string
  /** The same as JSON text, in any form that has one meaning (RFC 7493), at most 8 KiB. Default: any. */
  readonly payload?: string
  /**
   * Whether a text about a payload that fits its line `Payload` must have the line, where the payload is known: by the
   * option `payload` or the artifact's own. `optional` accepts texts of services that did not write it, whose wallets
   * showed the payload's hash only, and orders that were started with a hash. Default: required.
   */
  readonly payloadLine?: 'required' | 'optional'
  /** Who must have signed. Default: anyone. */
  readonly owner?: ProofOwner
  /** Earliest time at which the text was issued, by the service's clock, in epoch milliseconds. Default: any. */
  readonly notBefore?: number
  /**
   * Wallet adapters: ids of built-in ones, and objects of your own. Default: all built-in ones. Name
   * the service's own: ed25519 and solana sign the same bytes, so that an artifact of the one can be presented as one
   * of the other.
   */
  readonly adapters?: readonly (string | WalletAdapter)[]
  /**
   * Addresses of JSON-RPC servers by EIP-155 chain id, for contract wallets of ethereum. Default: contract wallets are
   * refused with CONTRACT_WALLET_NEEDS_RPC.
   */
  readonly evmRpc?: Readonly<Record<string, string>>
}

/** A wallet that the application knows. With a key and an address, both must be those of the wallet that signed. */
export interface ProofOwner {
  readonly adapterId: string
  /**
   * Hex in either case. Wallets of some adapters, such as ethereum, are known by their address only; an empty text, as
   * their sessions have, counts as absent.
   */
  readonly publicKeyHex?: string
  /** In any spelling that the adapter knows. For a contract wallet, its CAIP-10 identifier. */
  readonly address?: string
}

/** Options that were checked; a payload in its canonical form. */
type CheckedOptions = ReturnType<typeof checkOptions>

const optionNames = {
  appName: true,
  origin: true,
  payloadHash: true,
  payload: true,
  payloadLine: true,
  owner: true,
  notBefore: true,
  adapters: true,
  evmRpc: true,
} as const satisfies Record<keyof ProofOptions, true>

/** Checks the options. Throws a `TypeError` of one line that names the one that is wrong. */
function checkOptions(options: ProofOptions) {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(optionNames, name)) throw new TypeError(`${name} is not an option`)
    if (value === undefined) throw new TypeError(`${name} is undefined; leave it out if it is not to be checked`)
  }
  const { payload, payloadLine = 'required', owner, notBefore = Number.NEGATIVE_INFINITY, evmRpc = {} } = options
  const origin = parseOrigin(textOf(options, 'origin'))
  if (origin === undefined) throw new TypeError('origin must be one such as https://app.example')
  if (typeof notBefore !== 'number' || Number.isNaN(notBefore)) {
    throw new TypeError('notBefore must be a time in epoch milliseconds')
  }
  if (payloadLine !== 'required' && payloadLine !== 'optional') {
    throw new TypeError("payloadLine must be 'required' or 'optional'")
  }
  for (const [chainId, url] of Object.entries(evmRpc)) {
    // Not repeated: an address can contain a key.
    if (!isChainId(chainId) || !/^https?:\/\//.test(url) || !URL.canParse(url)) {
      throw new TypeError('evmRpc must have http or https addresses by chain id')
    }
  }
  const adapters = walletAdapters(options.adapters ?? adapterIds, { evmRpc })
  return {
    appName: textOf(options, 'appName'),
    origin,
    payloadHash: options.payloadHash === undefined ? undefined : textOf(options, 'payloadHash'),
    payload: payload === undefined ? undefined : canonical(payload),
    payloadLine,
    owner: owner === undefined ? undefined : checkOwner(owner, adapters),
    notBefore,
    adapters,
    evmRpc,
  }
}

function checkOwner(owner: ProofOwner, adapters: readonly WalletAdapter[]): ProofOwner {
  const { adapterId, address } = owner
  const publicKeyHex = owner.publicKeyHex === '' ? undefined : owner.publicKeyHex
  const adapter = adapters.find(({ id }) => id === adapterId)
  if (adapter === undefined) throw new TypeError('owner.adapterId must be the id of one of the adapters')
  if (publicKeyHex === undefined && address === undefined) {
    throw new TypeError('owner needs publicKeyHex or address')
  }
  if (publicKeyHex !== undefined && adapter.byAddressOnly === true) {
    throw new TypeError(`owner.publicKeyHex: wallets of ${adapterId} are known by their address only`)
  }
  if (publicKeyHex !== undefined && !/^([0-9a-f]{2})+$/i.test(publicKeyHex)) {
    throw new TypeError('owner.publicKeyHex must be hex')
  }
  if (address !== undefined && adapter.readAddress(address) === undefined) {
    throw new TypeError(`owner.address is not an address of ${adapterId}`)
  }
  return {
    adapterId,
    ...(publicKeyHex === undefined ? {} : { publicKeyHex: publicKeyHex.toLowerCase() }),
    ...(address === undefined ? {} : { address }),
  }
}

function textOf(options: ProofOptions, name: 'appName' | 'origin' | 'payloadHash'): string {
  const value = options[name]
  if (typeof value === 'string' && value !== '') return value
  throw new TypeError(`${name} must be a text`)
}

function canonical(payload: string): string {
  try {
    return canonicalPayload(payload)
  } catch (cause) {
    // Says what is wrong with it, and quotes nothing of it.
    throw new TypeError(cause instanceof Error ? cause.message : 'payload is not valid', { cause })
  }
}
