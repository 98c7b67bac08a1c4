import type { Store } from '../../src/index.ts'
import { memoryStore } from './memory-store.ts'

/** A store that knows how many watches are in force. Closed when the test ends. */
export async function openCounted(): Promise<{ readonly store: Store; readonly watches: () => number }> {
  const store = await memoryStore()
  let watches = 0
  const watch: Store['watch'] = async (key, onWake) => {
    const unwatch = await store.watch(key, onWake)
    watches++
    return () => {
      watches--
      unwatch()
    }
  }
  const counted = new Proxy(store, {
    get(target, name) {
      if (name === 'watch') return watch
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { store: counted, watches: () => watches }
}
