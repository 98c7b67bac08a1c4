import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import nacl from 'tweetnacl'
import { expect, test } from 'vitest'
import { portableVerifier } from '../../../src/core/wallet/ed25519.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import {
  add,
  base,
  decode,
  encode,
  encodeInteger,
  equal,
  hashScalar,
  isStrictSignature,
  L,
  mod,
  multiply,
  type Point,
  p,
  smallOrderEncodings,
  torsion,
} from './curve.ts'

const timeout = 120_000

/** The one answer of both verifiers, which must be that of the definition. */
function verdict(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean {
  const answer = isStrictSignature(signature, message, publicKey)
  expect(nativeVerifier.verify(signature, message, publicKey), 'native').toBe(answer)
  expect(portableVerifier.verify(signature, message, publicKey), 'portable').toBe(answer)
  return answer
}

const join = (R: Uint8Array, S: bigint): Uint8Array => Uint8Array.from([...R, ...encodeInteger(S)])
const scalar = fc.bigInt({ min: 1n, max: L - 1n })
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 })
const anyMessage = fc.uint8Array({ maxLength: 200 })
const anyY = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 255n - 1n }),
  fc.bigInt({ min: 0n, max: 20n }),
  fc.bigInt({ min: p - 20n, max: 2n ** 255n - 1n }),
)
const anyPoint = fc.oneof(
  fc.tuple(anyY, fc.boolean()).map(([y, sign]) => encodeInteger(y + (sign ? 2n ** 255n : 0n))),
  fc.constantFrom(...smallOrderEncodings),
  scalar.map((secret) => encode(multiply(base, secret))),
)
const anyS = fc.oneof(
  scalar,
  fc.constantFrom(0n, 1n, L - 1n, L, L + 1n, 2n ** 252n, 2n ** 253n, 2n ** 255n, 2n ** 256n - 1n),
)

/** Signs with a secret scalar and a nonce scalar of one's choice, either of which may be 0, and any torsion added. */
function signAtWill(secret: bigint, nonce: bigint, R: Uint8Array, A: Uint8Array, message: Uint8Array): bigint {
  return mod(nonce + hashScalar(R, A, message) * secret, L)
}

test('random bytes', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 130 }),
      anyMessage,
      fc.uint8Array({ maxLength: 66 }),
      (signature, message, key) => {
        expect(verdict(signature, message, key)).toBe(false)
      },
    ),
  )
})

test('points and scalars at their edges', { timeout }, () => {
  fc.assert(
    fc.property(anyPoint, anyS, anyMessage, anyPoint, (R, S, message, key) => {
      expect(verdict(join(R, S), message, key)).toBe(false)
    }),
    { numRuns: 400 },
  )
})

interface Proof {
  readonly R: Uint8Array
  readonly S: bigint
  readonly message: Uint8Array
  readonly key: Uint8Array
}

type Mutation = (proof: Proof) => Partial<Proof>

function flip(bytes: Uint8Array, bit: number): Uint8Array {
  return bytes.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))
}

const bit = fc.nat(255)
const mutation = fc.oneof<fc.Arbitrary<Mutation>[]>(
  fc.constant(() => ({})),
  bit.map((at) => ({ R }) => ({ R: flip(R, at) })),
  bit.map((at) => ({ S }) => ({ S: S ^ (1n << BigInt(at)) })),
  bit.map((at) => ({ message }) => ({ message: flip(message, at % (8 * message.length + 1)) })),
  bit.map((at) => ({ key }) => ({ key: flip(key, at) })),
  fc.bigInt({ min: 1n, max: 14n }).map((multiple) => ({ S }) => ({ S: S + multiple * L })),
  anyPoint.map((R) => () => ({ R })),
  anyPoint.map((key) => () => ({ key })),
)

test('valid signatures and their mutations', { timeout }, () => {
  const seen = { accepted: 0, refused: 0 }
  fc.assert(
    fc.property(scalar, scalar, anyMessage, mutation, (secret, nonce, message, mutate) => {
      const key = encode(multiply(base, secret))
      const R = encode(multiply(base, nonce))
      const valid: Proof = { R, S: signAtWill(secret, nonce, R, key, message), message, key }
      const mutated: Proof = { ...valid, ...mutate(valid) }
      // Some mutations hit upon what was there before.
      const isSame = isDeepStrictEqual(mutated, valid)
      expect(verdict(join(mutated.R, mutated.S), mutated.message, mutated.key)).toBe(isSame)
      seen[isSame ? 'accepted' : 'refused']++
    }),
    { numRuns: 300 },
  )
  expect(seen.accepted).toBeGreaterThan(10)
  expect(seen.refused).toBeGreaterThan(100)
})

test('mixed-order keys and R, whether their torsion cancels or not', { timeout }, () => {
  const seen = { accepted: 0, refused: 0 }
  const index = fc.nat(7)
  fc.assert(
    fc.property(scalar, scalar, index, index, anyMessage, (secret, nonce, a, r, message) => {
      const A = encode(add(multiply(base, secret), torsion[a] as Point))
      const R = encode(add(multiply(base, nonce), torsion[r] as Point))
      const cancels = (hashScalar(R, A, message) * BigInt(a) + BigInt(r)) % 8n === 0n
      expect(verdict(join(R, signAtWill(secret, nonce, R, A, message)), message, A)).toBe(cancels)
      seen[cancels ? 'accepted' : 'refused']++
    }),
    { numRuns: 250 },
  )
  expect(seen.accepted).toBeGreaterThan(5)
  expect(seen.refused).toBeGreaterThan(50)
})

test('signatures that satisfy the equation: only strict ones hold, though tweetnacl takes them all', {
  timeout,
}, () => {
  const seen = { strict: 0, keyless: 0, smallR: 0, largeS: 0, otherEncoding: 0 }
  const maybe = (value: fc.Arbitrary<bigint>): fc.Arbitrary<bigint> => fc.oneof(fc.constant(0n), value)
  fc.assert(
    fc.property(
      maybe(scalar),
      maybe(scalar),
      fc.nat(7),
      fc.nat(7),
      fc.nat(13),
      maybe(fc.bigInt({ min: 1n, max: 14n })),
      (secret, nonce, a, factor, encoding, multiple) => {
        // A multiple of the key's torsion can be cancelled by it.
        const r = (a * factor) % 8
        const key = add(multiply(base, secret), torsion[a] as Point)
        const encodings = smallOrderEncodings.filter((encoded) => equal(decode(encoded) as Point, key))
        const A = encodings[encoding % encodings.length] ?? encode(key)
        const R = encode(add(multiply(base, nonce), torsion[r] as Point))
        let message: Uint8Array = new Uint8Array()
        for (let attempt = 0n; (hashScalar(R, A, message) * BigInt(a) + BigInt(r)) % 8n !== 0n; attempt++) {
          message = encodeInteger(attempt)
        }
        const S = signAtWill(secret, nonce, R, A, message) + multiple * L
        expect(nacl.sign.detached.verify(message, join(R, S), A), 'tweetnacl alone').toBe(true)

        const strict = secret !== 0n && nonce !== 0n && multiple === 0n
        expect(verdict(join(R, S), message, A)).toBe(strict)
        if (strict) seen.strict++
        if (secret === 0n) seen.keyless++
        if (nonce === 0n && secret !== 0n && multiple === 0n) seen.smallR++
        if (multiple !== 0n && secret !== 0n && nonce !== 0n) seen.largeS++
        if (Buffer.compare(A, encode(key)) !== 0) seen.otherEncoding++
      },
    ),
    { numRuns: 300 },
  )
  for (const [kind, count] of Object.entries(seen)) expect(count, kind).toBeGreaterThan(0)
})

test('the arithmetic behind these tests agrees with RFC 8032', () => {
  expect(encode(base)).toEqual(encodeInteger(BigInt(`0x${'66'.repeat(31)}58`)))
  fc.assert(
    fc.property(bytes32, (seed) => {
      const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(seed)
      const message = seed.subarray(0, 5)
      expect(isStrictSignature(nacl.sign.detached(message, secretKey), message, publicKey)).toBe(true)
    }),
    { numRuns: 10 },
  )
})
