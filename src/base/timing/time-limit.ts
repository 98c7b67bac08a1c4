/**
 * One time limit for much work that hardly ever reaches it, on one timer of Node.js: a timer for each piece would be
 * set and cleared for nothing.
 */
export class TimeLimit {
  readonly #limitMs: number
  readonly #checkMs: number
  /**
   * The ends of a list of work, in the order of its beginning. A list, because a set takes a tenth of a session check.
   */
  #first: Limited | undefined
  #last: Limited | undefined
  #timer: NodeJS.Timeout | undefined

  /** Work is ended after `limitMs` milliseconds, or up to `checkMs` later. */
  constructor(limitMs: number, checkMs: number) {
    this.#limitMs = limitMs
    this.#checkMs = checkMs
  }

  /** Calls `end` when the time is over, unless the work leaves before. */
  enter(end: () => void): Limited {
    const work: Limited = { end, endsAt: performance.now() + this.#limitMs, before: this.#last, after: undefined }
    if (this.#last === undefined) this.#first = work
    else this.#last.after = work
    this.#last = work
    this.#timer ??= setInterval(() => this.#check(), this.#checkMs).unref()
    return work
  }

  /**
   * Waits for work while it has time. After that rejects with what `late` makes; the work goes on, its result is
   * dropped.
   */
  within<T>(work: Promise<T>, late: () => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      const limited = this.enter(() => reject(late()))
      const settle = (): void => this.leave(limited)
      work.then(settle, settle)
      work.then(resolve, reject)
    })
  }

  /** Forgets work. May be called more than once, and after its time. */
  leave(work: Limited): void {
    const { before, after } = work
    if (before === undefined && this.#first !== work) return
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    work.before = undefined
    work.after = undefined
  }

  #check(): void {
    const now = performance.now()
    for (let work = this.#first; work !== undefined; work = this.#first) {
      if (now < work.endsAt) return
      this.leave(work)
      work.end()
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/**
 * Longest time in ms for one step of the application: a hook, or a method of its session host or of its nonce store.
 */
export const applicationStepMs = 5_000

/** The time of all steps of the application. */
export const applicationSteps: TimeLimit = new TimeLimit(applicationStepMs, 250)

/** Work that has a time limit: what {@link TimeLimit} knows of it. */
export interface Limited {
  readonly end: () => void
  readonly endsAt: number
  before: Limited | undefined
  after: Limited | undefined
}
