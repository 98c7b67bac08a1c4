import { setTimeout as pause } from 'node:timers/promises'
import { TimeLimit } from '../base/timing/time-limit.ts'

/** Time limit of every call to a server, in milliseconds. */
export const timeLimitMs = 2500

/** Longest pause after a first failure, in milliseconds. It doubles with each further one. */
const firstPauseMs = 50

/** Longest pause after any number of failures, in milliseconds. */
const longestPauseMs = 2000

/** Life of a connection after which its end no longer counts as another failure in a row, in milliseconds. */
const stableAfterMs = 1000

/** A call was not answered in time. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError'

  constructor() {
    super(`no answer within ${timeLimitMs} ms`)
  }
}

/** The time of all calls. A tenth of a second is left for the checks of it. */
export const callTime = new TimeLimit(timeLimitMs - 100, 100)

/**
 * Waits for work for at most 2.5 seconds, then rejects with a TimeLimitError. The work goes on, but its result is
 * dropped.
 */
export function withinTimeLimit<T>(work: Promise<T>): Promise<T> {
  return callTime.within(work, () => new TimeLimitError())
}

/** Callbacks for changes of a {@link ReconnectingLink}. */
export interface LinkEvents {
  /** A connection is there. */
  onUp?(): void
  /** A connection that was there is lost. */
  onLost?(): void
  /** There is no connection, for this reason: it was lost, or a try to connect failed. */
  onDown?(cause: unknown): void
}

/** A connection that a {@link ReconnectingLink} keeps. */
export interface Linked {
  /** Resolves with the reason once the connection is lost. */
  readonly lost: Promise<unknown>
  close(): void
}

/** Keeps one connection: connects again whenever it is lost, with growing pauses between failures. */
export class ReconnectingLink<Kept extends Linked> {
  readonly #dialOnce: () => Promise<Kept>
  readonly #closing = new AbortController()
  #connection: Promise<Kept>
  #up: Kept | undefined
  #next = Promise.withResolvers<Kept>()

  constructor(dialOnce: () => Promise<Kept>, events: LinkEvents = {}) {
    this.#dialOnce = dialOnce
    this.#connection = dialOnce()
    void this.#keep(events)
  }

  /**
   * Resolves with the connection, waiting for it while it is being made. Rejects at once in a pause after a failure.
   */
  get connection(): Promise<Kept> {
    return this.#connection
  }

  /** The connection, if it is there already. */
  get up(): Kept | undefined {
    return this.#up
  }

  /** Resolves with the connection once there is one, however often a try fails before; rejects once it is closed. */
  get next(): Promise<Kept> {
    return this.#next.promise
  }

  /** Closes the connection, if there is one. A new one is made as after any loss. */
  drop(): void {
    this.#up?.close()
  }

  /** Closes the connection for good. */
  close(): void {
    this.#closing.abort(new Error('the store is closed'))
    this.drop()
  }

  async #keep(events: LinkEvents): Promise<void> {
    const { signal } = this.#closing
    let failures = 0
    while (true) {
      let cause: unknown
      try {
        this.#up = await this.#connection
        this.#next.resolve(this.#up)
        const upAt = performance.now()
        if (signal.aborted) this.drop()
        else events.onUp?.()
        cause = await this.#up.lost
        this.drop()
        this.#next = Promise.withResolvers()
        if (!signal.aborted) events.onLost?.()
        failures = performance.now() - upAt > stableAfterMs ? 0 : failures + 1
      } catch (error) {
        cause = error
        failures++
      }
      this.#up = undefined
      this.#connection = rejected(signal.aborted ? signal.reason : cause)
      if (signal.aborted) {
        this.#next.promise.catch(() => undefined)
        this.#next.reject(signal.reason)
        return
      }
      events.onDown?.(cause)
      await pauseAfter(failures, signal)
      this.#connection = signal.aborted ? rejected(signal.reason) : this.#dialOnce()
    }
  }
}

/**
 * Pauses before the next try: longer after each failure, and for a random part of that, so that processes which failed
 * together do not try again together. Ends at once when aborted.
 */
export async function pauseAfter(failures: number, signal: AbortSignal): Promise<void> {
  const longest = failures === 0 ? 0 : Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1))
  await pause(longest * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined)
}

function rejected(cause: unknown): Promise<never> {
  const promise = Promise.reject(cause)
  promise.catch(() => undefined)
  return promise
}
