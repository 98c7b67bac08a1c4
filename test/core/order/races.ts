import type { OrderRecords } from '../../../src/core/order/records.ts'

/** Holds what arrives until so many have, then lets all go in a random order, and later arrivals through. */
export class Barrier {
  readonly #parties: number
  #held: (() => void)[] = []
  #open = false

  constructor(parties: number) {
    this.#parties = parties
  }

  get held(): number {
    return this.#held.length
  }

  async arrive(): Promise<void> {
    if (this.#open) return
    const passed = new Promise<void>((resolve) => this.#held.push(resolve))
    if (this.#held.length === this.#parties) {
      this.#open = true
      const shuffled = this.#held.map((go) => ({ go, rank: Math.random() })).sort((a, b) => a.rank - b.rank)
      // In a later turn: whoever came last waits only then, and would otherwise always be the last to go on.
      setImmediate(() => {
        for (const { go } of shuffled) go()
      })
    }
    await passed
  }
}

/** Everyone reads before anyone writes. */
export function afterReading(records: OrderRecords, barrier: Barrier): OrderRecords {
  return {
    ...records,
    async load(orderId) {
      const loaded = await records.load(orderId)
      await barrier.arrive()
      return loaded
    },
  }
}
