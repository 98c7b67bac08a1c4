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
  return { privateKey, publicKey, jwk, kid: thumbprintOf(jwk) }
}

/** Thumbprint (RFC 7638) of an Ed25519 or P-256 key. */
export function thumbprintOf({
  crv,
  kty,
  x,
  y,
}: {
  crv: string
  kty: string
  x: string
  y?: string | undefined
}): string {
  // Without `y`, which JSON leaves out, for Ed25519.
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
}

/** A P-256 key pair. */
export function makeEllipticKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = publicKey.export({ format: 'jwk' }) as { kty: string; crv: string; x: string; y: string }
  return { privateKey, jwk, kid: thumbprintOf(jwk) }
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

export function es256({ privateKey }: Pick<TestKey, 'privateKey'>): (input: Buffer) => Buffer {
  return (input) => sign('sha256', input, { key: privateKey, dsaEncoding: 'ieee-p1363' })
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

/** Whether an Ed25519 or ES256 signature holds under a public key. */
export function isSignedBy(token: string, publicKey: KeyObject): boolean {
  const [header, payload, signature = ''] = token.split('.')
  const algorithm = publicKey.asymmetricKeyType === 'ec' ? 'sha256' : null
  const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
  return verify(algorithm, Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))
}
