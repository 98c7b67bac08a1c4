import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { sessionCookieName } from '../../shared/header-text.ts'
import { parseOrigin } from '../../shared/origin.ts'
import {
  type Fetcher,
  type Introspect,
  localIntrospection,
  remoteIntrospection,
  type SessionSource,
  type SessionText,
} from './introspection.ts'
import { type Credential, credentialOf, isToken, type RequestInput, readRequest } from './request.ts'
import { type Session, SessionCheckError } from './session.ts'

/** Checks who is signed in. */
export interface SessionVerifier {
  /**
   * The live session of a token or of a request; `undefined` if it has none: no token, a token that is unknown, expired
   * or revoked, or a cookie that does not count. The session is frozen, and is not extended by this.
   *
   * A string is a bearer token. Of a request, the token of `Authorization: Bearer` counts or, without one, the
   * session's cookie. A cookie counts only if the request's Origin is trusted or, without an Origin, if the method is
   * GET or HEAD. Of `Headers` alone the method is not known: pass the whole request where there is one.
   *
   * Rejects with a `SessionCheckError` if the service cannot be asked: that is an outage, and never "signed out".
   * Rejects with a `TypeError` if the input is none of these.
   */
  verify(input: string | RequestInput): Promise<Session | undefined>

  /**
   * Why the session cookie of a request does not count for {@link verify}, as a sentence; `undefined` if the request
   * has none, or its cookie counts. The guards answer such a request with 403, because signing in again would not help
   * it.
   */
  cookieRefusal?(input: RequestInput): string | undefined
}

/** Options of every session verifier. */
export interface SessionCheckOptions {
  /**
   * Time for which a session is believed without asking again, in seconds, 0 to 60. A revoked session is refused at the
   * latest this long after it was revoked. With 0, every check asks. Default 5.
   */
  readonly cacheSeconds?: number | undefined
  /**
   * Origins whose pages may use a session's cookie, such as `https://app.example`. Default: the origin that the request
   * was sent to by its own URL or Host header, and that of `publicUrl`. A bearer token needs none.
   */
  readonly trustedOrigins?: readonly string[] | undefined
  /** Time limit of a call to the service, in milliseconds, 1 to 60,000. Default 5,000. */
  readonly timeoutMs?: number | undefined
  /**
   * Receiver of each reason for which a cookie was refused, the first time it occurs, at most 100. Default:
   * `console.warn`.
   */
  readonly warn?: ((line: string) => void) | undefined
}

/** Options of a verifier that asks a service over HTTP. */
export interface RemoteSessionVerifierOptions extends SessionCheckOptions {
  /** Address at which this program reaches the service, such as `http://countersign:8080`. */
  readonly url: string
  /**
   * Address by which people reach the service (its setting `publicUrl`), if it is another. With https, the session's
   * cookie has the name `__Host-countersign_session`, else `countersign_session`; no other name counts. Default: `url`.
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

/** Most refusals of cookies that are logged: foreign pages can send any number of origins. */
const maxWarnings = 100

/**
 * Makes a verifier, which a backend makes once and keeps: it has a cache of at most 10,000 sessions, by the SHA-256 of
 * their tokens. Throws a `TypeError` if an option does not fit.
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
      const { presented, refusal } = typeof input === 'string' ? bearer(input) : read(input)
      if (refusal !== undefined) warnOnce(refusal)
      // What cannot be a token is not sent anywhere.
      return presented !== undefined && isToken(presented.text) ? await checks.check(presented) : undefined
    },
    cookieRefusal: (input) => read(input).refusal,
  }
}

function bearer(text: string): Credential {
  return { presented: { text, form: 'token' } }
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

/** How sessions are checked. */
interface SessionCheckSettings {
  readonly introspect: Introspect
  /** Time for which a session is believed, counted from the start of the call that found it, in milliseconds. */
  readonly cacheMs: number
  /** Time limit of a call, in milliseconds. */
  readonly timeoutMs: number
}

/** A session that is believed until a time of the monotonic clock, in milliseconds. */
interface Kept {
  readonly session: Session
  readonly until: number
}

/** A call about a token. */
interface Run {
  /** Time at which the call began, by the monotonic clock; `undefined` if it waits for the one in front of it. */
  startedAt: number | undefined
  readonly answer: Promise<Session | undefined>
}

/** Most sessions that are kept. One takes about a kilobyte. */
const maxKept = 10_000

/**
 * Checks tokens, with a cache of live sessions. For one token there is at most one call at a time: who comes while it
 * is under way shares its answer if it began less than `cacheMs` ago, else the answer of the next one. So a session
 * that has ended is seen as ended by everyone who asks `cacheMs` or more after that. With `cacheMs` 0, no answer counts
 * that was asked for earlier.
 *
 * Keeps SHA-256 hashes of tokens, and no token once its call is over. "Inactive" is not kept, so that
 * made-up tokens fill no memory.
 */
class SessionChecks {
  readonly #settings: SessionCheckSettings
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>()
  /** The newest call about each token. */
  readonly #runs = new Map<string, Run>()

  constructor(settings: SessionCheckSettings) {
    this.#settings = settings
  }

  /**
   * The live session of a token or cookie; `undefined` if there is none. Rejects with a {@link SessionCheckError} if
   * the service cannot tell.
   */
  check(credential: SessionText): Promise<Session | undefined> {
    const key = bytesToHex(sha256(utf8ToBytes(`${credential.form} ${credential.text}`)))
    const now = performance.now()
    const kept = this.#kept.get(key)
    if (kept !== undefined && now < kept.until) return Promise.resolve(kept.session)
    const run = this.#runs.get(key)
    if (run !== undefined && (run.startedAt === undefined || now < run.startedAt + this.#settings.cacheMs)) {
      return run.answer
    }
    return this.#begin(key, credential, run?.answer)
  }

  /** Begins a call once the one in front is over. If that one fails, this one fails with it, and nothing is sent. */
  #begin(key: string, credential: SessionText, front: Promise<unknown> | undefined): Promise<Session | undefined> {
    const answered = async (): Promise<Session | undefined> => {
      try {
        await front
        run.startedAt = performance.now()
        return await this.#ask(key, credential, run.startedAt)
      } finally {
        if (this.#runs.get(key) === run) this.#runs.delete(key)
      }
    }
    const run: Run = { startedAt: undefined, answer: Promise.resolve().then(answered) }
    this.#runs.set(key, run)
    return run.answer
  }

  async #ask(key: string, credential: SessionText, startedAt: number): Promise<Session | undefined> {
    const { introspect, timeoutMs, cacheMs } = this.#settings
    const found = await withinTime(timeoutMs, (signal) => introspect(credential, signal))
    this.#kept.delete(key)
    if (found === undefined) return undefined
    const { session, now } = found
    const until = Math.min(startedAt + cacheMs, performance.now() + session.expiresAt - now)
    if (until > performance.now()) this.#keep(key, { session, until })
    return session
  }

  #keep(key: string, kept: Kept): void {
    const now = performance.now()
    for (const [oldest, { until }] of this.#kept) {
      if (this.#kept.size < maxKept && until > now) break
      this.#kept.delete(oldest)
    }
    this.#kept.set(key, kept)
  }
}

/** Rejects if the work takes longer than `timeoutMs` milliseconds, and aborts the signal that it was given. */
async function withinTime<T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const late = new SessionCheckError('SERVICE_UNAVAILABLE', `The service did not answer within ${timeoutMs} ms`)
      controller.abort(late)
      reject(late)
    }, timeoutMs)
  })
  try {
    return await Promise.race([work(controller.signal), timeout])
  } finally {
    clearTimeout(timer)
  }
}
