import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { hashToken } from '../../base/token.ts'
import { CountersignError } from '../../shared/errors.ts'

/**
 * How the SubjectPublicKeyInfo of an uncompressed P-256 key begins: everything but the coordinates. Compared byte by byte, so that
 * there is no other curve, no compressed point and no second encoding of the same key, under which it would be another computer.
 */
const spkiBeginning = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex')

/** Bytes of the key: its fixed beginning, then x and y of 32 bytes each. */
const keyBytes = spkiBeginning.length + 64

/** Bytes of a proof: r, then s, of 32 bytes each. */
const proofBytes = 64

/**
 * Checks the public key of a computer: P-256, the uncompressed SubjectPublicKeyInfo (RFC 5480) of 91 bytes in base64url, a point
 * on the curve. Throws INVALID_REQUEST if it is anything else.
 */
export function requireComputerKey(computerKey: string): void {
  if (readKey(computerKey) !== undefined) return
  throw new CountersignError(
    'INVALID_REQUEST',
    'computer_key must be an uncompressed P-256 public key as SubjectPublicKeyInfo (91 bytes), in base64url without padding',
    { metadata: { field: 'computer_key' } },
  )
}

/** Names an order for a proof of possession. */
export interface ComputerProofSubject {
  readonly orderId: string
  /** Secret. The proof contains its hash only. */
  readonly desktopToken: string
}

/**
 * Whether a proof shows possession of the private key, for this order and this desktop token: an ECDSA signature with SHA-256, r
 * and s of 32 bytes each, in base64url. False for anything malformed. Either of the two values of s counts, because WebCrypto makes
 * both; so a proof must never serve to tell one call from another.
 */
export function provesComputerKey(computerKey: string, computerProof: string, subject: ComputerProofSubject): boolean {
  const key = readKey(computerKey)
  const signature = fromBase64url(computerProof, proofBytes)
  if (key === undefined || signature === undefined) return false
  return verify('sha256', Buffer.from(proofText(subject)), { key, dsaEncoding: 'ieee-p1363' }, signature)
}

/** The text that a computer signs to finalize an order. */
function proofText({ orderId, desktopToken }: ComputerProofSubject): string {
  return `countersign.v1 finalize\n${orderId}\n${hashToken(desktopToken)}`
}

/** A computer's public key; `undefined` if it is not one. */
function readKey(computerKey: string): KeyObject | undefined {
  const spki = fromBase64url(computerKey, keyBytes)
  if (spki === undefined || !spki.subarray(0, spkiBeginning.length).equals(spkiBeginning)) return undefined
  try {
    return createPublicKey({ key: spki, format: 'der', type: 'spki' })
  } catch {
    // The coordinates are not those of a point on the curve.
    return undefined
  }
}

/** Decodes base64url without padding in its one canonical form; `undefined` for any other text or length. */
function fromBase64url(text: string, length: number): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.length === length && bytes.toString('base64url') === text ? bytes : undefined
}
