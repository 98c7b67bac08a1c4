import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'

/** JWTs made and checked by node:crypto alone: the service signs with another library. */

/** A key pair for tests. */
export interface TestKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  /** Thumbprint of RFC 7638, made by hand. */
  readonly kid: string
  readonly jwk: { readonly kty: string; readonly crv: string; readonly x: string }
}

export function makeKey(): TestKey {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const { x } = publicKey.export({ format: 'jwk' })
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: String(x) }
  return { privateKey, publicKey, jwk, kid: thumbprintOf(jwk.x) }
}

/** Thumbprint (RFC 7638) of an Ed25519 key. */
export function thumbprintOf(x: string): string {
  return createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url')
}

/** A key set as the service publishes it. */
export function keySetOf(...keys: readonly TestKey[]) {
  return { keys: keys.map(({ jwk, kid }) => ({ ...jwk, kid, alg: 'EdDSA', use: 'sig' })) }
}

function part(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** A JWT of this header and payload, with the signature that `signer` makes of its bytes. */
export function jwt(header: object, payload: unknown, signer: (input: Buffer) => Buffer): string {
  const input = `${part(header)}.${part(payload)}`
  return `${input}.${signer(Buffer.from(input)).toString('base64url')}`
}

export function ed25519(key: TestKey): (input: Buffer) => Buffer {
  return (input) => sign(null, input, key.privateKey)
}

export function hs256(secret: string | Buffer): (input: Buffer) => Buffer {
  return (input) => createHmac('sha256', secret).update(input).digest()
}

/** Header and payload of a JWT, as they are. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
export function decoded(token: string): { readonly header: any; readonly payload: any } {
  const [header = '', payload = ''] = token.split('.').map((each) => Buffer.from(each, 'base64url').toString())
  return { header: JSON.parse(header), payload: JSON.parse(payload) }
}

/** Whether an Ed25519 signature holds under the public key with these coordinates. */
export function isSignedBy(token: string, publicKey: KeyObject): boolean {
  const [header, payload, signature = ''] = token.split('.')
  return verify(null, Buffer.from(`${header}.${payload}`), publicKey, Buffer.from(signature, 'base64url'))
}
