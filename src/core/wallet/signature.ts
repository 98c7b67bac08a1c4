import { secp256k1 } from '@noble/curves/secp256k1.js'
import { invalidField } from '../../shared/errors.ts'
import { ed25519Curve, readHex } from './ed25519.ts'
import { type Curve, kindAdapter, type SignatureAdapter, type SignatureKind } from './kind.ts'
import { portableRecovery } from './secp256k1.ts'
import type { SignatureCurve } from './wallet.ts'

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
    const key = portableRecovery.recover(digest, signature)
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
