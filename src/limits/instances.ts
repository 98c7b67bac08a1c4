import type { Store } from '../store/store.ts'
import { newId } from '../token.ts'

/** Time in ms for which an instance counts after it last said that it runs, and between two times of saying so. */
const lifeMs = 30_000
const intervalMs = 10_000

/** Time in ms after which it looks again at its start: instances are often started together. */
const secondBeatMs = 1_000

const setOfAll = 'instances'

/**
 * The instances that share a store, as far as this one knows: each says every ten seconds that it runs. One that has ended without a
 * word counts for up to 30 seconds more.
 */
export class Instances {
  /** Names this instance among those that share the store. */
  readonly id: string = newId()
  readonly #store: Store
  #known: number | undefined
  #timer: NodeJS.Timeout

  constructor(store: Store) {
    this.#store = store
    this.#timer = setTimeout(() => {
      void this.#beat()
      this.#timer = setInterval(() => void this.#beat(), intervalMs).unref()
    }, secondBeatMs).unref()
    void this.#beat()
  }

  /** Most instances that may run: those that are known, and one that has just started. 2 while nothing is known. */
  get most(): number {
    return (this.#known ?? 1) + 1
  }

  /** Ends that: the others no longer count this one. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#store.removeMember(setOfAll, this.id).catch(() => {})
  }

  async #beat(): Promise<void> {
    try {
      await this.#store.addMember(setOfAll, this.id, { ttlMs: lifeMs })
      this.#known = (await this.#store.members(setOfAll)).length
    } catch {
      // What was known last is the best guess until the store answers again.
    }
  }
}
