import type { VersionedValue } from './store.ts'

/** A value as it is stored. */
export interface StoredValue {
  readonly found: VersionedValue
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/** Most values that were used lately, and as many that were before. */
const mostValues = 1_000
/** Longest value that is kept, in UTF-16 units, so that all together take 8 MiB, or twice as much beyond Latin-1. Most have less than 1,000. */
const maxLength = 4_096

/**
 * The values of a store that were used lately, by their keys. Good for a store that nobody else writes to: whoever changes a value
 * there changes it here. Nothing is known of a key that is not here.
 */
export class RecentValues {
  #recent = new Map<string, StoredValue>()
  #before = new Map<string, StoredValue>()

  get(key: string): StoredValue | undefined {
    const recent = this.#recent.get(key)
    if (recent !== undefined) return recent
    const before = this.#before.get(key)
    if (before !== undefined) this.#keep(key, before)
    return before
  }

  /** What is stored under a key from now on. */
  set(key: string, value: StoredValue): void {
    const { value: text } = value.found
    // SQLite keeps another character in the place of half of a surrogate pair.
    if (text.length > maxLength || !text.isWellFormed()) this.delete(key)
    else this.#keep(key, value)
  }

  #keep(key: string, value: StoredValue): void {
    if (this.#recent.size >= mostValues) {
      this.#before = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, value)
  }

  delete(key: string): void {
    this.#recent.delete(key)
    this.#before.delete(key)
  }

  clear(): void {
    this.#recent.clear()
    this.#before.clear()
  }
}
