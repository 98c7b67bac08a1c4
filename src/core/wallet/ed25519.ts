import { type Ed25519Adapter, ed25519Adapter } from './ed25519-adapter.ts'
import { nimiq } from './nimiq.ts'
import { utf8Bytes } from './utf8.ts'

/**
 * Wallets and tools that sign the message's UTF-8 bytes as they are (Ed25519 without context or pre-hash, RFC 8032 §5.1).
 * Addresses are those of {@link nimiq}: the two differ in their framing only.
 */
export const ed25519: Ed25519Adapter = ed25519Adapter({
  id: 'ed25519',
  displayName: 'Ed25519',
  signedBytes: (message) => utf8Bytes(message),
  deriveAddress: nimiq.deriveAddress,
  sameAddress: nimiq.sameAddress,
})
