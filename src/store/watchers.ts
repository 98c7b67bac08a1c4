// Waking ten thousand watchers in one go would block the event loop for a second or more.
const WATCHERS_PER_SLICE = 100

interface Watcher {
  readonly onWake: () => void
}

/** Who watches which key in this process, and the calling of them: later, in slices, several wake-ups as one. */
export class Watchers {
  readonly #byKey = new Map<string, Set<Watcher>>()
  readonly #due = new Set<Watcher>()
  #scheduled = false

  /** Adds a watcher. The returned function removes it, due or not; it may be called more than once. */
  add(key: string, onWake: () => void): () => void {
    const watcher = { onWake }
    const watchers = this.#byKey.get(key) ?? new Set()
    this.#byKey.set(key, watchers.add(watcher))
    return () => {
      watchers.delete(watcher)
      this.#due.delete(watcher)
      if (watchers.size === 0 && this.#byKey.get(key) === watchers) this.#byKey.delete(key)
    }
  }

  has(key: string): boolean {
    return this.#byKey.has(key)
  }

  /** Calls the watchers of a key after the current turn of the event loop. */
  wake(key: string): void {
    for (const watcher of this.#byKey.get(key) ?? []) this.#due.add(watcher)
    this.#schedule()
  }

  clear(): void {
    this.#byKey.clear()
    this.#due.clear()
  }

  #schedule(): void {
    if (this.#scheduled || this.#due.size === 0) return
    this.#scheduled = true
    setImmediate(() => this.#runSlice())
  }

  #runSlice(): void {
    this.#scheduled = false
    let left = WATCHERS_PER_SLICE
    try {
      for (const watcher of this.#due) {
        if (left-- === 0) break
        this.#due.delete(watcher)
        watcher.onWake()
      }
    } finally {
      // Also when a watcher throws against its contract: the others are still owed their call.
      this.#schedule()
    }
  }
}
