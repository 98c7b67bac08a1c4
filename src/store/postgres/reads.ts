import type { VersionedValue } from '../store.ts'

/** What the server answers of a key. */
export interface ReadRow extends VersionedValue {
  readonly key: string
}

/** Most statements of reads at once. Further reads wait for one of them, and go out together. */
const mostAtOnce = 2

/**
 * Reads of single keys, all of a turn of the event loop in one statement: of a session check on PostgreSQL, a statement
 * of its own was three fifths of the CPU time.
 */
export class Reads {
  readonly #send: (keys: readonly string[]) => Promise<readonly ReadRow[]>
  #waiting = new Map<string, PromiseWithResolvers<VersionedValue | undefined>>()
  #sending = 0

  /** `send` resolves with the rows of those keys that are there. If it rejects, so do all reads of these keys. */
  constructor(send: (keys: readonly string[]) => Promise<readonly ReadRow[]>) {
    this.#send = send
  }

  get(key: string): Promise<VersionedValue | undefined> {
    const known = this.#waiting.get(key)
    if (known !== undefined) return known.promise
    const read = Promise.withResolvers<VersionedValue | undefined>()
    this.#waiting.set(key, read)
    if (this.#waiting.size === 1) void this.#sendNext()
    return read.promise
  }

  async #sendNext(): Promise<void> {
    if (this.#sending === mostAtOnce) return
    this.#sending++
    await new Promise(setImmediate)
    const reads = this.#waiting
    this.#waiting = new Map()
    try {
      const rows = reads.size === 0 ? [] : await this.#send([...reads.keys()])
      for (const { key, value, version } of rows) reads.get(key)?.resolve({ value, version })
      for (const absent of reads.values()) absent.resolve(undefined)
    } catch (error) {
      for (const failed of reads.values()) failed.reject(error)
    }
    this.#sending--
    if (this.#waiting.size > 0) void this.#sendNext()
  }
}
