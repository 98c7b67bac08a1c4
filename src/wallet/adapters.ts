import { CountersignError } from '../errors.ts'
import { bytesToHex, hexToBytes } from '../hex.ts'
import { ed25519 } from './ed25519.ts'
import { nimiq } from './nimiq.ts'
import type { SignatureVerifier, WalletAdapter } from './wallet.ts'

const builtIn: readonly WalletAdapter[] = [nimiq, ed25519]
const idForm = /^[a-z0-9][a-z0-9-]{0,31}$/

/**
 * The configured wallet adapters, in the order given. An entry is the id of a built-in one (`nimiq`, `ed25519`) or an
 * adapter of one's own.
 *
 * Throws a TypeError for an unknown or malformed id, for an id that occurs twice, for an adapter without one of its
 * functions, and for an empty list, with which nobody could sign in.
 */
export function walletAdapters(entries: readonly (string | WalletAdapter)[]): readonly WalletAdapter[] {
  if (entries.length === 0) throw new TypeError(`adapters is empty; known adapters: ${knownIds()}`)
  const adapters: WalletAdapter[] = []
  for (const entry of entries) {
    const adapter = typeof entry === 'string' ? findBuiltIn(entry) : checkAdapter(entry)
    if (adapters.some(({ id }) => id === adapter.id)) throw new TypeError(`adapter "${adapter.id}" is configured twice`)
    adapters.push(adapter)
  }
  return adapters
}

function knownIds(): string {
  return builtIn.map(({ id }) => id).join(', ')
}

function findBuiltIn(id: string): WalletAdapter {
  const adapter = builtIn.find((candidate) => candidate.id === id)
  if (adapter === undefined) throw new TypeError(`unknown adapter ${JSON.stringify(id)}; known adapters: ${knownIds()}`)
  return adapter
}

function checkAdapter(adapter: WalletAdapter): WalletAdapter {
  if (typeof adapter?.id !== 'string' || !idForm.test(adapter.id)) {
    throw new TypeError(`an adapter's id must match ${idForm.source}, which ${JSON.stringify(adapter?.id)} does not`)
  }
  for (const name of ['signedBytes', 'deriveAddress', 'sameAddress'] as const) {
    if (typeof adapter[name] !== 'function') throw new TypeError(`adapter "${adapter.id}" has no function ${name}`)
  }
  return adapter
}

/** A claim to control a wallet's key. */
export interface IdentityClaim {
  /** The configured adapters, at least one. */
  readonly adapters: readonly WalletAdapter[]
  readonly verifier: SignatureVerifier
  /** The exact text that the service stored and the wallet was asked to sign, never text that the caller sent. */
  readonly message: string
  /** 32 bytes, hex, either case. */
  readonly publicKeyHex: string
  /** 64 bytes, hex, either case. */
  readonly signatureHex: string
  /** When present, it must derive from the key. */
  readonly address?: string | undefined
  /** The adapter that made the signature. Without it, all are tried in order. */
  readonly adapterId?: string | undefined
}

/** A wallet key whose control has been proven; what its holder may do is the application's decision. */
export interface WalletIdentity {
  /** The adapter whose framing the signature fits. One key under two adapters makes two identities. */
  readonly adapterId: string
  /** Lower case. */
  readonly publicKeyHex: string
  /** In the adapter's canonical form. */
  readonly address: string
  /** Lower case. */
  readonly signatureHex: string
}

/**
 * Checks that a signature proves control of a key, and returns the identity it proves.
 *
 * Throws a {@link CountersignError}: INVALID_REQUEST for a key or signature that is not hex of its length, ADAPTER_UNKNOWN
 * when the adapter named is not configured, SIGNATURE_INVALID when the signature holds under none of those tried, and
 * ADDRESS_MISMATCH when it holds but the address is another key's or malformed.
 */
export function proveIdentity(claim: IdentityClaim): WalletIdentity {
  const publicKey = readHex('public key', claim.publicKeyHex, 32)
  const signature = readHex('signature', claim.signatureHex, 64)
  const adapter = candidates(claim).find((candidate) =>
    claim.verifier.verify(signature, candidate.signedBytes(claim.message), publicKey),
  )
  if (adapter === undefined) {
    throw new CountersignError('SIGNATURE_INVALID', 'The signature does not prove control of the public key.')
  }
  const address = adapter.deriveAddress(publicKey)
  if (claim.address !== undefined && !adapter.sameAddress(claim.address, address)) {
    throw new CountersignError('ADDRESS_MISMATCH', 'The address does not belong to the public key.')
  }
  return {
    adapterId: adapter.id,
    publicKeyHex: bytesToHex(publicKey),
    address,
    signatureHex: bytesToHex(signature),
  }
}

function readHex(name: string, hex: string, length: number): Uint8Array {
  const bytes = hexToBytes(hex)
  if (bytes?.length !== length) {
    throw new CountersignError('INVALID_REQUEST', `The ${name} must be ${length} bytes in hex.`)
  }
  return bytes
}

function candidates({ adapters, adapterId }: IdentityClaim): readonly WalletAdapter[] {
  if (adapterId === undefined) return adapters
  const named = adapters.filter(({ id }) => id === adapterId)
  if (named.length === 0) {
    const configured = adapters.map(({ id }) => id).join(', ')
    throw new CountersignError('ADAPTER_UNKNOWN', `The wallet adapter is not configured; configured: ${configured}.`)
  }
  return named
}
