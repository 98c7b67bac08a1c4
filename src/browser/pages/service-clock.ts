import { Stopwatch } from '../client/page.ts'

/**
 * The service's time, which the header Date of its answers tells to the second. This device's own clock may be hours
 * off.
 */
export class ServiceClock {
  #told: { readonly at: number; readonly since: Stopwatch } | undefined

  /** Sets the clock by a header Date; does nothing if it is missing or malformed. */
  set(date: string | null): void {
    const at = Date.parse(date ?? '')
    if (!Number.isNaN(at)) this.#told = { at, since: new Stopwatch() }
  }

  /** Epoch milliseconds. By this device's clock as long as no answer told the service's. */
  now(): number {
    return this.#told === undefined ? Date.now() : this.#told.at + this.#told.since.elapsedMs
  }
}
