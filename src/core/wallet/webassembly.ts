import { createRequire } from 'node:module'
import { type KeyRecovery, portableRecovery, strictParity } from './secp256k1.ts'
import type { WalletAdapter } from './wallet.ts'

/** What is used of tiny-secp256k1, which is libsecp256k1 compiled to WebAssembly. */
interface TinySecp256k1 {
  /** `signature` is r‖s. Returns `null` or throws if there is no key. */
  recover(digest: Uint8Array, signature: Uint8Array, recoveryId: 0 | 1, compressed: boolean): Uint8Array | null
}

/** Recovers by tiny-secp256k1, in a quarter of the time that the portable one takes. Throws if it cannot be loaded. */
function loadRecovery(): KeyRecovery {
  // A bundle in CommonJS has no address of its module, for which this throws.
  const require = createRequire(import.meta.url)
  const { recover }: TinySecp256k1 = require('tiny-secp256k1')
  return {
    kind: 'WebAssembly',
    recover(digest, signature) {
      const parity = strictParity(signature)
      if (parity === undefined) return undefined
      try {
        return recover(digest, signature.subarray(0, 64), parity, false) ?? undefined
      } catch {
        // r is not the x of a point, or the key would be the point at infinity.
        return undefined
      }
    },
  }
}

const bytes = (hex: string): Uint8Array => Buffer.from(hex, 'hex')

/** The first example of EIP-2098, with the key for each parity. That of parity 0 signed. */
const known = {
  digest: bytes('a1de988600a42c4b4ab089b619297c17d53cffae5d5120d82d8a92d0bb3b78f2'),
  r: '68a020a209d3d56c46f38cc50a33f704f4a9a10a59377f8dd762ac66910e9b90',
  s: '7e865ad05c4035ab5792787d4a0297a43617ae897930a6fe4d822b8faea52064',
  keys: [
    '04e90c7d3640a1568839c31b70a893ab6714ef8415b9de90cedfc1c8f353a6983e625529392df7fa514bdd65a2003f6619567d79bee89830e63e932dbd42362d34',
    '04e1bbbdd5ec613cd3cea4a0e5e03c5f6b8716f944ed079e4afb278f99829c36a64d4deb3c360548c45fedef25a4822217ef2d4cd76b081adaeb2b818f13cdab02',
  ],
  /** n - s. */
  highS: '8179a52fa3bfca54a86d8782b5fd685a84972e5d3618f93d727b32fd219120dd',
  /** No point has this x. */
  noX: '5'.padStart(64, '0'),
  /** The point R = 2G and digest ÷ 2, for which the key would be the point at infinity. */
  doubleBase: 'c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5',
  halfDigest: '50ef4c4300521625a55844db0c94be0bea9e7fd72ea8906c16c549685d9dbc79',
} as const

/**
 * Whether a recovery finds both keys of a known signature, another one over another digest, and none where there is
 * none: s in the upper half, an r that is the x of no point, and the point at infinity. One that throws has failed.
 */
export function selfTest({ recover }: KeyRecovery): boolean {
  const { digest, r, s, keys, highS, noX, doubleBase, halfDigest } = known
  const keyOf = (hash: Uint8Array, rs: string, v: '1b' | '1c'): string | undefined => {
    const key = recover(hash, bytes(rs + v))
    return key && Buffer.from(key).toString('hex')
  }
  try {
    const other = keyOf(digest.toReversed(), r + s, '1b')
    return (
      keyOf(digest, r + s, '1b') === keys[0] &&
      keyOf(digest, r + s, '1c') === keys[1] &&
      other !== undefined &&
      other !== keys[0] &&
      keyOf(digest, r + highS, '1c') === undefined &&
      keyOf(digest, noX + s, '1b') === undefined &&
      keyOf(digest, doubleBase + halfDigest, '1b') === undefined
    )
  } catch {
    return false
  }
}

/**
 * What a server recovers keys with if it has the adapter `ethereum`: WebAssembly, if that can be loaded and passes its
 * {@link selfTest} (about 20 ms together), otherwise the portable one, which takes four times as long for a signature.
 * `undefined` without the adapter: then nothing is loaded.
 */
export function chooseRecovery(adapters: readonly (string | WalletAdapter)[]): KeyRecovery | undefined {
  if (!adapters.includes('ethereum')) return undefined
  try {
    const recovery = loadRecovery()
    return selfTest(recovery) ? recovery : portableRecovery
  } catch {
    // The package or WebAssembly is not there.
    return portableRecovery
  }
}
