import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newId, newToken } from '../../../src/base/token.ts'
import { provesComputerKey, requireComputerKey } from '../../../src/core/order/known-computers.ts'
import { makeComputer, proofText } from '../../support/computer.ts'

/** Prime of the field, coefficient b of the curve, and order of the base point, as FIPS 186-4 D.1.2.3 gives them. */
const p = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn
const b = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn
const n = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** The key of RFC 6979, A.2.5. The signature was made by `openssl dgst -sha256 -sign`; its s is above n/2. */
const x = 0x60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6n
const y = 0x7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299n
const subject = {
  orderId: 'AAAAAAAAAAAAAAAAAAAAAA',
  desktopToken: 'csd_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8',
}
const r = 0xe894a06a62d00d8ae251fd049f22cbfae7a53d202d741f2ec8db98ebc6eeb0a5n
const s = 0xddca6bfaeb78e89b2b671d5a8f34bed7b32e8f271a5c6572232702d50d8130ffn

const bytes32 = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex')
const base64url = (...parts: Buffer[]): string => Buffer.concat(parts).toString('base64url')
const beginning = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex')
const keyAt = (x: bigint, y: bigint): string => base64url(beginning, bytes32(x), bytes32(y))
const proofOf = (r: bigint, s: bigint): string => base64url(bytes32(r), bytes32(s))
const mod = (value: bigint): bigint => ((value % p) + p) % p
const isOnCurve = (x: bigint, y: bigint): boolean => x < p && y < p && mod(y * y) === mod(x ** 3n - 3n * x + b)

const key = keyAt(x, y)
const proof = proofOf(r, s)

/** The last character of a text whose last two or four bits are not a part of the bytes, with such a bit set. */
function withStrayBit(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1)!) + 1]
}

function refusalOf(computerKey: string): unknown {
  try {
    requireComputerKey(computerKey)
    return undefined
  } catch (error) {
    return error
  }
}

const refused = {
  reason: 'INVALID_REQUEST',
  message: expect.stringContaining('computer_key'),
  metadata: { field: 'computer_key' },
}

describe('the key of a computer', () => {
  test('is one that WebCrypto makes, whose proofs hold, whichever of the two values of s they have', async () => {
    const { key, prove } = await makeComputer()
    expect(refusalOf(key)).toBeUndefined()
    const halves = new Set<string>()
    for (let round = 0; round < 40; round++) {
      const subject = { orderId: newId(), desktopToken: newToken('desktop') }
      const proof = await prove(subject)
      expect(provesComputerKey(key, proof, subject)).toBe(true)
      const s = BigInt(`0x${Buffer.from(proof, 'base64url').subarray(32).toString('hex')}`)
      halves.add(s > n / 2n ? 'high' : 'low')
    }
    expect(halves.size).toBe(2)
  })

  const spki = (curve: string, options: object = {}): string =>
    generateKeyPairSync('ec', { namedCurve: curve, ...options })
      .publicKey.export({ type: 'spki', format: 'der' })
      .toString('base64url')
  const point = Buffer.concat([bytes32(x), bytes32(y)])
  const changed = (offset: number, value: number): string => {
    const bytes = Buffer.from(key, 'base64url')
    bytes[offset] = value
    return bytes.toString('base64url')
  }
  const compressed = Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex')

  test.each<[string, string]>([
    ['nothing', ''],
    ['another curve', spki('P-384')],
    ['another curve of this size', spki('secp256k1')],
    ['another curve under the length of P-256', changed(22, 0x08)],
    ['parameters written out', spki('P-256', { paramEncoding: 'explicit' })],
    [
      'a key of another kind',
      generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' }).toString('base64url'),
    ],
    ['a compressed point', base64url(compressed, Buffer.from([3]), bytes32(x))],
    ['a hybrid point', changed(26, 7)],
    ['the bare point', base64url(Buffer.from([4]), point)],
    ['lengths in a longer form', base64url(Buffer.from('308159', 'hex'), Buffer.from(key, 'base64url').subarray(2))],
    ['one byte more', base64url(Buffer.from(key, 'base64url'), Buffer.from([0]))],
    ['one byte less', base64url(Buffer.from(key, 'base64url').subarray(0, -1))],
    ['padding', `${key}==`],
    ['white space', `${key} `],
    ['a line break within', `${key.slice(0, 60)}\n${key.slice(60)}`],
    ['the other base64', Buffer.from(key, 'base64url').toString('base64').replace(/=+$/, '')],
    ['stray bits at its end', withStrayBit(key)],
    ['a point off the curve', keyAt(x, y + 1n)],
    ['the point at zero', keyAt(0n, 0n)],
  ])('is not %s', (_, computerKey) => {
    expect(computerKey).not.toBe(key)
    expect(refusalOf(computerKey)).toMatchObject(refused)
    expect(provesComputerKey(computerKey, proof, subject)).toBe(false)
  })

  test('has coordinates below the prime of the field, so that no key has two forms', () => {
    // y² = x³ − 3x + b has a solution for x = 5, and 5 + p still has 32 bytes.
    const x = 5n
    const y = power(mod(x ** 3n - 3n * x + b), (p + 1n) / 4n)
    expect(isOnCurve(x, y)).toBe(true)
    expect(refusalOf(keyAt(x, y))).toBeUndefined()
    expect(refusalOf(keyAt(x + p, y))).toMatchObject(refused)
    expect(refusalOf(keyAt(p, y))).toMatchObject(refused)
  })

  test('is on the curve, and every point of the curve can be one', () => {
    const coordinate = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
    fc.assert(
      fc.property(coordinate, coordinate, (x, y) => {
        expect(refusalOf(keyAt(x, y)) === undefined).toBe(isOnCurve(x, y))
        const root = power(mod(x ** 3n - 3n * x + b), (p + 1n) / 4n)
        expect(refusalOf(keyAt(x, root)) === undefined).toBe(isOnCurve(x, root))
      }),
      { numRuns: 300 },
    )
  })
})

describe('a proof', () => {
  test('of OpenSSL over a fixed order holds', () => {
    expect(refusalOf(key)).toBeUndefined()
    expect(provesComputerKey(key, proof, subject)).toBe(true)
    expect(provesComputerKey(key, proofOf(r, n - s), subject)).toBe(true)
  })

  test.each<[string, Partial<typeof subject>]>([
    ['another order', { orderId: 'AAAAAAAAAAAAAAAAAAAAAQ' }],
    ['another desktop token', { desktopToken: 'csd_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9' }],
    ['no desktop token', { desktopToken: '' }],
  ])('is not one for %s', (_, other) => {
    expect(provesComputerKey(key, proof, { ...subject, ...other })).toBe(false)
  })

  test('by another key does not hold', async () => {
    const [one, other] = [await makeComputer(), await makeComputer()]
    expect(provesComputerKey(one.key, await one.prove(subject), subject)).toBe(true)
    expect(provesComputerKey(one.key, await other.prove(subject), subject)).toBe(false)
  })

  test('over anything but the text does not hold', async () => {
    const { key, sign } = await makeComputer()
    const { orderId, desktopToken } = subject
    const texts = [
      `countersign.v1 finalize\n${orderId}\n${desktopToken}`,
      `${proofText(subject)}\n`,
      proofText(subject).replace('finalize', 'approve'),
      proofText(subject).replaceAll('\n', '\r\n'),
      proofText(subject).split('\n').slice(1).join('\n'),
      '',
    ]
    for (const text of texts) expect(provesComputerKey(key, await sign(text), subject), text).toBe(false)
  })

  const der = Buffer.concat([Buffer.from('3046022100', 'hex'), bytes32(r), Buffer.from('022100', 'hex'), bytes32(s)])

  test.each<[string, string]>([
    ['nothing', ''],
    ['not base64url', '?'.repeat(86)],
    ['zeros', proofOf(0n, 0n)],
    ['r = 0', proofOf(0n, s)],
    ['s = 0', proofOf(r, 0n)],
    ['r = n', proofOf(n, s)],
    ['s = n', proofOf(r, n)],
    ['s above n', proofOf(r, 2n ** 256n - 1n)],
    ['r and s the other way round', proofOf(s, r)],
    ['DER', der.toString('base64url')],
    ['one byte less', base64url(Buffer.from(proof, 'base64url').subarray(1))],
    ['one byte more', base64url(Buffer.from([0]), Buffer.from(proof, 'base64url'))],
    ['padding', `${proof}==`],
    ['white space', `${proof}\n`],
    ['stray bits at its end', withStrayBit(proof)],
    ['the other base64', Buffer.from(proof, 'base64url').toString('base64')],
  ])('that is malformed (%s) does not hold, and fails in no other way', (_, malformed) => {
    expect(provesComputerKey(key, malformed, subject)).toBe(false)
  })

  test('with any bit changed does not hold', () => {
    for (let bit = 0; bit < 512; bit++) {
      const bytes = Buffer.from(proof, 'base64url')
      bytes[bit >> 3]! ^= 1 << (bit & 7)
      expect(provesComputerKey(key, bytes.toString('base64url'), subject), `bit ${bit}`).toBe(false)
    }
  })

  test('of any text is answered with false', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme', minLength: 60, maxLength: 130 }))
    fc.assert(
      fc.property(text, text, (computerKey, computerProof) => {
        expect(provesComputerKey(computerKey, computerProof, subject)).toBe(false)
        expect(provesComputerKey(key, computerProof, subject)).toBe(false)
      }),
    )
  })
})

/** base ^ exponent in the field. */
function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = mod(result * square)
    square = mod(square * square)
  }
  return result
}
