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
