import { networksOf } from '../networks.ts'
import type { Store } from '../store/store.ts'
import { hashToken } from '../token.ts'
import type { Instances } from './instances.ts'
import { type Limits, networkShares, rateLimited } from './limits.ts'
import { tolerance } from './shared-count.ts'
import { type Change, Trips } from './trips.ts'

/** Time in ms for which the store keeps what an instance told, and between two times of telling it again. */
const lifeMs = 30_000
const intervalMs = 10_000

/** What a caller is told to wait, in milliseconds: until somebody leaves, which nobody can foretell. */
const retryAfterMs = 5_000

/** The places of one network that are taken here. */
interface Places {
  readonly key: string
  readonly most: number
  held: number
  /** Callers that wait for the store to be told. */
  waiting: number
  /** Places that the store has been told of, in the name of this instance; 0 if none. */
  told: number
  current: Promise<void> | undefined
  next: Promise<void> | undefined
}

/** What the store keeps of a network: by instance, how many places it told of, and when they end unless it tells of them again. */
type Told = Readonly<Record<string, readonly [count: number, until: number]>>

/**
 * Limits the streams that are open at a time for an address and the networks around it, over all instances that share a store.
 *
 * The store is not told of the first streams of a network on an instance: those of all instances together are at most a quarter of
 * the limit. From then on it is told of each, so that the others know. What an instance has told ends after 30 seconds unless it is
 * told again, so that one that crashed holds no places.
 */
export class HeldPlaces {
  readonly #limits: Limits
  readonly #store: Store
  readonly #instances: Instances
  readonly #trips: Trips
  /** The networks with streams, or with places that the store still has to be told to be free. */
  readonly #places = new Map<string, Places>()
  readonly #timer: NodeJS.Timeout

  constructor(limits: Limits, store: Store, instances: Instances) {
    this.#limits = limits
    this.#store = store
    this.#instances = instances
    this.#trips = new Trips(store)
    this.#timer = setInterval(() => this.#tellAgain(), intervalMs).unref()
  }

  /**
   * Takes a place in each network of an address. Resolves with what leaves them, which must be called once. Rejects with
   * RATE_LIMITED if one has none left. If the address is unknown, nothing is counted.
   */
  async enter(ip: string | undefined): Promise<() => void> {
    if (ip === undefined) return () => {}
    const taken: Places[] = []
    const leave = (): void => {
      for (const places of taken) this.#leave(places)
    }
    try {
      for (const [width, network] of networksOf(ip).entries()) {
        const places = this.#placesOf(network, networkShares[width] as number)
        await this.#take(places)
        taken.push(places)
      }
      return leave
    } catch (refusal) {
      leave()
      throw refusal
    }
  }

  /** Stops telling the store. What it was told ends by itself. */
  stop(): void {
    clearInterval(this.#timer)
  }

  #placesOf(network: string, share: number): Places {
    const key = `watchers:${hashToken(network)}`
    const found = this.#places.get(key)
    if (found !== undefined) return found
    const most = this.#limits.watchers * share
    const places: Places = { key, most, held: 0, waiting: 0, told: 0, current: undefined, next: undefined }
    this.#places.set(key, places)
    return places
  }

  async #take(places: Places): Promise<void> {
    if (places.held >= this.#roomOf(places)) {
      places.waiting++
      await this.#tell(places)
      places.waiting--
      // While the store is away, every instance counts for itself.
      if (places.held >= (this.#trips.away ? places.most : this.#roomOf(places))) {
        this.#forget(places)
        throw rateLimited('watchers', retryAfterMs)
      }
    }
    places.held++
  }

  #roomOf(places: Places): number {
    return places.told === 0 ? this.#untoldOf(places) : places.told
  }

  #leave(places: Places): void {
    places.held--
    if (places.told > 0) void this.#tell(places).then(() => this.#forget(places))
    this.#forget(places)
  }

  #forget(places: Places): void {
    const { key, held, waiting, told } = places
    if (held + waiting + told === 0) this.#places.delete(key)
  }

  #tellAgain(): void {
    for (const places of this.#places.values()) {
      if (places.told > 0) void this.#tell(places)
    }
  }

  /** Tells the store what is taken now. A trip that is under way may have begun before, so another one follows it. */
  #tell(places: Places): Promise<void> {
    places.next ??= (places.current ?? Promise.resolve()).then(() => {
      places.current = places.next
      places.next = undefined
      return this.#trips.change(places.key, (found) => this.#toTell(places, found?.value))
    })
    return places.next
  }

  #toTell(places: Places, stored: string | undefined): Change {
    const { most, held, waiting } = places
    const now = this.#store.now()
    const told = Object.entries(JSON.parse(stored ?? '{}') as Told)
    const others = told.filter(([instance, [, until]]) => instance !== this.#instances.id && until > now)
    const left = most - others.reduce((sum, [, [count]]) => sum + count, 0)
    const wanted = held + waiting
    const count = wanted > this.#untoldOf(places) ? Math.max(held, Math.min(wanted, left)) : 0
    const own = count === 0 ? [] : [[this.#instances.id, [count, now + lifeMs]] as const]
    const all = [...others, ...own]
    return {
      value: JSON.stringify(Object.fromEntries(all)),
      ttlMs: all.length === 0 ? 1 : lifeMs,
      stored: () => {
        places.told = count
      },
    }
  }

  /** Places that can be taken here without a word to the store. */
  #untoldOf({ most }: Places): number {
    return Math.floor((most * tolerance) / this.#instances.most)
  }
}
