import { refused } from '../../shared/errors.ts'
import { type Challenge, challengeMessage, type LinkLines } from '../challenge-text.ts'

/** The challenge of a sign-in or a link, with the plain text from which all texts to sign are made. */
export interface PlainChallenge extends Challenge {
  readonly appName: string
  readonly message: string
}

/**
 * What a challenge is made of. `nonce` is 256 random bits in base64url, `now` is epoch milliseconds; with `link`, it is
 * for adding a wallet to that user.
 */
export interface ChallengeParts {
  readonly nonce: string
  readonly appName: string
  readonly origin: string
  readonly ttlSeconds: number
  readonly now: number
  readonly link?: LinkLines | undefined
}

/** Makes a challenge with its text. */
export function makeChallenge({ nonce, appName, origin, ttlSeconds, now, link }: ChallengeParts): PlainChallenge {
  const challenge: Challenge = {
    ...(link === undefined
      ? { action: 'auth.login', challengeId: 'login' }
      : { action: 'auth.link', challengeId: 'link' }),
    nonce,
    origin,
    issuedAt: now,
    expiresAt: now + ttlSeconds * 1000,
  }
  return { appName, ...challenge, message: challengeMessage(appName, challenge, { link }) }
}

/** Refuses a challenge whose time is over with NONCE_EXPIRED. `now` is epoch milliseconds. */
export function requireLive({ expiresAt }: Pick<Challenge, 'expiresAt'>, now: number): void {
  if (now < expiresAt) return
  throw refused('NONCE_EXPIRED')
}
