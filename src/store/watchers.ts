import { type Task, turns } from '../base/timing/turns.ts'

/**
 * The watchers of this process by key. They are called in later {@link turns} of the event loop; several wake-ups of a
 * watcher that has not been called yet become one call.
 */
export class Watchers {
  readonly #byKey = new Map<string, Set<Task>>()

  /** Adds a watcher. The returned function removes it, even if a call is due; it may be called more than once. */
  add(key: string, onWake: () => void): () => void {
    // A function of its own, because the same one may watch several keys.
    const watcher = (): void => onWake()
    const watchers = this.#byKey.get(key) ?? new Set()
    this.#byKey.set(key, watchers.add(watcher))
    return () => {
      watchers.delete(watcher)
      turns.delete(watcher)
      if (watchers.size === 0 && this.#byKey.get(key) === watchers) this.#byKey.delete(key)
    }
  }

  /** Whether anyone watches a key. */
  has(key: string): boolean {
    return this.#byKey.has(key)
  }

  /** Calls the watchers of a key after the current turn of the event loop. */
  wake(key: string): void {
    for (const watcher of this.#byKey.get(key) ?? []) turns.add(watcher)
  }

  /** Calls all watchers after the current turn of the event loop. */
  wakeAll(): void {
    for (const key of this.#byKey.keys()) this.wake(key)
  }

  /** Removes all watchers. */
  clear(): void {
    for (const watchers of this.#byKey.values()) for (const watcher of watchers) turns.delete(watcher)
    this.#byKey.clear()
  }
}
