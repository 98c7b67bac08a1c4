import { Stopwatch } from '../client/page.ts'

/**
 * The service's time, which the header Date of its answers has to the second. This device's own clock may be hours
 * off.
 */
export class ServiceClock {
  #known: { readonly at: number; readonly since: Stopwatch } | undefined

  /** Sets the clock by a header Date; does nothing if it is missing or malformed. */
  set(date: string | null): void {
    const at = Date.parse(date ?? '')
    if (!Number.isNaN(at)) this.#known = { at, since: new Stopwatch() }
  }

  /** Epoch milliseconds. By this device's clock until an answer has the service's. */
  now(): number {
    return this.#known === undefined ? Date.now() : this.#known.at + this.#known.since.elapsedMs
  }
}
