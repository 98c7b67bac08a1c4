import { Stopwatch } from '../client/page.ts'

/**
 * Shows how much of an order's lifetime is left, once a second. It is only for people to see: whether an order has
 * expired, only the service knows.
 */
export class Countdown {
  readonly #show: (seconds: number | undefined) => void
  readonly #onEnd: () => void
  #leftMs = Number.POSITIVE_INFINITY
  #since = new Stopwatch()
  #timer: ReturnType<typeof setInterval> | undefined

  /**
   * `show` gets the whole seconds that are left, or `undefined` to show none. `onEnd` is called once, when none is
   * left.
   */
  constructor(show: (seconds: number | undefined) => void, onEnd: () => void = () => {}) {
    this.#show = show
    this.#onEnd = onEnd
  }

  /**
   * Counts down from `leftMs`, in milliseconds. While it is running a call can only shorten the time, because a report
   * that arrives late states too much of it.
   */
  start(leftMs: number): void {
    this.#leftMs = Math.min(this.#leftMs - this.#since.elapsedMs, leftMs)
    this.#since = new Stopwatch()
    clearInterval(this.#timer)
    this.#timer = setInterval(() => this.#tick(), 1000)
    this.#tick()
  }

  /** Stops, and shows nothing. */
  stop(): void {
    clearInterval(this.#timer)
    this.#leftMs = Number.POSITIVE_INFINITY
    this.#show(undefined)
  }

  #tick(): void {
    const seconds = Math.max(0, Math.ceil((this.#leftMs - this.#since.elapsedMs) / 1000))
    this.#show(seconds)
    if (seconds > 0) return
    clearInterval(this.#timer)
    this.#onEnd()
  }
}

/** Seconds as minutes and seconds, such as 1:05. */
export function minutesAndSeconds(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
