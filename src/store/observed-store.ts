import type { Observer } from '../observer.ts'
import type { Store } from './store.ts'
import { type StoreOperation, wrappedStore } from './wrapped-store.ts'

/** What is told of a step of a store, when it is over. */
export interface StoreReport {
  readonly operation: StoreOperation
  /** What the step rejected with. Absent if it resolved. */
  readonly failure?: unknown
  /** Time from the call to its end, milliseconds. */
  readonly durationMs: number
}

/** A store of which an observer is told each step. Closing it closes the store. */
export function observedStore(store: Store, observe: Observer<StoreReport>): Store {
  return wrappedStore(store, async (operation, step) => {
    // Before the call, because a store may do its work in it.
    const startedAt = performance.now()
    try {
      const result = await step()
      observe({ operation, durationMs: performance.now() - startedAt })
      return result
    } catch (failure) {
      observe({ operation, failure, durationMs: performance.now() - startedAt })
      throw failure
    }
  })
}
