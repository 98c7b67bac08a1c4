import { CountersignError } from '../../shared/errors.ts'
import { bytesToHex, hexToBytes } from '../../shared/hex.ts'
import type { WalletAdapter } from './wallet.ts'

/** What distinguishes one kind of Ed25519 wallet from another. */
export interface Ed25519Framing {
  readonly id: string
  readonly displayName: string
  /** The exact bytes that the wallet signs for a message. */
  signedBytes(message: string): Uint8Array
  /** The address of a public key (32 bytes) in its canonical form. */
  deriveAddress(publicKey: Uint8Array): string
  /** See {@link WalletAdapter.sameAddress}. */
  sameAddress(a: string, b: string): boolean
}

/** An adapter for Ed25519 wallets, with its framing. */
export type Ed25519Adapter = Ed25519Framing & WalletAdapter

/**
 * Makes an adapter for wallets that sign with Ed25519: keys of 32 bytes, signatures of 64, checked strictly. The subject is the
 * public key in lower-case hex.
 */
export function ed25519Adapter(framing: Ed25519Framing): Ed25519Adapter {
  const verify: WalletAdapter['verify'] = (message, proof, verifier) => {
    const publicKey = readHex('public_key_hex', proof.publicKeyHex, 32)
    const signature = readHex('signature_hex', proof.signatureHex, 64)
    if (!verifier.verify(signature, framing.signedBytes(message), publicKey)) return undefined
    const address = framing.deriveAddress(publicKey)
    if (proof.address !== undefined && !framing.sameAddress(proof.address, address)) {
      throw new CountersignError('ADDRESS_MISMATCH', 'The address does not belong to the public key')
    }
    const publicKeyHex = bytesToHex(publicKey)
    return { adapterId: framing.id, subject: publicKeyHex, publicKeyHex, address }
  }
  return Object.assign(framing, { verify })
}

/** The bytes of a field of `length` bytes in hex. INVALID_REQUEST if it has another length or any other character. */
export function readHex(field: string, hex: string, length: number): Uint8Array {
  const bytes = hexToBytes(hex)
  if (bytes?.length === length) return bytes
  throw new CountersignError('INVALID_REQUEST', `${field} must be ${length} bytes in hex`, {
    metadata: { field, bytes: String(length) },
  })
}
