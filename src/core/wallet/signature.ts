import { secp256k1 } from '@noble/curves/secp256k1.js'
import { invalidField } from '../../shared/errors.ts'
import { bytesToHex } from '../../shared/hex.ts'
import { ed25519Curve, readHex } from './ed25519.ts'
import { type Curve, kindAdapter, type SignatureAdapter, type SignatureCurve, type SignatureKind } from './kind.ts'

/**
 * Wallets whose key is recovered from the signature. Any well-formed signature has a key, so the proof has to say which
 * address it has to be.
 */
const secp256k1Recovered: Curve = {
  name: 'secp256k1-recovered',
  exampleKey: secp256k1.Point.BASE.toBytes(false),
  envelopeBytes: 32,
  byAddressOnly: true,

  identify(kind, message, proof) {
    if (proof.publicKeyHex !== '') {
      throw invalidField('public_key_hex', 'public_key_hex must be empty: the key is recovered from the signature')
    }
    const signature = readHex('signature_hex', proof.signatureHex, 65)
    const address = proof.address === undefined ? undefined : kind.readAddress(proof.address)
    if (address === undefined) throw invalidField('address', `address must be an address of ${kind.id}`)
    const digest = kind.envelope(message)
    if (digest.length !== 32) throw new TypeError(`the adapter "${kind.id}" has an envelope of ${digest.length} bytes`)
    const key = recoverKey(digest, signature)
    if (key === undefined || kind.readAddress(kind.address(key)) !== address) return undefined
    return { adapterId: kind.id, subject: address, publicKeyHex: '', address }
  },
}

const curves: Readonly<Record<SignatureCurve, Curve>> = {
  ed25519: ed25519Curve,
  'secp256k1-recovered': secp256k1Recovered,
}

/**
 * Makes an adapter for a kind of wallet from data: its curve, what it signs for a text, and how its addresses are
 * written. For wallets whose address follows from their key. docs/custom-wallet.md has two chains as examples.
 *
 * Throws a `TypeError` if the data cannot be right: an unknown curve, a digest of another length than 32 bytes, or a
 * `readAddress` that refuses what `address` returns.
 */
export function signatureAdapter(kind: SignatureKind): SignatureAdapter {
  if (!Object.hasOwn(curves, kind.curve)) {
    const known = Object.keys(curves).join(', ')
    throw new TypeError(`the adapter "${kind.id}" has the unknown curve ${JSON.stringify(kind.curve)}; known: ${known}`)
  }
  return kindAdapter(kind, curves[kind.curve])
}

/** Recovery ids 2 and 3, for which r is reduced by the order, do not occur: such an r is of no use to a wallet. */
const parityOfV: ReadonlyMap<number | undefined, 0 | 1> = new Map([
  [0, 0],
  [1, 1],
  [27, 0],
  [28, 1],
])

/**
 * The uncompressed public key (65 bytes) that made a signature over a digest (32 bytes); `undefined` for a malformed
 * signature. Every well-formed one yields some key, so the caller has to compare it.
 *
 * Takes the 65 bytes r‖s‖v with v 0, 1, 27 or 28. Refuses what would be a second signature beside the one that was
 * made: s in the upper half of the group's order (EIP-2), and v of transactions (35 and above, EIP-155).
 */
export function recoverKey(digest: Uint8Array, signature: Uint8Array): Uint8Array | undefined {
  const parity = parityOfV.get(signature[64])
  if (signature.length !== 65 || parity === undefined) return undefined
  try {
    const [r, s] = [signature.subarray(0, 32), signature.subarray(32, 64)].map(toInteger) as [bigint, bigint]
    const parsed = new secp256k1.Signature(r, s, parity)
    return parsed.hasHighS() ? undefined : parsed.recoverPublicKey(digest).toBytes(false)
  } catch {
    // r or s is 0 or not below the group's order, or r is not the x of a point.
    return undefined
  }
}

function toInteger(bytes: Uint8Array): bigint {
  return BigInt(`0x${bytesToHex(bytes)}`)
}
