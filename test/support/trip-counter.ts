import { setImmediate } from 'node:timers/promises'
import type { Store } from '../../src/index.ts'
import { mapStore, type StoreOperation } from '../../src/store/map-store.ts'

/** A store of which the trips are counted. */
export interface TripCounter {
  readonly store: Store
  /**
   * What was asked since it was last called: a text for each trip, such as "get + get". Steps that begin in one turn of
   * the event loop are one trip; answers to nobody are waited for.
   */
  readonly taken: () => Promise<string[]>
}

/**
 * Counts trips to a store. Each answer comes in a later turn of the event loop, as over a network, so that of steps
 * that wait for one another each is a trip.
 */
export function countTrips(store: Store): TripCounter {
  let trips: StoreOperation[][] = []
  let current: StoreOperation[] | undefined
  const counted = mapStore(store, {
    around: async (operation, step) => {
      if (current === undefined) {
        current = []
        trips.push(current)
        // Asked for before the answers of this trip are, so it comes before them.
        void setImmediate().then(() => {
          current = undefined
        })
      }
      current.push(operation)
      const answer = step()
      await Promise.allSettled([answer, setImmediate()])
      return await answer
    },
  })
  return {
    store: counted,
    async taken() {
      for (let turn = 0; turn < 5; turn++) await setImmediate()
      const taken = trips.map((operations) => operations.toSorted().join(' + '))
      trips = []
      return taken
    },
  }
}
