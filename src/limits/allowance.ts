/** Times are whole microseconds since 1970, so that adding up intervals makes no error. */
const minuteUs = 60_000_000

/**
 * The latest time at which an allowance can be full again, counted from now: a minute if it is used up, and a quarter more if the
 * instances let that much more through. A later one was counted by a clock that has been set back since.
 */
const longestUs = 2 * minuteUs

/** What a store is told about an allowance. */
export interface Told {
  /** When the allowance is full again. */
  readonly fullAt: number
  /** How many calls were told of. */
  readonly calls: number
  /** Whether one more call was told of, which is still to come. */
  readonly prepaid: boolean
}

/**
 * A number of calls that can come all at once and come back over a minute, by the generic cell rate algorithm: all that it keeps is
 * the time at which it will be full again, which each call puts off by the same interval.
 *
 * Of an allowance that several instances share, this is what one of them knows: that time as the store last had it, put off by the
 * calls since then that the store has not been told of. So it can let too much through, by the calls that the others have not told
 * of, and never refuses too early.
 */
export class Allowance {
  /** Names it in the store. */
  readonly key: string
  /** Number of calls. */
  readonly calls: number
  /** The telling that is under way. */
  telling: Promise<void> | undefined
  readonly #intervalUs: number
  #fullAt = 0
  #untold = 0
  /** When the allowance would be full again if there had been no calls but those not told of. */
  #untoldFullAt = 0
  #takenAt = 0
  #prepaid = false

  constructor(key: string, calls: number) {
    this.key = key
    this.calls = calls
    this.#intervalUs = Math.floor(minuteUs / calls)
  }

  /** Number of calls that the store has not been told of; -1 if it was told of one that is still to come. */
  get untold(): number {
    return this.#prepaid ? -1 : this.#untold
  }

  /** Time in microseconds after which there is a call left; 0 if there is one now. */
  waitAt(now: number): number {
    // Those who told of them would add up what came back meanwhile. An instance hides less than a quarter of its share so.
    if (now - this.#takenAt > minuteUs) {
      this.#untold = 0
      this.#untoldFullAt = 0
    }
    this.#fullAt = Math.min(this.#fullAt, now + longestUs)
    if (this.#prepaid) return 0
    return Math.max(0, this.#fullAt + this.#intervalUs - now - minuteUs)
  }

  /** Takes a call. */
  take(now: number): void {
    this.#takenAt = now
    if (this.#prepaid) {
      this.#prepaid = false
      return
    }
    this.#untold++
    this.#fullAt = Math.max(this.#fullAt, now) + this.#intervalUs
    this.#untoldFullAt = Math.max(this.#untoldFullAt, now) + this.#intervalUs
  }

  /** What to tell a store that has `stored`, 0 if it has nothing; with one call that is still to come, if there is one left. */
  toTell(stored: number, now: number): Told {
    const calls = this.#untold
    const fullAt = Math.max(Math.min(stored, now + longestUs) + calls * this.#intervalUs, this.#untoldFullAt)
    const next = Math.max(fullAt, now) + this.#intervalUs
    return next <= now + minuteUs ? { fullAt: next, calls, prepaid: true } : { fullAt, calls, prepaid: false }
  }

  /** Notes that the store has been told. Calls that were taken in the meantime are still to be told of. */
  told({ fullAt, calls, prepaid }: Told): void {
    this.#untold = Math.max(0, this.#untold - calls)
    if (this.#untold === 0) this.#untoldFullAt = 0
    this.#fullAt = Math.max(fullAt + this.#untold * this.#intervalUs, this.#untoldFullAt)
    this.#prepaid = prepaid
  }
}
