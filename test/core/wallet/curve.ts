import { createHash } from 'node:crypto'

/**
 * Enough arithmetic on edwards25519 (RFC 8032 §5.1) to make signatures that no honest signer makes. Nothing here is
 * fast, or safe with secrets.
 */
export const p = 2n ** 255n - 19n
/** The order of the base point. */
export const L = 2n ** 252n + 27742317777372353535851937790883648493n
const d = mod(-121665n * power(121666n, p - 2n))
const sqrtMinusOne = power(2n, (p - 1n) / 4n)

export interface Point {
  readonly x: bigint
  readonly y: bigint
}

const identity: Point = { x: 0n, y: 1n }
export const base = decode(encodeInteger((4n * power(5n, p - 2n)) % p)) as Point

/** The eight points whose order divides 8: multiples of one of order 8. */
export const torsion: readonly Point[] = (() => {
  // L times any point leaves what it has of small order; the first y that leaves a whole order of 8 will do.
  for (let y = 2n; ; y++) {
    const point = decode(encodeInteger(y))
    if (point === undefined) continue
    const small = multiply(point, L)
    if (!equal(multiply(small, 4n), identity)) return Array.from({ length: 8 }, (_, n) => multiply(small, BigInt(n)))
  }
})()

export function mod(value: bigint, modulus = p): bigint {
  const rest = value % modulus
  return rest < 0n ? rest + modulus : rest
}

function power(number: bigint, exponent: bigint): bigint {
  let result = 1n
  for (let square = number, rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % p
    square = (square * square) % p
  }
  return result
}

export function equal(a: Point, b: Point): boolean {
  return a.x === b.x && a.y === b.y
}

export function add(a: Point, b: Point): Point {
  return fromExtended(addExtended(toExtended(a), toExtended(b)))
}

export function multiply(point: Point, scalar: bigint): Point {
  let result = toExtended(identity)
  for (let double = toExtended(point), rest = scalar; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = addExtended(result, double)
    double = addExtended(double, double)
  }
  return fromExtended(result)
}

type Extended = readonly [x: bigint, y: bigint, z: bigint, t: bigint]

function toExtended({ x, y }: Point): Extended {
  return [x, y, 1n, mod(x * y)]
}

function fromExtended([x, y, z]: Extended): Point {
  const inverse = power(z, p - 2n)
  return { x: mod(x * inverse), y: mod(y * inverse) }
}

/** RFC 8032 §5.1.4; complete, so that it doubles as well. */
function addExtended(a: Extended, b: Extended): Extended {
  const A = mod((a[1] - a[0]) * (b[1] - b[0]))
  const B = mod((a[1] + a[0]) * (b[1] + b[0]))
  const C = mod(2n * d * mod(a[3] * b[3]))
  const D = mod(2n * a[2] * b[2])
  return [mod((B - A) * (D - C)), mod((D + C) * (B + A)), mod((D - C) * (D + C)), mod((B - A) * (B + A))]
}

/** The canonical encoding. */
export function encode({ x, y }: Point): Uint8Array {
  return encodeInteger(y + ((x & 1n) << 255n))
}

/** The point with a y, which may be p or more, and the sign bit given; `undefined` when there is none. */
export function decode(encoded: Uint8Array): Point | undefined {
  const y = mod(decodeInteger(encoded) & (2n ** 255n - 1n))
  const numerator = mod(y * y - 1n)
  const xx = mod(numerator * power(mod(d * y * y + 1n), p - 2n))
  let x = power(xx, (p + 3n) / 8n)
  if (mod(x * x) !== xx) x = mod(x * sqrtMinusOne)
  if (mod(x * x) !== xx) return undefined
  if ((x & 1n) !== BigInt((encoded[31] as number) >> 7)) x = mod(-x)
  return { x, y }
}

/** 32 bytes, little-endian. */
export function encodeInteger(value: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, index) => Number((value >> BigInt(8 * index)) & 255n))
}

export function decodeInteger(encoded: Uint8Array): bigint {
  return encoded.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n)
}

/** k = H(R || A || message) mod L, as the verification equation S B = R + k A has it. */
export function hashScalar(R: Uint8Array, A: Uint8Array, message: Uint8Array): bigint {
  return decodeInteger(createHash('sha512').update(R).update(A).update(message).digest()) % L
}

/** The definition of a strict signature, word for word: every condition on points is checked on points. */
export function isStrictSignature(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean {
  if (signature.length !== 64 || publicKey.length !== 32) return false
  const encodedR = signature.subarray(0, 32)
  const A = decode(publicKey)
  const R = decode(encodedR)
  const S = decodeInteger(signature.subarray(32))
  if (A === undefined || R === undefined || S >= L) return false
  if (!same(encode(A), publicKey) || !same(encode(R), encodedR)) return false
  if (equal(multiply(A, 8n), identity) || equal(multiply(R, 8n), identity)) return false
  return equal(multiply(base, S), add(R, multiply(A, hashScalar(encodedR, publicKey, message))))
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

/**
 * The 14 encodings of the eight small-order points: five values of y, two of which are below 2^255 with p added too,
 * and either sign bit.
 */
export const smallOrderEncodings: readonly Uint8Array[] = [...new Set(torsion.map(({ y }) => y))]
  .flatMap((y) => [y, y + p])
  .filter((y) => y < 2n ** 255n)
  .flatMap((y) => [encodeInteger(y), encodeInteger(y + 2n ** 255n)])
