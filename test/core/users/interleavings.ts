import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ScannedValue, Store } from '../../../src/store/store.ts'

// A way to run what two processes do at the same store: in every order of their steps with two switches between them.

/** A handle of a store. Before each step it waits for `gate`, which may refuse it, and tells when the step is done. */
function through(store: Store, gate: () => Promise<() => void>): Store {
  return new Proxy(store, {
    get(_, name) {
      const value = Reflect.get(store, name)
      if (typeof value !== 'function') return value
      if (name === 'now') return value.bind(store)
      if (name === 'scan') return (beginning: string) => scannedAtOnce(store, beginning, gate)
      return async (...args: unknown[]) => {
        const done = await gate()
        try {
          return await value.apply(store, args)
        } finally {
          done()
        }
      }
    },
  })
}

/** What a store finds, as one step. */
async function* scannedAtOnce(store: Store, beginning: string, gate: () => Promise<() => void>) {
  const done = await gate()
  const found: ScannedValue[] = []
  try {
    for await (const one of store.scan?.(beginning) ?? []) found.push(one)
  } finally {
    done()
  }
  yield* found
}

/** What is done at a store by one process. */
export type Part = (handle: Store) => Promise<unknown>

/** Two parts to be run at once, and what has to hold afterwards. */
export interface Pair {
  readonly parts: readonly [Part, Part]
  readonly check: (outcomes: readonly [PromiseSettledResult<unknown>, PromiseSettledResult<unknown>]) => Promise<void>
}

/** Which ways to switch between two parts are taken. */
interface Switching {
  readonly one?: 0 | 1
  readonly stride?: number
  /** Whether steps that a part begins at once are taken the last one first, as they may be in a cluster. */
  readonly lastFirst?: boolean
}

/**
 * Runs two parts once for each way to switch between them twice: one begins, the other begins, the one goes on to its
 * end, and so does the other. For parts with so many steps that {@link everyOrder} would take too long. `one` is the
 * number of the part that begins. Of the ways, only those after each `stride` steps are taken; after four on a shared
 * store, whose steps take longer.
 */
export async function everyTwoSwitches(
  store: Store,
  { one = 0, stride: most = 2, lastFirst = false }: Switching,
  prepare: () => Promise<Pair>,
): Promise<void> {
  const stride = store.shared ? 4 : most
  const other = 1 - one
  for (let first = 0, firstHasMore = true; firstHasMore; first += stride) {
    for (let second = 0, secondHasMore = true; secondHasMore; second += stride) {
      const { parts, check } = await prepare()
      const turns = new Turns(lastFirst)
      const finished = Promise.allSettled([parts[0](turns.handle(store)), parts[1](turns.handle(store))])
      firstHasMore = await turns.take(one, first)
      secondHasMore = await turns.take(other, second)
      for (let part = one; (await turns.waiting()).length > 0; part = part === 0 ? 1 : 0) await turns.takeAll(part)
      await check(await finished)
    }
  }
}

/**
 * Runs two parts that take turns, after the first steps of one of them; what one begins at once is one turn. Resolves
 * with false if they have not ended after 100 turns each, as calls that undo each other's steps do not.
 */
export async function endInTurns(store: Store, parts: readonly [Part, Part], first: number): Promise<boolean> {
  const turns = new Turns()
  const finished = Promise.allSettled([parts[0](turns.handle(store)), parts[1](turns.handle(store))])
  await turns.take(0, first)
  for (let turn = 0; turn < 100; turn++) for (const part of [0, 1]) await turns.takeTurn(part)
  const isEnded = (await turns.waiting()).length === 0
  // One alone comes to its end, and then so does the other.
  for (const part of [0, 1]) await turns.takeAll(part)
  await finished
  return isEnded
}

/** Lets the steps of several parts through, one at a time. Parts are numbered from 0. */
class Turns {
  readonly #waiting: (() => void)[][] = []
  readonly #lastFirst: boolean
  #running = 0

  constructor(lastFirst = false) {
    this.#lastFirst = lastFirst
  }

  /** The handle of the next part. */
  handle(store: Store): Store {
    const queue: (() => void)[] = []
    this.#waiting.push(queue)
    const gate = async () => {
      await new Promise<void>((go) => queue.push(go))
      this.#running++
      return () => void this.#running--
    }
    return through(store, gate)
  }

  /** The parts that wait for a step, once none is in progress. */
  async waiting(): Promise<number[]> {
    // In one turn, each part gets to its next step.
    do await nextTurn()
    while (this.#running > 0)
    return [...this.#waiting.keys()].filter((part) => this.#waiting[part]?.length)
  }

  /** Lets so many steps of a part through, or fewer if it comes to its end. Resolves with whether it waits for more. */
  async take(part: number, steps: number): Promise<boolean> {
    for (let left = steps; ; left--) {
      const isWaiting = (await this.waiting()).includes(part)
      if (!isWaiting || left === 0) return isWaiting
      const queue = this.#waiting[part]
      const go = this.#lastFirst ? queue?.pop() : queue?.shift()
      go?.()
    }
  }

  /** Lets those steps of a part through that wait now. */
  async takeTurn(part: number): Promise<void> {
    await this.waiting()
    await this.take(part, this.#waiting[part]?.length ?? 0)
  }

  /** Lets all steps of a part through. */
  async takeAll(part: number): Promise<void> {
    await this.take(part, Number.POSITIVE_INFINITY)
  }
}
