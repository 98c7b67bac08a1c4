import { sessionCookieName } from '../../shared/header-text.ts'
import { parseOrigin } from '../../shared/origin.ts'
import { type Fetcher, localIntrospection, remoteIntrospection, type SessionSource } from './introspection.ts'
import { type Credential, credentialOf, isToken, type RequestInput, readRequest } from './request.ts'
import type { Session } from './session.ts'
import { SessionChecks } from './session-checks.ts'

/** Checks who is signed in. */
export interface SessionVerifier {
  /**
   * The live session of a token or of a request; `undefined` if it has none: no token, a token that is unknown, expired or revoked,
   * or a cookie that does not count. The session is frozen, and is not extended by this.
   *
   * A string is a bearer token. Of a request, the token of `Authorization: Bearer` counts or, without one, the session's cookie. A
   * cookie counts only if the request's Origin is trusted or, without an Origin, if the method is GET or HEAD. Of `Headers` alone
   * the method is not known: pass the whole request where there is one.
   *
   * Rejects with a `SessionCheckError` if the service cannot be asked: that is an outage, and never "signed out". Rejects with a
   * `TypeError` if the input is none of these.
   */
  verify(input: string | RequestInput): Promise<Session | undefined>

  /**
   * Why the session cookie of a request does not count for {@link verify}, as a sentence; `undefined` if the request has none, or its
   * cookie counts. The guards answer such a request with 403, because signing in again would not help it.
   */
  cookieRefusal?(input: RequestInput): string | undefined
}

/** Options of every session verifier. */
export interface SessionCheckOptions {
  /**
   * Time for which a session is believed without asking again, in seconds, 0 to 60. A revoked session is refused at the latest this
   * long after it was revoked. With 0, every check asks. Default 5.
   */
  readonly cacheSeconds?: number | undefined
  /**
   * Origins whose pages may use a session's cookie, such as `https://app.example`. Default: the origin that the request was sent to
   * by its own URL or Host header, and that of `publicUrl`. A bearer token needs none.
   */
  readonly trustedOrigins?: readonly string[] | undefined
  /** Time limit of a call to the service, in milliseconds, 1 to 60,000. Default 5,000. */
  readonly timeoutMs?: number | undefined
  /** Receiver of each reason for which a cookie was refused, the first time it occurs, at most 100. Default: `console.warn`. */
  readonly warn?: ((line: string) => void) | undefined
}

/** Options of a verifier that asks a service over HTTP. */
export interface RemoteSessionVerifierOptions extends SessionCheckOptions {
  /** Address at which this program reaches the service, such as `http://countersign:8080`. */
  readonly url: string
  /**
   * Address by which people reach the service (its setting `publicUrl`), if it is another. With https, the session's cookie has
   * the name `__Host-countersign_session`, else `countersign_session`; no other name counts. Default: `url`.
   */
  readonly publicUrl?: string | undefined
  /** Function that makes the HTTP requests. Default: the global `fetch`. */
  readonly fetch?: Fetcher | undefined
  readonly countersign?: undefined
}

/** Options of a verifier for a service in the same process. */
export interface LocalSessionVerifierOptions extends SessionCheckOptions {
  /** The service, as `createCountersign` made it. Its `publicUrl` decides the name of the session's cookie. */
  readonly countersign: SessionSource
  readonly url?: undefined
}

/** Options of {@link createSessionVerifier}. */
export type SessionVerifierOptions = RemoteSessionVerifierOptions | LocalSessionVerifierOptions

const defaultCacheSeconds = 5
const defaultTimeoutMs = 5000

/** Most refusals of cookies that are told: foreign pages can send any number of origins. */
const maxWarnings = 100

/**
 * Makes a verifier, which a backend makes once and keeps: it has a cache of at most 10,000 sessions, by the SHA-256 of their tokens.
 * Throws a `TypeError` if an option does not fit.
 */
export function createSessionVerifier(options: SessionVerifierOptions): SessionVerifier {
  const { cacheSeconds = defaultCacheSeconds, timeoutMs = defaultTimeoutMs, warn = toConsole } = options
  requireBetween('cacheSeconds', cacheSeconds, 0, 60)
  requireBetween('timeoutMs', timeoutMs, 1, 60_000)
  const { introspect, publicUrl } = serviceOf(options)
  const trusted = options.trustedOrigins && new Set(options.trustedOrigins.map(requireOrigin))
  const checks = new SessionChecks({ introspect, cacheMs: cacheSeconds * 1000, timeoutMs })
  const rules = {
    get cookieName() {
      return sessionCookieName(publicUrl().startsWith('https:'))
    },
    trusts: (origin: string, own: string | undefined): boolean =>
      trusted === undefined ? origin === own || origin === new URL(publicUrl()).origin : trusted.has(origin),
  }
  const read = (input: RequestInput): Credential => credentialOf(readRequest(input), rules)
  const warned = new Set<string>()
  const warnOnce = (line: string): void => {
    if (warned.has(line) || warned.size >= maxWarnings) return
    warned.add(line)
    warn(line)
  }
  return {
    async verify(input) {
      const { token, refusal } = typeof input === 'string' ? { token: input } : read(input)
      if (refusal !== undefined) warnOnce(refusal)
      // What cannot be a token is not sent anywhere.
      return token !== undefined && isToken(token) ? await checks.check(token) : undefined
    },
    cookieRefusal: (input) => read(input).refusal,
  }
}

function toConsole(line: string): void {
  // biome-ignore lint/suspicious/noConsole: it is what every runtime of a backend has for its operator to read.
  console.warn(line)
}

function serviceOf(options: SessionVerifierOptions) {
  const { countersign } = options
  if (countersign !== undefined) {
    if (typeof countersign.introspect !== 'function')
      throw new TypeError('countersign must be a service of createCountersign')
    return { introspect: localIntrospection(countersign), publicUrl: () => countersign.publicUrl }
  }
  const { fetch = (url: string, init: RequestInit) => globalThis.fetch(url, init) } = options
  const url = requireAddress('url', options.url)
  const publicUrl = options.publicUrl === undefined ? url : requireAddress('publicUrl', options.publicUrl)
  return { introspect: remoteIntrospection(url, fetch), publicUrl: () => publicUrl }
}

function requireBetween(name: string, value: number, least: number, most: number): void {
  if (typeof value !== 'number' || !(value >= least && value <= most))
    throw new TypeError(`${name} must be ${least} to ${most}, not ${value}`)
}

function requireAddress(name: string, address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.search + url.hash + url.username + url.password !== ''
  ) {
    throw new TypeError(`${name} must be an http or https address such as https://auth.example`)
  }
  return url.href
}

function requireOrigin(text: string): string {
  const origin = parseOrigin(text)
  if (origin === undefined)
    throw new TypeError(`trustedOrigins must have origins such as https://app.example, not ${text}`)
  return origin
}
