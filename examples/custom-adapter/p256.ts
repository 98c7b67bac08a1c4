// A wallet adapter of your own: here for wallets that sign with ECDSA on the curve P-256 (secp256r1), as secure
// elements and WebCrypto do. Nothing in it is Ed25519.
//   const service = await createCountersign({ adapters: ['nimiq', p256] }) p256.test.ts runs the contract suite over
//   it.
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { CountersignError, type WalletAdapter } from 'countersign'

/** A compressed point: its x coordinate behind 02 or 03, for the sign of y (SEC 1 §2.3.3). */
const keyBytes = 33
/** r and s, 32 bytes each (IEEE P1363). */
const signatureBytes = 64
const addressForm = /^p256:[0-9a-f]{40}$/

/** What stands before a compressed point in a SubjectPublicKeyInfo (RFC 5480 §2). */
const spkiPrefix = Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex')

/**
 * Wallets with a P-256 key. A wallet signs the SHA-256 of the message's UTF-8 bytes. Its address is `p256:` and the
 * first 20 bytes of the SHA-256 of its compressed public key, in lower-case hex.
 */
export const p256: WalletAdapter = {
  id: 'p256',
  displayName: 'P-256',

  verify(message, { publicKeyHex, signatureHex, address: claimed }) {
    const publicKey = Buffer.from(publicKeyHex, 'hex')
    const signature = Buffer.from(signatureHex, 'hex')
    if (publicKey.length !== keyBytes) throw malformed(`The public key must be ${keyBytes} bytes: a compressed point`)
    if (signature.length !== signatureBytes) throw malformed(`The signature must be ${signatureBytes} bytes: r and s`)
    const key = importKey(publicKey)
    // Whoever has a signature can make a second one, with -s in place of s. That is no second sign-in: a nonce counts
    // once.
    if (!verify('sha256', Buffer.from(message), { key, dsaEncoding: 'ieee-p1363' }, signature)) return undefined
    const address = addressOf(publicKey)
    if (claimed !== undefined && p256.readAddress(claimed) !== address) {
      throw new CountersignError('ADDRESS_MISMATCH', 'The address does not belong to the public key')
    }
    const subject = publicKey.toString('hex')
    return { adapterId: p256.id, subject, publicKeyHex: subject, address }
  },

  readAddress: (text) => (addressForm.test(text.toLowerCase()) ? text.toLowerCase() : undefined),
}

/** The address of a compressed public key. */
export function addressOf(publicKey: Uint8Array): string {
  return `p256:${createHash('sha256').update(publicKey).digest('hex').slice(0, 40)}`
}

function importKey(publicKey: Uint8Array): KeyObject {
  // The other ways to write a point would give one key several subjects.
  if (publicKey[0] !== 2 && publicKey[0] !== 3) throw malformed('The public key must be a compressed point')
  try {
    return createPublicKey({ key: Buffer.concat([spkiPrefix, publicKey]), format: 'der', type: 'spki' })
  } catch {
    throw malformed('The public key is not a point of the curve')
  }
}

function malformed(problem: string): CountersignError {
  return new CountersignError('INVALID_REQUEST', problem)
}
