import type { Store, VersionedValue } from '../store/store.ts'
import { hashToken } from '../token.ts'
import type { Allowance } from './allowance.ts'
import type { Instances } from './instances.ts'
import { Trips } from './trips.ts'

/**
 * Time in ms for which a value is kept after its allowance is full again. Calls are told of late: those that came while it was not
 * full are added to the time at which it was full, and not to now.
 */
const afterlifeMs = 60_000

/** How much of a limit all instances together can let through beyond it. */
export const tolerance: number = 1 / 4

/**
 * Counts allowances over all instances that share a store. An instance decides about calls by what it knows, and tells the store of
 * them only once there are enough: each may have as many calls that the others do not know of that those of all instances
 * together are at most a quarter of the limit. A client with few calls thus costs no trip to the store.
 */
export class SharedCount {
  readonly #store: Store
  readonly #instances: Instances
  readonly #trips: Trips

  constructor(store: Store, instances: Instances) {
    this.#store = store
    this.#instances = instances
    this.#trips = new Trips(store)
  }

  /** The store's time, in microseconds. */
  now(): number {
    return this.#store.now() * 1000
  }

  /** Whether the store has to be told before another call is taken. While it is away, every instance counts for itself. */
  mustTell(allowance: Allowance): boolean {
    if (this.#trips.away) return false
    // The call that makes the telling necessary is told of with the others, so it is decided by what the store knows.
    return allowance.untold >= Math.max(1, Math.floor((allowance.calls * tolerance) / this.#instances.most)) - 1
  }

  /** Tells the store of an allowance's calls, and takes over what it knows. Resolves also if the store does not answer. */
  tell(allowance: Allowance): Promise<void> {
    allowance.telling ??= this.#trips
      .change(`limit:${hashToken(allowance.key)}`, (found) => this.#toTell(allowance, found))
      .then(() => {
        allowance.telling = undefined
      })
    return allowance.telling
  }

  #toTell(allowance: Allowance, found: VersionedValue | undefined) {
    const now = this.now()
    const told = allowance.toTell(Number(found?.value ?? 0), now)
    return {
      value: String(told.fullAt),
      ttlMs: Math.max(0, Math.ceil((told.fullAt - now) / 1000)) + afterlifeMs,
      stored: () => allowance.told(told),
    }
  }
}
