import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { bytesToHex } from '../../../shared/hex.ts'

/**
 * The hash that wallets sign for a text (EIP-191, version 0x45). The byte 0x19 in front is not the beginning of any encoded
 * transaction.
 */
export function signedHash(text: string): Uint8Array {
  const bytes = utf8ToBytes(text)
  return keccak_256(concatBytes(utf8ToBytes(`\x19Ethereum Signed Message:\n${bytes.length}`), bytes))
}

/** Whether a signature has the length of a key's: 65 bytes, or 64 in the compact form of EIP-2098. */
export function isKeyLength({ length }: Uint8Array): boolean {
  return length === 64 || length === 65
}

/**
 * The uncompressed public key (65 bytes) of which a signature over a hash is; `undefined` if there is none. Any signature that is
 * well-formed has one, so the caller has to compare it.
 *
 * Takes r‖s‖v with v 0, 1, 27 or 28, and the 64 bytes of EIP-2098. Refuses what would be a second signature beside the one that
 * was made: s in the upper half of the group's order (EIP-2), and v of transactions (35 and above, EIP-155).
 */
export function recoverKey(hash: Uint8Array, signature: Uint8Array): Uint8Array | undefined {
  const parts = split(signature)
  if (parts === undefined) return undefined
  try {
    const parsed = new secp256k1.Signature(parts.r, parts.s, parts.parity)
    return parsed.hasHighS() ? undefined : parsed.recoverPublicKey(hash).toBytes(false)
  } catch {
    // r or s is 0 or not below the group's order, or r is not the x of a point.
    return undefined
  }
}

interface SignatureParts {
  readonly r: bigint
  readonly s: bigint
  readonly parity: 0 | 1
}

/** Recovery ids 2 and 3, for which r is reduced by the order, do not exist in Ethereum. */
const parityOfV: ReadonlyMap<number | undefined, 0 | 1> = new Map([
  [0, 0],
  [1, 1],
  [27, 0],
  [28, 1],
])

function split(signature: Uint8Array): SignatureParts | undefined {
  if (!isKeyLength(signature)) return undefined
  const r = toInteger(signature.subarray(0, 32))
  if (signature.length === 65) {
    const parity = parityOfV.get(signature[64])
    return parity === undefined ? undefined : { r, s: toInteger(signature.subarray(32, 64)), parity }
  }
  const parityAndS = toInteger(signature.subarray(32))
  const top = 1n << 255n
  return { r, s: parityAndS & (top - 1n), parity: parityAndS < top ? 0 : 1 }
}

function toInteger(bytes: Uint8Array): bigint {
  return BigInt(`0x${bytesToHex(bytes)}`)
}

/** The lower-case address of an uncompressed public key (65 bytes). */
export function addressOf(publicKey: Uint8Array): string {
  return `0x${bytesToHex(keccak_256(publicKey.subarray(1)).subarray(12))}`
}

/**
 * Whether bytes are a public key in one of its forms: 33 bytes compressed, 65 uncompressed, or 64, which is the latter without
 * its first byte. `publicKey` has 65.
 */
export function isFormOfKey(bytes: Uint8Array, publicKey: Uint8Array): boolean {
  const forms = [publicKey, publicKey.subarray(1), secp256k1.Point.fromBytes(publicKey).toBytes(true)]
  return forms.some((form) => bytesToHex(form) === bytesToHex(bytes))
}
