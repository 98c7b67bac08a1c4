import type { VersionedValue } from './store.ts'

/** A value as it is stored. */
export interface StoredValue {
  readonly found: VersionedValue
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/** Most that a generation takes, in bytes: some 5,000 values that are as long as most. Twice as much if they go beyond Latin-1. */
const mostBytes = 4 * 1024 * 1024
/** What a value takes beside its characters and those of its key, in bytes: two objects, and a place in a Map. */
const bytesBeside = 200

/**
 * The values of a store that were used lately, by their keys. Good for a store that nobody else writes to: whoever changes a value
 * there changes it here. Nothing is known of a key that is not here.
 *
 * They are in two generations: when the recent one is full, the one before is dropped, so what is used stays.
 */
export class RecentValues {
  #recent = new Map<string, StoredValue>()
  #before = new Map<string, StoredValue>()
  /** What the recent ones take. */
  #bytes = 0

  get(key: string): StoredValue | undefined {
    const recent = this.#recent.get(key)
    if (recent !== undefined) return recent
    const before = this.#before.get(key)
    if (before !== undefined) this.#keep(key, before)
    return before
  }

  /** What is stored under a key from now on. */
  set(key: string, value: StoredValue): void {
    // SQLite keeps another character in the place of half of a surrogate pair.
    if (value.found.value.isWellFormed()) this.#keep(key, value)
    else this.delete(key)
  }

  #keep(key: string, value: StoredValue): void {
    this.#deleteRecent(key)
    if (this.#bytes >= mostBytes) {
      this.#before = this.#recent
      this.#recent = new Map()
      this.#bytes = 0
    }
    this.#recent.set(key, value)
    this.#bytes += bytesOf(key, value)
  }

  delete(key: string): void {
    this.#deleteRecent(key)
    this.#before.delete(key)
  }

  #deleteRecent(key: string): void {
    const value = this.#recent.get(key)
    if (value === undefined) return
    this.#recent.delete(key)
    this.#bytes -= bytesOf(key, value)
  }

  clear(): void {
    this.#recent.clear()
    this.#before.clear()
    this.#bytes = 0
  }
}

function bytesOf(key: string, { found }: StoredValue): number {
  return bytesBeside + key.length + found.value.length
}
