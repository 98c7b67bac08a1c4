import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { Keyring } from '../../base/token.ts'

/** Public half of a key that signs access tokens, as a JWK (RFC 7517, RFC 8037). */
export interface PublicJwk {
  readonly kty: 'OKP'
  readonly crv: 'Ed25519'
  /** The public key's 32 bytes, base64url. */
  readonly x: string
  /** The key's thumbprint (RFC 7638, SHA-256). */
  readonly kid: string
  readonly alg: 'EdDSA'
  readonly use: 'sig'
}

/** A JWK Set (RFC 7517). */
export interface KeySet {
  readonly keys: readonly PublicJwk[]
}

/** The keys of access tokens: one for each of the server's secrets. */
export interface SigningKeys {
  /** The public halves, in the order of the secrets. */
  readonly keySet: KeySet
  /** Signs claims as an access token (a JWT of RFC 9068's type), with the key of the first secret. */
  sign(claims: Readonly<Record<string, unknown>>): Promise<string>
}

/**
 * Derives the keys from the server's secrets, so that all instances with the same secrets have the same keys, and nothing has to
 * be stored.
 */
export async function deriveSigningKeys(keyring: Keyring): Promise<SigningKeys> {
  // Services that issue no access tokens do not load it.
  const { calculateJwkThumbprint, SignJWT } = await import('jose')
  const [first, ...others] = keyring.derive('access token key', [])
  const publicJwk = async (privateKey: KeyObject): Promise<PublicJwk> => {
    const { x } = createPublicKey(privateKey).export({ format: 'jwk' })
    const key = { kty: 'OKP', crv: 'Ed25519', x: String(x) } as const
    return { ...key, kid: await calculateJwkThumbprint(key), alg: 'EdDSA', use: 'sig' }
  }
  const privateKey = privateKeyOf(first)
  const own = await publicJwk(privateKey)
  const all = [own, ...(await Promise.all(others.map((seed) => publicJwk(privateKeyOf(seed)))))]
  // Each once, although a list may have a secret twice: verifiers refuse a key set in which a kid is ambiguous.
  const keys = [...new Map(all.map((key) => [key.kid, key])).values()]
  return {
    keySet: { keys },
    sign: (claims) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt', kid: own.kid }).sign(privateKey),
  }
}

/** Signing keys that others can take the place of while tokens are issued. */
export class LiveSigningKeys implements SigningKeys {
  #current: SigningKeys

  constructor(keys: SigningKeys) {
    this.#current = keys
  }

  get keySet(): KeySet {
    return this.#current.keySet
  }

  sign(claims: Readonly<Record<string, unknown>>): Promise<string> {
    return this.#current.sign(claims)
  }

  /** Goes by other keys from now on. */
  replace(keys: SigningKeys): void {
    this.#current = keys
  }
}

/** What precedes the 32 bytes of a private Ed25519 key in PKCS #8 (RFC 8410). */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

function privateKeyOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' })
}
