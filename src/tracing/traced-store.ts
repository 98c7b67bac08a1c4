import type { Store } from '../store/store.ts'
import { wrappedStore } from '../store/wrapped-store.ts'
import type { TracedStep, Tracing } from './tracing.ts'

/** A store each step of which is a step of the call that takes it. Closing it closes the store. */
export function tracedStore(store: Store, tracing: Tracing): Store {
  const system = systemOf(store)
  return wrappedStore(store, (operation, step) => tracing.step({ kind: 'store', system, operation }, step))
}

/** A store that somebody else wrote says in its description what it likes, so only its beginning counts. */
function systemOf({ description }: Store): Extract<TracedStep, { kind: 'store' }>['system'] {
  if (description === 'memory') return 'memory'
  if (/^redis\b/i.test(description)) return 'redis'
  return /^sqlite\b/i.test(description) ? 'sqlite' : 'other'
}
