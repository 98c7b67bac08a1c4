/**
 * One time limit for much work that hardly ever reaches it, on one timer of Node.js: a timer for each piece would be set and
 * cleared for nothing.
 */
export class TimeLimit {
  readonly #limitMs: number
  readonly #checkMs: number
  /** When each piece of work is over time, by performance.now, in the order of their beginning. */
  readonly #ends = new Map<() => void, number>()
  #timer: NodeJS.Timeout | undefined

  /** Work is ended after `limitMs` milliseconds, or up to `checkMs` later. */
  constructor(limitMs: number, checkMs: number) {
    this.#limitMs = limitMs
    this.#checkMs = checkMs
  }

  /** Calls `end`, a function that is entered once, when its time is over, unless it leaves before. */
  enter(end: () => void): void {
    this.#ends.set(end, performance.now() + this.#limitMs)
    this.#timer ??= setInterval(() => this.#check(), this.#checkMs).unref()
  }

  leave(end: () => void): void {
    this.#ends.delete(end)
  }

  #check(): void {
    const now = performance.now()
    for (const [end, endsAt] of this.#ends) {
      if (now < endsAt) return
      this.#ends.delete(end)
      end()
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
