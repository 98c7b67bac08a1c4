/** Numbers that follow from a seed: the same on every machine and version of Node (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A whole number from 0 to 2^32 - 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** A whole number from 0 to `bound` - 1. */
  below(bound: number): number {
    return this.next() % bound
  }

  /** True in so many of 1,000 cases. */
  permille(share: number): boolean {
    return this.below(1000) < share
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }

  /** Fills with bytes. */
  fill(bytes: Uint8Array): void {
    for (let index = 0; index < bytes.length; index++) bytes[index] = this.next() >>> 24
  }
}

/** A number that two numbers make, as good as random. */
export function mixed(one: number, other: number): number {
  return new Random((Math.imul(one, 0x9e3779b1) ^ other) >>> 0).next()
}
