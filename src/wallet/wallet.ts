import type { Proof, ProvenIdentity } from './proof.ts'
import type { SignatureVerifier } from './verifier.ts'

/**
 * What Countersign knows of a kind of wallet: how to check that a signature over a text proves control of it, and how to
 * compare its addresses. `ed25519Adapter` makes one for wallets that sign with Ed25519.
 */
export interface WalletAdapter {
  /** Short stable name, `[a-z0-9-]`, at most 32 characters. It is a part of every identity, so it can never change. */
  readonly id: string
  /** The name people know. */
  readonly displayName: string

  /**
   * Judges a whole proof: key, signature and address. Returns the identity it proves, with this adapter's id, or `undefined`
   * if the signature does not hold.
   *
   * `message` is the exact text that the service stored and the wallet was asked to sign, never text that the caller sent.
   * `ed25519` is the strict verifier that the service uses, for adapters that need one.
   *
   * Throws or rejects with a `CountersignError`: INVALID_REQUEST for a key, signature or address that this kind of wallet
   * cannot have, ADDRESS_MISMATCH if the signature holds and the address is another wallet's.
   */
  verify(
    message: string,
    proof: Proof,
    ed25519: SignatureVerifier,
  ): ProvenIdentity | undefined | Promise<ProvenIdentity | undefined>

  /**
   * Whether two texts name one address, whatever their grouping and case. An address that is malformed or whose check digits
   * are wrong equals nothing, itself included.
   */
  sameAddress(a: string, b: string): boolean
}
