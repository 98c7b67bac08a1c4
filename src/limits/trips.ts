import type { Store, VersionedValue } from '../store/store.ts'
import { Slots } from '../timing/slots.ts'

/** A value to store, and what to do once it is stored. */
export interface Change {
  readonly value: string
  readonly ttlMs: number
  readonly stored: () => void
}

/** Most trips at a time; the others wait in line. */
const mostTrips = 64

/**
 * Most times that a change is tried. Each lost race means that another instance changed the value, and each has one change of a value
 * in progress; after as many, the store does not keep its contract.
 */
const maxTries = 256

/** Time in ms for which the store is not asked again after it failed to answer. */
const awayMs = 1_000

/** Changes of values in a store that several instances count in. They fail silently: no call fails because of a limit's own trip. */
export class Trips {
  readonly #store: Store
  readonly #slots = new Slots(mostTrips)
  #awayUntil = Number.NEGATIVE_INFINITY

  constructor(store: Store) {
    this.#store = store
  }

  /** Whether the store has failed a moment ago. */
  get away(): boolean {
    return performance.now() < this.#awayUntil
  }

  /**
   * Replaces a value by what `make` makes of it; `make` is called again after a lost race. Resolves also if the store does not answer
   * or is away, and then has not called `stored`.
   */
  async change(key: string, make: (found: VersionedValue | undefined) => Change): Promise<void> {
    try {
      await this.#slots.run(async () => {
        if (!this.away) await this.#change(key, make)
      })
    } catch {
      this.#awayUntil = performance.now() + awayMs
    }
  }

  async #change(key: string, make: (found: VersionedValue | undefined) => Change): Promise<void> {
    for (let tries = 0; tries < maxTries; tries++) {
      const found = await this.#store.get(key)
      const { value, ttlMs, stored } = make(found)
      const done =
        found === undefined
          ? await this.#store.create(key, value, { ttlMs })
          : await this.#store.compareAndSet(key, found.version, value, { ttlMs })
      if (done) return stored()
    }
    throw new Error(`${key} kept changing`)
  }
}
