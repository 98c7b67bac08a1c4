import { setImmediate as nextTurn } from 'node:timers/promises'
import { CountersignError } from '../../../src/shared/errors.ts'
import type { ScannedValue, Store } from '../../../src/store/store.ts'

// Ways to run what several processes do at the same store: in every order of their steps, and with an end at any step.

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

/**
 * Runs `run` once for each order in which the steps at the store can happen that its parts take at once. Resolves with
 * how many there are.
 */
export async function everyOrder(store: Store, run: (handle: Store) => Promise<void>): Promise<number> {
  const choices: number[] = []
  for (let count = 1; ; count++) {
    const waiting: (() => void)[] = []
    let [held, running, over] = [true, 0, false]
    const handle = through(store, async () => {
      if (held) await new Promise<void>((go) => waiting.push(go))
      running++
      return () => void running--
    })
    const finished = run(handle).finally(() => {
      over = true
    })
    finished.catch(() => {})
    const widths: number[] = []
    while (!over) {
      // In one turn, each part gets to its next step.
      await nextTurn()
      if (running > 0 || waiting.length === 0) continue
      const choice = choices[widths.length] ?? 0
      choices[widths.length] = choice
      widths.push(waiting.length)
      const [go] = waiting.splice(choice, 1)
      if (go === undefined) throw new Error('the same steps in the same order did not lead to the same next steps')
      go()
    }
    held = false
    await finished
    while (choices.length > 0 && choices.at(-1) === (widths[choices.length - 1] ?? 0) - 1) choices.pop()
    if (choices.length === 0) return count
    choices[choices.length - 1] = (choices.at(-1) ?? 0) + 1
  }
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
 * Runs parts that each take a handle, in an order of their steps that `choose` makes up: it is asked for a number below
 * another.
 */
export async function inRandomOrder(
  store: Store,
  choose: (below: number) => number,
  parts: readonly Part[],
): Promise<PromiseSettledResult<unknown>[]> {
  const turns = new Turns()
  const finished = Promise.allSettled(parts.map((part) => part(turns.handle(store))))
  for (let waiting = await turns.waiting(); waiting.length > 0; waiting = await turns.waiting()) {
    await turns.take(waiting[choose(waiting.length)] as number, 1)
  }
  return await finished
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

  /** Lets all steps of a part through. */
  async takeAll(part: number): Promise<void> {
    await this.take(part, Number.POSITIVE_INFINITY)
  }
}

/** A handle whose process ends at a step, which it has done or not. */
export function endingAt(store: Store, step: number, isDone: boolean): { handle: Store; ended: () => boolean } {
  let steps = 0
  const ends = () => new CountersignError('STORE_UNAVAILABLE', 'The process has ended')
  const gate = async () => {
    const own = ++steps
    if (own > step || (own === step && !isDone)) throw ends()
    return () => {
      if (own === step) throw ends()
    }
  }
  const handle = through(store, gate)
  return { handle, ended: () => steps >= step }
}

/** Runs a part once for each step at which its process ends, done or not, and then `check`. */
export async function atEveryEnd<Prepared>(
  store: Store,
  prepare: () => Promise<Prepared>,
  part: (handle: Store, prepared: Prepared) => Promise<unknown>,
  check: (prepared: Prepared) => Promise<void>,
): Promise<void> {
  let steps = 0
  for (const isDone of [false, true]) {
    for (let step = 1, crashed = true; crashed; step++, steps++) {
      const prepared = await prepare()
      const { handle, ended } = endingAt(store, step, isDone)
      await part(handle, prepared).catch(() => undefined)
      crashed = ended()
      await check(prepared)
    }
  }
  if (steps <= 8) throw new Error(`the part has ${steps} ends, too few to be what it was`)
}
