import type { Store, VersionedValue } from './store.ts'

/** Reads several values, in the order of the keys: in one trip if the store can, else one by one at the same time. */
export function readAll(store: Store, keys: readonly string[]): Promise<readonly (VersionedValue | undefined)[]> {
  return store.getAll?.(keys) ?? Promise.all(keys.map((key) => store.get(key)))
}
