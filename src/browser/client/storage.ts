/**
 * Uses one of the browser's storages. Returns `undefined` if it is full or blocked, as by a browser's privacy settings:
 * then already reading the property throws.
 */
export function tryStorage<T>(name: 'localStorage' | 'sessionStorage', use: (storage: Storage) => T): T | undefined {
  try {
    return use(globalThis[name])
  } catch {
    return undefined
  }
}
