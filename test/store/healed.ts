import { setTimeout as sleep } from 'node:timers/promises'
import { CountersignError } from '../../src/shared/errors.ts'
import type { Store } from '../../src/store/store.ts'

/** Does as a caller does who was told to come again: repeats a call until the store is available. */
export async function healed<T = void>(
  store: Store,
  call: () => Promise<T> = store.ping.bind(store) as () => Promise<T>,
): Promise<T> {
  while (true) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof CountersignError) || error.reason !== 'STORE_UNAVAILABLE') throw error
      await sleep(20)
    }
  }
}
