import { isBytes } from '../../shared/hex.ts'
import {
  type Proof,
  type ProvenIdentity,
  requireAdapterId,
  type SignatureCurve,
  type SignatureVerifier,
  type WalletAdapter,
} from './wallet.ts'

/** What distinguishes one kind of wallet from another: data, of which `signatureAdapter` makes an adapter. */
export interface SignatureKind {
  /** See {@link WalletAdapter.id}. */
  readonly id: string
  /** See {@link WalletAdapter.displayName}. */
  readonly displayName: string
  /**
   * `ed25519`: a key of 32 bytes and a signature of 64 (RFC 8032), checked strictly. The subject is the key in
   * lower-case hex.
   *
   * `secp256k1-recovered`: a signature of 65 bytes, r‖s‖v with v 0, 1, 27 or 28 and s in the lower half, from which the
   * key is recovered. A proof names its address and no key. The subject is the canonical address, its case kept.
   */
  readonly curve: SignatureCurve

  /**
   * What the wallet signs for a text. `ed25519`: the bytes that Ed25519 is given. `secp256k1-recovered`: the digest of
   * 32 bytes.
   */
  envelope(text: string): Uint8Array

  /**
   * The canonical address of a public key, 1 to 200 characters. The key has 32 bytes, or for `secp256k1-recovered` 65:
   * 0x04, x and y (SEC 1 §2.3.3).
   */
  address(publicKey: Uint8Array): string

  /** See {@link WalletAdapter.readAddress}. */
  readAddress(text: string): string | undefined
}

/** An adapter that was made of the data of a kind. */
export type SignatureAdapter = SignatureKind & WalletAdapter

/** What is common to the wallets of a curve. */
export interface Curve {
  readonly name: SignatureCurve
  /** A public key as {@link SignatureKind.address} gets it, to try the functions of a kind with. */
  readonly exampleKey: Uint8Array
  /** Length that an envelope must have, in bytes. `undefined`: any. */
  readonly envelopeBytes: number | undefined
  /** Whether identities have no key. */
  readonly byAddressOnly: boolean
  /** See {@link WalletAdapter.verify}. */
  identify(kind: SignatureKind, message: string, proof: Proof, verifier: SignatureVerifier): ProvenIdentity | undefined
}

/**
 * Makes the adapter of a kind with the rules of its curve, which the caller gives so that a page with wallets of one
 * curve loads no code of another. Throws a `TypeError` if the data of the kind cannot be right.
 */
export function kindAdapter(kind: SignatureKind, curve: Curve): SignatureAdapter {
  requireConsistent(kind, curve)
  return {
    id: kind.id,
    displayName: kind.displayName,
    curve: curve.name,
    byAddressOnly: curve.byAddressOnly,
    envelope: (text) => kind.envelope(text),
    address: (publicKey) => kind.address(publicKey),
    readAddress: (text) => kind.readAddress(text),
    verify: (message, proof, verifier) => curve.identify(kind, message, proof, verifier),
  }
}

function requireConsistent(kind: SignatureKind, { exampleKey, envelopeBytes }: Curve): void {
  const { id, displayName } = kind
  requireAdapterId(id)
  const check = (holds: boolean, problem: string): void => {
    if (!holds) throw new TypeError(`the adapter "${id}" ${problem}`)
  }
  check(typeof displayName === 'string' && displayName.trim() !== '', 'has no displayName')
  for (const name of ['envelope', 'address', 'readAddress'] as const) {
    check(typeof kind[name] === 'function', `has no function ${name}`)
  }
  const envelope: unknown = kind.envelope('text')
  check(isBytes(envelope), 'has an envelope that is not a Uint8Array')
  const { length } = envelope as Uint8Array
  check(length === (envelopeBytes ?? length), `must have an envelope of ${envelopeBytes} bytes, not ${length}`)
  const address: unknown = kind.address(exampleKey)
  check(
    typeof address === 'string' && address.length >= 1 && address.length <= 200,
    'must have addresses of 1 to 200 characters',
  )
  check(
    kind.readAddress(address as string) === address,
    'has a readAddress that changes or refuses what its address returns',
  )
}
