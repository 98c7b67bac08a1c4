import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { type Keyring, newId } from '../base/token.ts'
import { refused } from '../shared/errors.ts'
import type { AccessToken } from '../shared/session.ts'
import type { Store } from '../store/store.ts'
import type { Session } from './users/host.ts'

/** Parts of {@link AccessTokens}. */
export interface AccessTokenParts {
  /** Backends that tokens are issued for. */
  readonly audiences: readonly string[]
  /** Lifetime of a token in seconds. */
  readonly ttlSeconds: number
  /** The service's public URL, which tokens name as their issuer. */
  readonly issuer: () => string
  readonly keys: SigningKeys
  /** The groups of a session's user. */
  readonly groupsOf: (session: Session) => readonly string[]
  /** The clock of tokens, as of sessions. */
  readonly store: Pick<Store, 'now'>
}

/** Issues signed tokens that say who is signed in, for backends that verify them without asking the service. */
export class AccessTokens {
  readonly #parts: AccessTokenParts

  constructor(parts: AccessTokenParts) {
    this.#parts = parts
  }

  /**
   * Issues a token of a live session for one audience. It expires with the session if that ends before its lifetime is
   * over. Rejects with AUDIENCE_UNKNOWN if tokens are not issued for the audience.
   */
  async issue(session: Session, audience: string): Promise<AccessToken> {
    const { audiences, ttlSeconds, issuer, keys, groupsOf, store } = this.#parts
    if (!audiences.includes(audience)) {
      throw refused('AUDIENCE_UNKNOWN', { metadata: { setting: 'COUNTERSIGN_ACCESS_TOKEN_AUDIENCES' } })
    }
    const now = store.now()
    const expiry = inSeconds(Math.min(now + ttlSeconds * 1000, session.expiresAt))
    const accessToken = await keys.sign({
      iss: issuer(),
      sub: session.userId,
      aud: audience,
      sid: session.id,
      iat: inSeconds(now),
      exp: expiry,
      jti: newId(),
      wallet: { adapter_id: session.adapterId, address: session.address, public_key_hex: session.publicKeyHex },
      groups: groupsOf(session),
    })
    return { accessToken, expiresAt: expiry * 1000 }
  }
}

/**
 * A JWT's time (RFC 7519, NumericDate) of epoch milliseconds: whole seconds, rounded down, because some libraries take
 * no other.
 */
function inSeconds(epochMs: number): number {
  return Math.floor(epochMs / 1000)
}

/** Algorithms that access tokens can be signed with. The last two are names of one (RFC 8037, RFC 9864). */
export type AccessTokenAlgorithm = 'ES256' | 'EdDSA' | 'Ed25519'

/** Public half of a key that signs access tokens, as a JWK (RFC 7517, RFC 7518, RFC 8037). */
export interface PublicJwk {
  readonly kty: 'EC' | 'OKP'
  readonly crv: 'P-256' | 'Ed25519'
  /** 32 bytes, base64url: the point's first coordinate, or the whole Ed25519 key. */
  readonly x: string
  /** The point's second coordinate; absent for Ed25519. */
  readonly y?: string
  /** The key's thumbprint (RFC 7638, SHA-256). */
  readonly kid: string
  readonly alg: AccessTokenAlgorithm
  readonly use: 'sig'
}

/** A JWK Set (RFC 7517). */
export interface KeySet {
  readonly keys: readonly PublicJwk[]
}

/** The keys of access tokens: one of each kind for each of the server's secrets. */
export interface SigningKeys {
  /** The public halves: those of the algorithm that signs first, each kind in the order of the secrets. */
  readonly keySet: KeySet
  /** Signs claims as an access token (a JWT of RFC 9068's type), with the key of the first secret. */
  sign(claims: Readonly<Record<string, unknown>>): Promise<string>
}

/**
 * Derives the keys from the server's secrets, so that all instances with the same secrets have the same keys, and
 * nothing has to be stored. Those of the other kind are in the key set, too, so that the algorithm can be changed
 * without a token that does not verify.
 */
export async function deriveSigningKeys(keyring: Keyring, algorithm: AccessTokenAlgorithm): Promise<SigningKeys> {
  // Services that issue no access tokens do not load these.
  const { calculateJwkThumbprint, SignJWT } = await import('jose')
  const { p256KeyFrom } = await import('../base/p256.ts')
  const seeds = keyring.derive('access token key', [])
  const elliptic = seeds.map((seed) =>
    createPrivateKey({ key: { ...p256KeyFrom(seed, 'countersign access token ES256') }, format: 'jwk' }),
  )
  const edwards = seeds.map(ed25519KeyFrom)
  const isElliptic = algorithm === 'ES256'
  const publicJwk = async (privateKey: KeyObject, alg: AccessTokenAlgorithm): Promise<PublicJwk> => {
    const key = createPublicKey(privateKey).export({ format: 'jwk' }) as Pick<PublicJwk, 'kty' | 'crv' | 'x' | 'y'>
    return { ...key, kid: await calculateJwkThumbprint(key), alg, use: 'sig' }
  }
  const kinds = [
    ...elliptic.map((key) => publicJwk(key, 'ES256')),
    ...edwards.map((key) => publicJwk(key, isElliptic ? 'EdDSA' : algorithm)),
  ]
  const published = await Promise.all(kinds)
  // Each once, although a list may have a secret twice: verifiers refuse a key set in which a kid is ambiguous.
  const keys = [...new Map(published.map((key) => [key.kid, key])).values()].sort(
    (a, b) => Number(b.alg === algorithm) - Number(a.alg === algorithm),
  )
  const privateKey = (isElliptic ? elliptic : edwards)[0] as KeyObject
  const { kid } = keys[0] as PublicJwk
  return {
    keySet: { keys },
    sign: (claims) => new SignJWT(claims).setProtectedHeader({ alg: algorithm, typ: 'at+jwt', kid }).sign(privateKey),
  }
}

/** As {@link deriveSigningKeys}, and derived anew whenever the secrets are replaced. */
export async function liveSigningKeys(keyring: Keyring, algorithm: AccessTokenAlgorithm): Promise<SigningKeys> {
  let current = await deriveSigningKeys(keyring, algorithm)
  keyring.follow(async (next) => {
    const keys = await deriveSigningKeys(next, algorithm)
    return () => {
      current = keys
    }
  })
  return {
    get keySet() {
      return current.keySet
    },
    sign: (claims) => current.sign(claims),
  }
}

/** What precedes the 32 bytes of a private Ed25519 key in PKCS #8 (RFC 8410). */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

function ed25519KeyFrom(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' })
}
