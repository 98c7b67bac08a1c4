import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import nacl from 'tweetnacl'
import { describe, expect, test } from 'vitest'
import { isStrictEncoding, portableVerifier } from '../../../src/core/wallet/ed25519.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { ed25519, nimiq } from '../../../src/core/wallet/nimiq.ts'
import { isSameAddress } from '../../../src/core/wallet/wallet.ts'
import { bytesToHex, hexToBytes } from '../../../src/shared/hex.ts'
import rfc8032 from '../../vectors/rfc8032.json' with { type: 'json' }
import { base, decodeInteger, encode, encodeInteger, L, p, smallOrderEncodings } from './curve.ts'

const verifiers = [portableVerifier, nativeVerifier]
const bytes = (hex: string): Uint8Array => hexToBytes(hex)!
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const join = (R: Uint8Array, S: Uint8Array): Uint8Array => Uint8Array.from([...R, ...S])
const flip = (original: Uint8Array, bit: number): Uint8Array =>
  original.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))

const vector = rfc8032.vectors[2]!
const known = {
  publicKey: bytes(vector.publicKeyHex),
  message: bytes(vector.messageHex),
  signature: bytes(vector.signatureHex),
}
const knownR = known.signature.subarray(0, 32)
const knownS = decodeInteger(known.signature.subarray(32))
/** The canonical one, then those with a sign bit, with p added to y, and with both. */
const identityEncodings = [1n, 1n + 2n ** 255n, 1n + p, 1n + p + 2n ** 255n].map(encodeInteger)

function rawPublicKey(key: KeyObject): Uint8Array {
  return Uint8Array.from(key.export({ format: 'der', type: 'spki' }).subarray(-32))
}

describe.each(verifiers)('the $kind verifier', (verifier) => {
  test.each(rfc8032.vectors)('RFC 8032 $name', ({ publicKeyHex, messageHex, signatureHex, result }) => {
    const holds = verifier.verify(bytes(signatureHex), bytes(messageHex), bytes(publicKeyHex))
    switch (result) {
      case 'valid':
        expect(holds).toBe(true)
        break
      default:
        throw new Error(`unknown result ${result}`)
    }
  })

  test('refuses a signature over another message or by another key', () => {
    expect(verifier.verify(known.signature, utf8('other'), known.publicKey)).toBe(false)
    expect(verifier.verify(known.signature, known.message, bytes(rfc8032.vectors[0]!.publicKeyHex))).toBe(false)
  })

  // Each bit takes the portable verifier about 10 ms.
  test('refuses flipped bits', () => {
    const step = verifier.kind === 'native' ? 1 : 11
    for (let bit = 0; bit < 512; bit += step) {
      expect(verifier.verify(flip(known.signature, bit), known.message, known.publicKey), `signature ${bit}`).toBe(
        false,
      )
    }
    for (let bit = 0; bit < 256; bit += step) {
      expect(verifier.verify(known.signature, known.message, flip(known.publicKey, bit)), `key ${bit}`).toBe(false)
    }
    for (let bit = 0; bit < 16; bit++) {
      expect(verifier.verify(known.signature, flip(known.message, bit), known.publicKey), `message ${bit}`).toBe(false)
    }
  })

  test('refuses other lengths without throwing', () => {
    for (const length of [0, 1, 31, 32, 33, 63, 65, 128]) {
      const other = new Uint8Array(length).fill(7)
      if (length !== 64) expect(verifier.verify(other, known.message, known.publicKey)).toBe(false)
      if (length !== 32) expect(verifier.verify(known.signature, known.message, other)).toBe(false)
    }
  })

  test('refuses S plus any multiple of the group order', () => {
    for (let S = knownS + L; S < 2n ** 256n; S += L) {
      expect(verifier.verify(join(knownR, encodeInteger(S)), known.message, known.publicKey)).toBe(false)
    }
  })

  test('refuses all that can be made without a key', () => {
    for (const message of ['', 'a', 'hello', 'a'.repeat(1000), 'héllo 😀', 'x1', 'x2', 'x3', 'x4'].map(utf8)) {
      for (const key of smallOrderEncodings) {
        for (const R of smallOrderEncodings) {
          const forged = verifier.verify(join(R, encodeInteger(0n)), message, key)
          expect(forged, `${bytesToHex(key)} ${bytesToHex(R)}`).toBe(false)
        }
      }
    }
  })

  test('refuses the identity key with an R that anyone can make', () => {
    for (const key of identityEncodings) {
      expect(verifier.verify(join(encode(base), encodeInteger(1n)), utf8('hello'), key)).toBe(false)
    }
  })

  test('takes Buffers, and leaves its arguments as they are', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const key = Buffer.from(rawPublicKey(publicKey))
    const message = Buffer.from('hello')
    const signature = sign(null, message, privateKey)
    const before = [key, message, signature].map((buffer) => buffer.toString('hex'))
    expect(verifier.verify(signature, message, key)).toBe(true)
    expect([key, message, signature].map((buffer) => buffer.toString('hex'))).toEqual(before)
  })
})

// What these tests try would be pointless if nobody were fooled by it.
describe('tweetnacl alone', () => {
  const accepts = (signature: Uint8Array, message: Uint8Array, key: Uint8Array): boolean =>
    nacl.sign.detached.verify(message, signature, key)

  test('accepts S plus multiples of the group order', () => {
    for (let S = knownS + L; S < 2n ** 256n; S += 5n * L) {
      expect(accepts(join(knownR, encodeInteger(S)), known.message, known.publicKey)).toBe(true)
    }
  })

  test('accepts signatures made without a key, by small-order keys in canonical and other encodings', () => {
    const fooled = new Set<string>()
    for (const key of smallOrderEncodings) {
      for (const R of smallOrderEncodings) {
        if (accepts(join(R, encodeInteger(0n)), utf8('hello'), key)) fooled.add(bytesToHex(key))
      }
    }
    expect([...fooled]).toEqual(expect.arrayContaining(identityEncodings.map(bytesToHex)))
    for (const key of identityEncodings) {
      expect(accepts(join(encode(base), encodeInteger(1n)), utf8('hello'), key), bytesToHex(key)).toBe(true)
    }
  })
})

describe('isStrictEncoding', () => {
  const withKey = (y: bigint): boolean => isStrictEncoding(known.signature, encodeInteger(y))
  const withR = (y: bigint): boolean =>
    isStrictEncoding(join(encodeInteger(y), known.signature.subarray(32)), known.publicKey)
  const withS = (S: bigint): boolean => isStrictEncoding(join(knownR, encodeInteger(S)), known.publicKey)

  test('takes what honest signers make', () => {
    for (const { publicKeyHex, signatureHex } of rfc8032.vectors) {
      expect(isStrictEncoding(bytes(signatureHex), bytes(publicKeyHex))).toBe(true)
    }
  })

  test('small-order points have 14 encodings, all refused as key and as R', () => {
    expect(new Set(smallOrderEncodings.map(bytesToHex)).size).toBe(14)
    for (const encoding of smallOrderEncodings) {
      expect(withKey(decodeInteger(encoding)), bytesToHex(encoding)).toBe(false)
      expect(withR(decodeInteger(encoding)), bytesToHex(encoding)).toBe(false)
    }
  })

  test.each([0, 1])('y from p on is refused, with sign bit %i', (signBit) => {
    const sign = BigInt(signBit) << 255n
    for (let y = p; y < 2n ** 255n; y++) {
      expect(withKey(y + sign), `key ${y}`).toBe(false)
      expect(withR(y + sign), `R ${y}`).toBe(false)
    }
    // p - 1 is the y of the point of order 2.
    for (const y of [2n, 3n, p - 3n, p - 2n]) {
      expect(withKey(y + sign), `key ${y}`).toBe(true)
      expect(withR(y + sign), `R ${y}`).toBe(true)
    }
  })

  test('S from the group order on is refused', () => {
    for (const S of [0n, 1n, 2n ** 252n, L - 1n]) expect(withS(S), String(S)).toBe(true)
    for (const S of [L, L + 1n, L + 2n ** 128n, 2n ** 253n, 2n ** 255n, 2n ** 256n - 1n]) {
      expect(withS(S), String(S)).toBe(false)
    }
  })
})

describe('the ed25519 adapter', () => {
  test("signs the message's UTF-8 bytes as they are", () => {
    expect(bytesToHex(ed25519.signedBytes('hé😀'))).toBe('68c3a9f09f9880')
    expect(ed25519.signedBytes('')).toHaveLength(0)
  })

  test('derives the addresses that the nimiq adapter derives', () => {
    expect(ed25519.deriveAddress(known.publicKey)).toBe(nimiq.deriveAddress(known.publicKey))
    const address = ed25519.deriveAddress(known.publicKey)
    expect(isSameAddress(ed25519, address, address.toLowerCase())).toBe(true)
  })
})
