import { base64urlnopad } from '@scure/base'
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWTHeaderParameters,
  type JWTPayload,
  jwtVerify,
  type LocalJWKSet,
} from 'jose'
import { areGroups } from '../../shared/groups.ts'
import type { Fetcher } from './introspection.ts'

/** Options of {@link verifyAccessToken}. */
export interface VerifyAccessTokenOptions {
  /** The service's publicUrl, such as `https://auth.example`: an http or https origin, without a slash at the end. */
  readonly issuer: string
  /** This backend's name: the one of the service's `accessTokens.audiences` that stands for it. */
  readonly audience: string
  /** Address of the service's key set. Default: `/.well-known/jwks.json` at the issuer. */
  readonly jwksUrl?: string | undefined
  /**
   * The key set itself (RFC 7517), in place of fetching it. Pass the same object each time: what it contains is read
   * once.
   */
  readonly keys?: { readonly keys: readonly object[] } | undefined
  /**
   * Function that fetches the key set. Pass the same one each time: each has a cache of its own. Default: the global
   * `fetch`.
   */
  readonly fetch?: Fetcher | undefined
  /**
   * Difference in seconds by which this machine's clock may be ahead of the service's, 0 to 60: an expired token is
   * accepted for so long. Default 5.
   */
  readonly clockToleranceSeconds?: number | undefined
  /**
   * Scopes that a token of an OpenID Connect client must have been granted, one or more. Without them, tokens that a
   * user's own session asked for are accepted, and those of clients are not.
   */
  readonly scopes?: readonly string[] | undefined
}

/** A wallet in an access token. */
export interface AccessTokenWallet {
  readonly adapterId: string
  readonly address: string
  /** Lower-case hex; empty if the adapter knows the wallet by its address only. */
  readonly publicKeyHex: string
}

/** What an access token says. Times are epoch milliseconds. */
export interface AccessTokenClaims {
  readonly userId: string
  /** Id of the session that the token was issued to. It can have ended since. Absent in a client's token. */
  readonly sessionId?: string | undefined
  /** Id of the OpenID Connect client that acts for the user; absent if the user's own session asked for the token. */
  readonly clientId?: string | undefined
  /** What the user has allowed the client; absent without one. */
  readonly scopes?: readonly string[] | undefined
  readonly audience: string
  /** The wallet that the session was signed in with. In a client's token only with the scope `wallet`. */
  readonly wallet?: AccessTokenWallet | undefined
  /** The user's groups when it was issued, by the people file. In a client's token only with the scope `groups`. */
  readonly groups: readonly string[]
  readonly issuedAt: number
  readonly expiresAt: number
  /** The token's own id. No two tokens have the same. */
  readonly id: string
}

/** What an access token of a user's own session says, which is not a client's. */
export interface SessionTokenClaims extends AccessTokenClaims {
  readonly sessionId: string
  readonly wallet: AccessTokenWallet
  readonly clientId?: undefined
  readonly scopes?: undefined
}

/**
 * Why an access token was not accepted:
 *
 * - TOKEN_INVALID: it is not an access token of this issuer for this audience. Answer 401.
 * - TOKEN_EXPIRED: it was one. Answer 401; the client gets another one from the service while its session lasts.
 * - KEYS_UNAVAILABLE: the key set could not be fetched, so nothing is known about the token. It never means "signed
 *   out": answer 503.
 */
export type AccessTokenErrorReason = 'TOKEN_INVALID' | 'TOKEN_EXPIRED' | 'KEYS_UNAVAILABLE'

/** An access token that was not accepted. */
export class AccessTokenError extends Error {
  override readonly name = 'AccessTokenError'
  readonly reason: AccessTokenErrorReason

  constructor(reason: AccessTokenErrorReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

/**
 * Verifies an access token without asking the service about it: its spelling, type (`at+jwt`), algorithm (ES256, or
 * EdDSA, which RFC 9864 calls Ed25519), signature, issuer, audience, time of issue and expiry, and the scopes of an
 * OpenID Connect client's. Keys come from the service's key set only; keys that the token's header names (`jku`, `jwk`,
 * `x5u`) are ignored. A token that is bound to a key of its client (`cnf`) is refused: its proof is not checked here. A
 * session that has ended is not noticed; ask the service (IntrospectSession) if it must be.
 *
 * The key set is fetched at the first token and every five minutes, and for a token of an unknown key if the last
 * answer is more than 30 seconds old. After a fetch that failed, there is none for five seconds.
 *
 * Rejects with an {@link AccessTokenError}; with a `TypeError` if an option does not fit.
 */
export async function verifyAccessToken(
  token: string,
  options: VerifyAccessTokenOptions & { readonly scopes?: undefined },
): Promise<SessionTokenClaims>
export async function verifyAccessToken(token: string, options: VerifyAccessTokenOptions): Promise<AccessTokenClaims>
export async function verifyAccessToken(token: string, options: VerifyAccessTokenOptions): Promise<AccessTokenClaims> {
  requireRules(options)
  return await verified(token, options, options.scopes)
}

/** What an access token of an OpenID Connect client says. */
interface ClientTokenClaims extends AccessTokenClaims {
  readonly clientId: string
  readonly scopes: readonly string[]
}

/** As {@link verifyAccessToken} for a client's token; the caller checks the scopes, and has checked the rules. */
export async function clientTokenClaims(
  token: string,
  rules: Omit<VerifyAccessTokenOptions, 'scopes'>,
): Promise<ClientTokenClaims> {
  const claims = await verified(token, rules, [])
  const { clientId, scopes } = claims
  if (clientId === undefined || scopes === undefined) throw invalid('it is no client’s')
  return { ...claims, clientId, scopes }
}

async function verified(
  token: string,
  options: Omit<VerifyAccessTokenOptions, 'scopes'>,
  scopes: readonly string[] | undefined,
): Promise<AccessTokenClaims> {
  const { issuer, audience, clockToleranceSeconds = 5 } = options
  const keySet = keySetOf(options)
  if (typeof token !== 'string' || token.length > maxTokenLength) throw invalid('it is not text of a token’s length')
  if (!isCanonical(token)) throw invalid('it is not spelt as it was issued')
  try {
    const { payload } = await jwtVerify(token, async (header) => await keyOf(keySet, header), {
      algorithms: [...algorithms],
      typ: 'at+jwt',
      issuer,
      audience,
      clockTolerance: clockToleranceSeconds,
    })
    requireTimes(payload, clockToleranceSeconds)
    return { ...claimsOf(payload, audience), ...holderOf(payload, scopes) }
  } catch (thrown) {
    if (thrown instanceof errors.JWTExpired) {
      throw new AccessTokenError('TOKEN_EXPIRED', 'The access token has expired', { cause: thrown })
    }
    throw thrown instanceof errors.JOSEError ? invalid(thrown.message, { cause: thrown }) : thrown
  }
}

/** Two names of one algorithm: that of RFC 8037, and that of RFC 9864. */
const ed25519Names = ['EdDSA', 'Ed25519'] as const

const algorithms = [...ed25519Names, 'ES256'] as const

/** Time in seconds by which a token can be issued in the future: this machine's clock may be behind the service's. */
const maxSecondsAhead = 60

/** Most characters of a token that is looked at. Those that the service issues have about 700, and 2,000 at most. */
const maxTokenLength = 8192

/**
 * Whether all three parts are in base64url without padding, white space and spare bits (RFC 7515, 2; RFC 4648, 3.5): a
 * token that a backend keeps a list of must not pass under another spelling.
 */
function isCanonical(token: string): boolean {
  const parts = token.split('.')
  try {
    for (const part of parts) base64urlnopad.decode(part)
    return parts.length === 3
  } catch {
    return false
  }
}

/**
 * Refuses times that are missing or no date, such as the infinity that JSON's 1e400 becomes, and an `iat` ahead of now.
 */
function requireTimes({ iat, exp, nbf = 0 }: JWTPayload, clockToleranceSeconds: number): void {
  const isTime = (value: unknown): boolean =>
    typeof value === 'number' && !Number.isNaN(new Date(value * 1000).getTime())
  if (![iat, exp, nbf].every(isTime)) throw invalid('iat, exp or nbf is not a time')
  if (Number(iat) > Date.now() / 1000 + Math.max(maxSecondsAhead, clockToleranceSeconds)) {
    throw invalid('it was issued in the future')
  }
}

/** Throws a `TypeError` if a rule of verification is missing or does not fit. */
export function requireRules({
  issuer,
  audience,
  clockToleranceSeconds = 5,
  scopes,
}: Omit<VerifyAccessTokenOptions, 'jwksUrl' | 'keys' | 'fetch'>): void {
  // A check that is left out because its option is missing would accept the tokens of others.
  if (typeof issuer !== 'string' || !isHttpOrigin(issuer)) {
    throw new TypeError('issuer must be the publicUrl of the service, an origin such as https://auth.example')
  }
  if (typeof audience !== 'string' || audience === '') {
    throw new TypeError('audience must be one of the accessTokens.audiences of the service')
  }
  if (!(clockToleranceSeconds >= 0 && clockToleranceSeconds <= 60)) {
    throw new TypeError('clockToleranceSeconds must be a number from 0 to 60')
  }
  requireScopes(scopes)
}

function requireScopes(scopes: unknown): void {
  const isScope = (value: unknown): boolean => typeof value === 'string' && /^[!#-[\]-~]+$/.test(value)
  // An empty list would accept the tokens of every client, without anything that the user has allowed.
  if (scopes === undefined || (Array.isArray(scopes) && scopes.length > 0 && scopes.every(isScope))) return
  throw new TypeError('scopes must be a list of one or more scopes, such as ["orders:read"]')
}

function isHttpOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text
}

/** The keys of a service, wherever they come from. */
type KeySource = (header: JWTHeaderParameters) => ReturnType<LocalJWKSet>

async function keyOf(keySet: KeySource, { alg, kid }: JWTHeaderParameters): ReturnType<LocalJWKSet> {
  // Without this, a token without a kid would be tried with the only key of a set.
  if (typeof kid !== 'string') throw new errors.JWSInvalid('it does not name its key')
  try {
    return await keySet({ alg, kid })
  } catch (thrown) {
    if (thrown instanceof errors.JWKSNoMatchingKey) throw thrown
    throw new AccessTokenError('KEYS_UNAVAILABLE', 'The keys of access tokens cannot be fetched; try again shortly', {
      cause: thrown,
    })
  }
}

function invalid(why: string, options?: ErrorOptions): AccessTokenError {
  return new AccessTokenError('TOKEN_INVALID', `The access token is not valid: ${why}`, options)
}

/** Text of a claim. */
function textIn(claims: object, name: string): string {
  const value: unknown = Reflect.get(claims, name)
  if (typeof value !== 'string') throw invalid(`its claim ${name} is not text`)
  return value
}

function walletIn(claim: unknown): AccessTokenWallet {
  const wallet = typeof claim === 'object' && claim !== null ? claim : {}
  return {
    adapterId: textIn(wallet, 'adapter_id'),
    address: textIn(wallet, 'address'),
    publicKeyHex: textIn(wallet, 'public_key_hex'),
  }
}

function groupsIn(claim: unknown): readonly string[] {
  if (!areGroups(claim)) throw invalid('its claim groups is not a list of groups')
  return claim
}

function claimsOf(payload: JWTPayload, audience: string): AccessTokenClaims {
  return {
    userId: textIn(payload, 'sub'),
    audience,
    ...(payload.wallet === undefined && payload.client_id !== undefined ? {} : { wallet: walletIn(payload.wallet) }),
    groups: groupsIn(payload.groups ?? []),
    // Numbers, which the verification has made sure of.
    issuedAt: Number(payload.iat) * 1000,
    expiresAt: Number(payload.exp) * 1000,
    id: textIn(payload, 'jti'),
  }
}

/** Who holds a token: a session of the user's, or a client, which must have been granted these scopes. */
function holderOf(
  { client_id: clientId, scope, sid, cnf }: JWTPayload,
  scopes: readonly string[] | undefined,
): Pick<AccessTokenClaims, 'sessionId' | 'clientId' | 'scopes'> {
  if (cnf !== undefined) throw invalid('it is bound to a key of its client')
  const isSession = sid === undefined ? clientId !== undefined : typeof sid === 'string'
  if (!isSession) throw invalid('its claim sid is not text')
  const session = sid === undefined ? {} : { sessionId: String(sid) }
  if (clientId === undefined) return session
  if (typeof clientId !== 'string') throw invalid('its claim client_id is not text')
  if (scopes === undefined) throw invalid('it is a client’s, and the option scopes is not set')
  const granted = typeof scope === 'string' ? scope.split(' ') : []
  const missing = scopes.filter((each) => !granted.includes(each))
  if (missing.length > 0) throw invalid(`the user has not allowed ${missing.join(' ')}`)
  return { ...session, clientId, scopes: granted }
}

/** Time in ms after which the key set is fetched again: as long as the service lets it be cached. */
const cacheMaxAgeMs = 300_000

/** Time in ms after a fetch that failed in which there is no other one. */
const pauseMs = 5_000

/** Most key sets that are kept for one way to fetch. Backends know one or a few issuers. */
const maxKeySets = 100

const given = new WeakMap<object, KeySource>()
const fetched = new WeakMap<Fetcher, Map<string, KeySource>>()

/** The key set that the options name, each made once, because it holds the keys that it has read. */
function keySetOf({ issuer, jwksUrl, keys, fetch = globalThis.fetch }: VerifyAccessTokenOptions): KeySource {
  if (keys !== undefined) return givenKeySet(keys)
  const address = jwksUrl ?? `${issuer}/.well-known/jwks.json`
  const byAddress = fetched.get(fetch) ?? new Map<string, KeySource>()
  fetched.set(fetch, byAddress)
  const known = byAddress.get(address)
  if (known !== undefined) return known
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hash + url.username + url.password !== '')
    throw new TypeError('jwksUrl must be an http or https address, without a user and without a #')
  const keySet = createRemoteJWKSet(url, { cacheMaxAge: cacheMaxAgeMs, [customFetch]: pausing(fetch) })
  const [oldest] = byAddress.keys()
  if (oldest !== undefined && byAddress.size >= maxKeySets) byAddress.delete(oldest)
  byAddress.set(address, keySet)
  return keySet
}

/** Fetches key sets, and for a while after a failure fails in the same way without asking. */
function pausing(fetch: Fetcher): Fetcher {
  let failure: { readonly cause: unknown; readonly until: number } | undefined
  return async (...call) => {
    if (failure !== undefined && Date.now() < failure.until) throw failure.cause
    try {
      const response = await fetch(...call)
      if (response.status !== 200) throw new TypeError(`the key set's address answers HTTP ${response.status}`)
      const keys: unknown = await response.json()
      const normal = withoutAlgorithm(keys as JSONWebKeySet)
      createLocalJWKSet(normal)
      failure = undefined
      return Response.json(normal)
    } catch (cause) {
      failure = { cause, until: Date.now() + pauseMs }
      throw cause
    }
  }
}

/** A key set in which keys of Ed25519 fit both names of the algorithm. What is no key set stays as it is. */
function withoutAlgorithm(set: JSONWebKeySet): JSONWebKeySet {
  if (!Array.isArray(set?.keys)) return set
  const keys = set.keys.map((key) => {
    const { alg, ...others } = key ?? {}
    return ed25519Names.some((name) => name === alg) ? others : key
  })
  // A set can have a key under each of the names. With both, its kid would be ambiguous.
  return { ...set, keys: [...new Map(keys.map((key) => [JSON.stringify(key), key])).values()] }
}

function givenKeySet(keys: NonNullable<VerifyAccessTokenOptions['keys']>): KeySource {
  const known = given.get(keys)
  if (known !== undefined) return known
  try {
    // It checks what it is given.
    const keySet = createLocalJWKSet(withoutAlgorithm(keys as JSONWebKeySet))
    given.set(keys, keySet)
    return keySet
  } catch (cause) {
    throw new TypeError('keys must be a JSON Web Key Set, such as {"keys": […]}', { cause })
  }
}
