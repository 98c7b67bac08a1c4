/**
 * What Countersign knows of a kind of wallet: how it frames a message before it signs, and how its addresses follow from
 * its keys. Signatures are Ed25519 throughout.
 */
export interface WalletAdapter {
  /** Short stable name, `[a-z0-9-]`, at most 32 characters. It is a part of every identity, so it can never change. */
  readonly id: string
  /** The name people know. */
  readonly displayName: string

  /** The exact bytes that the wallet signs for a message. */
  signedBytes(message: string): Uint8Array

  /** The address of a public key (32 bytes) in its canonical, grouped form. */
  deriveAddress(publicKey: Uint8Array): string

  /**
   * Whether two texts name one address, whatever their grouping and case. An address that is malformed or whose check digits
   * are wrong equals nothing, itself included.
   */
  sameAddress(a: string, b: string): boolean
}

/** Checks raw Ed25519 signatures (RFC 8032). */
export interface SignatureVerifier {
  /** `portable` runs anywhere; `native` needs node:crypto. */
  readonly kind: 'portable' | 'native'

  /**
   * Whether `signature` (64 bytes) is a strict signature of `message` by `publicKey` (32 bytes). Never throws: whatever is
   * malformed, non-canonical or of small order is false.
   */
  verify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
}
