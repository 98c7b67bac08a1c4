import { secp256k1 } from '@noble/curves/secp256k1.js'
import { bytesToHex } from '../../shared/hex.ts'

/** Recovers public keys from ECDSA signatures over secp256k1 (SEC 1 §4.1.6). */
export interface KeyRecovery {
  /** `portable` is JavaScript and runs anywhere; `WebAssembly` is libsecp256k1. */
  readonly kind: 'portable' | 'WebAssembly'

  /**
   * The uncompressed public key (65 bytes) that made a signature over a digest (32 bytes); `undefined` for a malformed
   * signature. Every well-formed one yields some key, so the caller has to compare it. Never throws.
   *
   * Takes the 65 bytes r‖s‖v with v 0, 1, 27 or 28. Refuses what would be a second signature beside the one that was
   * made: s in the upper half of the group's order (EIP-2), and v of transactions (35 and above, EIP-155).
   */
  recover(digest: Uint8Array, signature: Uint8Array): Uint8Array | undefined
}

/** Recovery ids 2 and 3, for which r is reduced by the order, do not occur: such an r is of no use to a wallet. */
const parityOfV: ReadonlyMap<number | undefined, 0 | 1> = new Map([
  [0, 0],
  [1, 1],
  [27, 0],
  [28, 1],
])

const order = secp256k1.Point.Fn.ORDER
const [zero, mostR, mostS] = [0n, order - 1n, order >> 1n].map((value) => value.toString(16).padStart(64, '0')) as [
  string,
  string,
  string,
]

/**
 * The parity in a signature of the form that every honest signer gives it: 65 bytes, a v as in {@link KeyRecovery}, r
 * above 0 and below the group's order, s above 0 and in the lower half. Otherwise `undefined`. Every
 * {@link KeyRecovery} calls this first, so that all give the same answer. Whether r is the x of a point is left to it.
 */
export function strictParity(signature: Uint8Array): 0 | 1 | undefined {
  if (signature.length !== 65) return undefined
  // Hex of one length has the order of the numbers.
  const [r, s] = [bytesToHex(signature.subarray(0, 32)), bytesToHex(signature.subarray(32, 64))]
  const inRange = r > zero && r <= mostR && s > zero && s <= mostS
  return inRange ? parityOfV.get(signature[64]) : undefined
}

/** Recovers everywhere, including browsers and edge runtimes. Takes about 2 ms for a signature. */
export const portableRecovery: KeyRecovery = {
  kind: 'portable',
  recover(digest, signature) {
    const parity = strictParity(signature)
    if (parity === undefined) return undefined
    try {
      const parsed = secp256k1.Signature.fromBytes(signature.subarray(0, 64)).addRecoveryBit(parity)
      return parsed.recoverPublicKey(digest).toBytes(false)
    } catch {
      // r is not the x of a point, or the key would be the point at infinity.
      return undefined
    }
  },
}
