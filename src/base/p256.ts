import { hkdfSync } from 'node:crypto'
import { p256 } from '@noble/curves/nist.js'

/** A private P-256 key as a JWK (RFC 7518, 6.2). */
export interface P256Jwk {
  readonly kty: 'EC'
  readonly crv: 'P-256'
  readonly x: string
  readonly y: string
  readonly d: string
}

/** The key that follows from 32 secret bytes. `info` names what it is for: no two purposes have the same key. */
export function p256KeyFrom(secret: Uint8Array, info: string): P256Jwk {
  // 48 bytes, so that the remainder by the order of the curve is as good as even (FIPS 186-5, A.2.1).
  const d = p256.utils.randomSecretKey(new Uint8Array(hkdfSync('sha256', secret, '', info, 48)))
  const point = p256.getPublicKey(d, false)
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')
  return { kty: 'EC', crv: 'P-256', x: text(point.subarray(1, 33)), y: text(point.subarray(33)), d: text(d) }
}
