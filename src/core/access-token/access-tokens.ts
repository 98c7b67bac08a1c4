import { newId } from '../../base/token.ts'
import { CountersignError } from '../../shared/errors.ts'
import type { Store } from '../../store/store.ts'
import type { Session } from '../users/host.ts'
import type { SigningKeys } from './signing-keys.ts'

/** What {@link AccessTokens} are made of. */
export interface AccessTokenParts {
  /** Backends that tokens are issued for. */
  readonly audiences: readonly string[]
  /** Lifetime of a token in seconds. */
  readonly ttlSeconds: number
  /** The service's public URL, which tokens name as their issuer. */
  readonly issuer: () => string
  readonly keys: SigningKeys
  /** Whose clock tokens go by, as sessions do. */
  readonly store: Pick<Store, 'now'>
}

/** An access token and the time at which it expires, epoch milliseconds. */
export interface AccessToken {
  readonly accessToken: string
  readonly expiresAt: number
}

/** Issues signed tokens that say who is signed in, for backends that verify them without asking the service. */
export class AccessTokens {
  readonly #parts: AccessTokenParts

  constructor(parts: AccessTokenParts) {
    this.#parts = parts
  }

  /**
   * Issues a token of a live session for one audience. It expires with the session if that ends before its lifetime is over.
   * Rejects with AUDIENCE_UNKNOWN if tokens are not issued for the audience.
   */
  async issue(session: Session, audience: string): Promise<AccessToken> {
    const { audiences, ttlSeconds, issuer, keys, store } = this.#parts
    if (!audiences.includes(audience)) {
      throw new CountersignError(
        'AUDIENCE_UNKNOWN',
        'No access tokens are issued for this audience; to change that, add it to accessTokenAudiences (COUNTERSIGN_ACCESS_TOKEN_AUDIENCES)',
        { metadata: { setting: 'COUNTERSIGN_ACCESS_TOKEN_AUDIENCES' } },
      )
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
    })
    return { accessToken, expiresAt: expiry * 1000 }
  }
}

/** A JWT's time (RFC 7519, NumericDate) of epoch milliseconds: whole seconds, rounded down, because some libraries take no other. */
function inSeconds(epochMs: number): number {
  return Math.floor(epochMs / 1000)
}
