import { type VerifyPublicKeyInput, verify } from 'node:crypto'
import { isStrictEncoding, portableVerifier } from './ed25519.ts'
import type { SignatureVerifier } from './wallet.ts'

const bytes = (hex: string): Uint8Array => Buffer.from(hex, 'hex')

/** RFC 8032 §7.1, TEST 2. */
const known = {
  publicKey: bytes('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'),
  message: bytes('72'),
  r: '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da',
  s: '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  /** s + L. */
  sPlusOrder: 'f52db7415978abc61b2c2eb6aeebfca0387b2eaeb4302aeeb00d291612bb0c10',
}

/** The bytes before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410 §4). */
const spkiPrefix = bytes('302a300506032b6570032100')

/** Names a key so that node:crypto imports it. */
type NameKey = (publicKey: Uint8Array) => VerifyPublicKeyInput

// The types of node:crypto know raw keys for other calls only.
const rawKey: NameKey = (key) =>
  ({ key, format: 'raw-public', asymmetricKeyType: 'ed25519' }) as unknown as VerifyPublicKeyInput

const spkiKey: NameKey = (key) => ({ key: Buffer.concat([spkiPrefix, key]), format: 'der', type: 'spki' })

/** Raw keys are the fastest to import, but the first releases of Node 24 do not know the format. */
const nameKey = works(rawKey) ? rawKey : spkiKey

function works(name: NameKey): boolean {
  try {
    return verify(null, known.message, name(known.publicKey), bytes(known.r + known.s))
  } catch {
    return false
  }
}

/** Verifies with node:crypto (OpenSSL): about 0.1 ms a signature. Choose it with {@link chooseVerifier}. */
export const nativeVerifier: SignatureVerifier = {
  kind: 'native',
  verify(signature, message, publicKey) {
    if (!isStrictEncoding(signature, publicKey)) return false
    try {
      // The key is used once, so no KeyObject is made of it.
      return verify(null, message, nameKey(publicKey), signature)
    } catch {
      // OpenSSL cannot import or check it, for example because a build or a policy has turned Ed25519 off: it proves
      // nothing.
      return false
    }
  },
}

/** The identity point and a scalar of 0. As key, R and S they satisfy the verification equation for every message. */
const identity = '01'.padEnd(64, '0')
const zero = '0'.repeat(64)

/**
 * Whether a verifier accepts a known signature and refuses four that it must refuse: over another message, with a
 * flipped bit, the forgery for the identity key, and S + L. A verifier that throws has failed.
 */
export function selfTest(verifier: SignatureVerifier): boolean {
  const { publicKey, message, r, s, sPlusOrder } = known
  const flipped = bytes(r + s)
  flipped[0] = (flipped[0] as number) ^ 1
  try {
    return (
      verifier.verify(bytes(r + s), message, publicKey) &&
      !verifier.verify(bytes(r + s), bytes('73'), publicKey) &&
      !verifier.verify(flipped, message, publicKey) &&
      !verifier.verify(bytes(identity + zero), message, bytes(identity)) &&
      !verifier.verify(bytes(r + sPlusOrder), message, publicKey)
    )
  } catch {
    return false
  }
}

/**
 * The verifier that a server uses. `auto` is the native one if it passes its {@link selfTest} (under a millisecond),
 * otherwise the portable one, which is about 100 times slower. Throws if `native` is set and fails the test.
 */
export function chooseVerifier(setting: 'auto' | 'portable' | 'native'): SignatureVerifier {
  if (setting === 'portable') return portableVerifier
  if (selfTest(nativeVerifier)) return nativeVerifier
  if (setting === 'auto') return portableVerifier
  throw new Error(
    'verifier (COUNTERSIGN_VERIFIER) cannot be native: node:crypto fails the Ed25519 self-test here; set it to ' +
      'auto or portable',
  )
}
