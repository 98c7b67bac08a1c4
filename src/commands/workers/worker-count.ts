import { availableParallelism } from 'node:os'
import type { Settings } from '../../config.ts'

/**
 * Number of processes that are to serve the port. Throws a `TypeError` if the store is for one process. With auto, that does not
 * depend on the machine: settings that start on one start on all.
 */
export function workerCount({ workers, store }: Settings): number {
  if (workers === 1) return 1
  if (typeof store === 'string' && store.startsWith('sqlite:')) {
    throw new TypeError(
      `workers (COUNTERSIGN_WORKERS) must be 1, not ${workers}, unless store (COUNTERSIGN_STORE) is Redis: ${reason(store)}`,
    )
  }
  return workers === 'auto' ? availableParallelism() : workers
}

function reason(store: string): string {
  return store === 'sqlite::memory:'
    ? 'in memory, each worker would have a store of its own'
    : 'with an SQLite file, what one worker stores would wake no watcher at another'
}
