import type { Tracing } from '../base/tracing.ts'
import { mapStore } from './map-store.ts'
import type { Store } from './store.ts'

/** A store each step of which is a step of the call that takes it. Closing it closes the store. */
export function tracedStore(store: Store, tracing: Tracing): Store {
  const system = store.kind ?? 'other'
  return mapStore(store, { around: (operation, step) => tracing.step({ kind: 'store', system, operation }, step) })
}
