import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { Introspect } from './introspection.ts'
import { type Session, SessionCheckError } from './session.ts'

/** How sessions are checked. */
export interface SessionCheckSettings {
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
 * Checks tokens, with a cache of live sessions. For one token there is at most one call at a time: who comes while it is under way
 * shares its answer if it began less than `cacheMs` ago, else the answer of the next one. So a session that has ended is seen as
 * ended by everyone who asks `cacheMs` or more after that. With `cacheMs` 0, no answer counts that was asked for earlier.
 *
 * Keeps SHA-256 hashes of tokens, and no token once its call is over. "Inactive" is not kept, so that whoever sends made-up tokens
 * fills no memory.
 */
export class SessionChecks {
  readonly #settings: SessionCheckSettings
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>()
  /** The newest call about each token. */
  readonly #runs = new Map<string, Run>()

  constructor(settings: SessionCheckSettings) {
    this.#settings = settings
  }

  /** The live session of a token; `undefined` if there is none. Rejects with a {@link SessionCheckError} if nobody can tell. */
  check(token: string): Promise<Session | undefined> {
    const key = bytesToHex(sha256(utf8ToBytes(token)))
    const now = performance.now()
    const kept = this.#kept.get(key)
    if (kept !== undefined && now < kept.until) return Promise.resolve(kept.session)
    const run = this.#runs.get(key)
    if (run !== undefined && (run.startedAt === undefined || now < run.startedAt + this.#settings.cacheMs)) {
      return run.answer
    }
    return this.#begin(key, token, run?.answer)
  }

  /** Begins a call once the one in front is over. If that one fails, this one fails with it, and nothing is sent. */
  #begin(key: string, token: string, front: Promise<unknown> | undefined): Promise<Session | undefined> {
    const answered = async (): Promise<Session | undefined> => {
      try {
        await front
        run.startedAt = performance.now()
        return await this.#ask(key, token, run.startedAt)
      } finally {
        if (this.#runs.get(key) === run) this.#runs.delete(key)
      }
    }
    const run: Run = { startedAt: undefined, answer: Promise.resolve().then(answered) }
    this.#runs.set(key, run)
    return run.answer
  }

  async #ask(key: string, token: string, startedAt: number): Promise<Session | undefined> {
    const { introspect, timeoutMs, cacheMs } = this.#settings
    const late = (): Error =>
      new SessionCheckError('SERVICE_UNAVAILABLE', `The service did not answer within ${timeoutMs} ms`)
    const found = await withinTime(timeoutMs, late, (signal) => introspect(token, signal))
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

/** Rejects with `late` if the work takes longer than `timeoutMs` milliseconds, and aborts the signal that it was given. */
async function withinTime<T>(
  timeoutMs: number,
  late: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = late()
      controller.abort(error)
      reject(error)
    }, timeoutMs)
  })
  try {
    return await Promise.race([work(controller.signal), timeout])
  } finally {
    clearTimeout(timer)
  }
}
