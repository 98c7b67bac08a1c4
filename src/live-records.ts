import { serverBusy } from './errors.ts'
import { networkOf } from './networks.ts'

/** The ceiling that {@link LiveRecords} keeps. */
interface MostRecords {
  readonly most: number
  /** Tells the log that a client was turned away. */
  refused(client: string | undefined): void
}

/**
 * Counts the records that this process has stored and whose life in the store is not over, so that callers, however many they
 * are, cannot fill the store. What other processes stored is counted by them.
 *
 * Counts are kept for each second in which lives end, not for each record, so the memory is bounded by the longest life. Times
 * are epoch milliseconds.
 */
export class LiveRecords {
  readonly #ceiling: MostRecords
  /** How many records end in each second. */
  readonly #ending = new Map<number, number>()
  #count = 0
  /** The second in which the lives that are over were last looked for. */
  #lookedAt: number | undefined

  constructor(ceiling: MostRecords) {
    this.#ceiling = ceiling
  }

  /**
   * Counts a record that is about to be stored until `endsAt`, as `places` records if it is a large one. SERVER_BUSY if there is
   * no room for it; then nothing is counted. `ip` is the caller's, for the log.
   *
   * A record stays counted if storing it fails: a store that does not answer in time may have stored it all the same.
   */
  add(endsAt: number, now: number, ip: string | undefined, places = 1): void {
    this.#forgetEnded(now)
    if (this.#count + places > this.#ceiling.most) {
      this.#ceiling.refused(ip === undefined ? undefined : networkOf(ip))
      throw serverBusy()
    }
    const second = secondOf(endsAt)
    this.#ending.set(second, (this.#ending.get(second) ?? 0) + places)
    this.#count += places
  }

  /** How many are counted, `now`. */
  count(now: number): number {
    this.#forgetEnded(now)
    return this.#count
  }

  /**
   * Counts a record out that was removed before its end, or was not stored after all. One that another process stored is counted out here, if anything that
   * ends in the same second was stored here, and stays counted there: over all processes the number is right.
   */
  remove(endsAt: number, places = 1): void {
    const second = secondOf(endsAt)
    const count = this.#ending.get(second)
    if (count === undefined) return
    if (count > places) this.#ending.set(second, count - places)
    else this.#ending.delete(second)
    this.#count -= Math.min(count, places)
  }

  /** Looks at every second, because a clock that was set has mixed up their order; they are a few thousand at most. */
  #forgetEnded(now: number): void {
    const current = Math.floor(now / 1000)
    if (current === this.#lookedAt) return
    this.#lookedAt = current
    for (const [second, count] of this.#ending) {
      if (second > current) continue
      this.#ending.delete(second)
      this.#count -= count
    }
  }
}

/** The first full second at which a life is over. */
function secondOf(endsAt: number): number {
  return Math.ceil(endsAt / 1000)
}
