import { hexToBytes as decode } from '@noble/hashes/utils.js'
import nacl from 'tweetnacl'
import { invalidField, refused } from '../../shared/errors.ts'
import { bytesToHex, hexToBytes, ownBytes } from '../../shared/hex.ts'
import { type Curve, kindAdapter, type SignatureKind } from './kind.ts'
import { isSameAddress, type SignatureVerifier, type WalletAdapter } from './wallet.ts'

/** p = 2^255 - 19, the field's prime; little-endian, like every number here. */
const fieldPrime = decode('edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f')

/** L = 2^252 + 27742317777372353535851937790883648493, the order of the base point. */
const groupOrder = decode('edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010')

/**
 * The y coordinates of the eight points whose order divides the cofactor 8: orders 1, 2, 4, 8 and 8. Both signs of x
 * belong to such a point, so y alone tells. In the first two x is 0, and the other sign is not a valid encoding.
 */
const smallOrderYs = [
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
].map(decode)

/**
 * Whether a signature and a public key have the form that every honest signer gives them: 64 and 32 bytes, S below the
 * group order, A (the key) and R each canonically encoded (y below the field's prime) and not of small order.
 *
 * RFC 8032 §5.1.7 requires all of this but the last, and verifiers differ in what they accept. A key of small order
 * has no owner: anyone can make signatures for it, and one signature by the identity fits every message. S + L is
 * a second signature that can be made without the secret. Every {@link SignatureVerifier} calls this first, so that all
 * give the same answer.
 *
 * Whether A and R lie on the curve at all is left to the verifier. Takes time that depends on its inputs; they are
 * public.
 */
export function isStrictEncoding(signature: Uint8Array, publicKey: Uint8Array): boolean {
  return (
    signature.length === 64 &&
    publicKey.length === 32 &&
    isBelow(signature.subarray(32), groupOrder) &&
    isStrictPoint(publicKey) &&
    isStrictPoint(signature.subarray(0, 32))
  )
}

function isStrictPoint(encoded: Uint8Array): boolean {
  const y = new Uint8Array(encoded)
  // The highest bit is the sign of x.
  y[31] = (y[31] as number) & 0x7f
  return isBelow(y, fieldPrime) && !smallOrderYs.some((small) => small.every((byte, index) => byte === y[index]))
}

/** Whether a < b, both little-endian and of 32 bytes. */
function isBelow(a: Uint8Array, b: Uint8Array): boolean {
  for (let index = 31; index >= 0; index--) {
    const difference = (a[index] as number) - (b[index] as number)
    if (difference !== 0) return difference < 0
  }
  return false
}

/** Verifies everywhere, including browsers and edge runtimes. Takes about 10 ms for a signature. */
export const portableVerifier: SignatureVerifier = {
  kind: 'portable',
  verify: (signature, message, publicKey) =>
    isStrictEncoding(signature, publicKey) && nacl.sign.detached.verify(ownBytes(message), signature, publicKey),
}

/** The base point (RFC 8032 §5.1), a key like any other. */
const basePoint = decode('5866666666666666666666666666666666666666666666666666666666666666')

/** Wallets that sign with Ed25519 and send their key. */
export const ed25519Curve: Curve = {
  name: 'ed25519',
  exampleKey: basePoint,
  envelopeBytes: undefined,
  byAddressOnly: false,

  identify(kind, message, proof, verifier) {
    const publicKey = readHex('public_key_hex', proof.publicKeyHex, 32)
    const signature = readHex('signature_hex', proof.signatureHex, 64)
    if (!verifier.verify(signature, kind.envelope(message), publicKey)) return undefined
    const address = kind.address(publicKey)
    if (proof.address !== undefined && !isSameAddress(kind, proof.address, address)) {
      throw refused('ADDRESS_MISMATCH')
    }
    const publicKeyHex = bytesToHex(publicKey)
    return { adapterId: kind.id, subject: publicKeyHex, publicKeyHex, address }
  },
}

/** What distinguishes one kind of Ed25519 wallet from another. */
export interface Ed25519Framing {
  readonly id: string
  readonly displayName: string
  /** The exact bytes that the wallet signs for a message. */
  signedBytes(message: string): Uint8Array
  /** The address of a public key (32 bytes) in its canonical form. */
  deriveAddress(publicKey: Uint8Array): string
  /** See {@link WalletAdapter.readAddress}. */
  readAddress(text: string): string | undefined
}

/** An adapter for Ed25519 wallets, with its framing. */
export type Ed25519Adapter = Ed25519Framing & WalletAdapter

/**
 * Makes an adapter for wallets that sign with Ed25519: keys of 32 bytes, signatures of 64, checked strictly. The
 * subject is the public key in lower-case hex. `signatureAdapter` with the curve `ed25519` does the same; this one
 * keeps the names of the framing.
 *
 * Throws a `TypeError` if the framing cannot be right, such as a `readAddress` that refuses what `deriveAddress`
 * returns.
 */
export function ed25519Adapter(framing: Ed25519Framing): Ed25519Adapter {
  const kind: SignatureKind = {
    id: framing.id,
    displayName: framing.displayName,
    curve: 'ed25519',
    envelope: (text) => framing.signedBytes(text),
    address: (publicKey) => framing.deriveAddress(publicKey),
    readAddress: (text) => framing.readAddress(text),
  }
  const { curve, envelope, verify } = kindAdapter(kind, ed25519Curve)
  return Object.assign(framing, { curve, envelope, verify })
}

/** The bytes of a field of `length` bytes in hex. INVALID_REQUEST if it has another length or any other character. */
export function readHex(field: string, hex: string, length: number): Uint8Array {
  const bytes = hexToBytes(hex)
  if (bytes?.length === length) return bytes
  throw invalidField(field, `${field} must be ${length} bytes in hex`, { bytes: String(length) })
}

const encoder = new TextEncoder()

/** Not in tests with jsdom, where libraries take no Buffer for bytes. */
const hasBuffer = typeof Buffer !== 'undefined' && Buffer.prototype instanceof Uint8Array

/**
 * The UTF-8 bytes of a text. Where there is Node's Buffer, it makes them: it takes the memory of short texts from a
 * pool, and TextEncoder asks the system for each.
 */
export const utf8Bytes: (text: string) => Uint8Array = hasBuffer
  ? (text) => Buffer.from(text)
  : (text) => ownBytes(encoder.encode(text))
