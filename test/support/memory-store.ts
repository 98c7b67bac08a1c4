import { onTestFinished } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'

/** A store in memory, closed when the test ends. */
export async function memoryStore(): Promise<Store> {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  return store
}
