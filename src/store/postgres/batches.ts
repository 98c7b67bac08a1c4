import { setTimeout as pause } from 'node:timers/promises'
import { callTime, TimeLimitError, timeLimitMs } from '../reconnecting-link.ts'

/** Most statements of one kind at once. Further steps wait for one of them, and go out together. */
const mostAtOnce = 4

/** Time in milliseconds after which a statement is slow, such as one behind a lock: further steps do not wait for it. */
const slowMs = 50

/** Most steps of one statement. */
const mostSteps = 100

/** A step: its key, and what else its statement gets of it. */
export type Step = readonly [key: string, ...values: unknown[]]

/** A step that waits for its statement. */
interface Waiting<Row> {
  readonly step: Step
  readonly resolve: (row: Row | undefined) => void
  readonly reject: (error: unknown) => void
}

/** Steps of one statement, by their keys. */
type Batch<Row> = Map<string, [Waiting<Row>, ...Waiting<Row>[]]>

/**
 * Steps of one kind: those of a turn of the event loop are one statement, which takes half of the CPU time off a
 * sign-in on PostgreSQL, and two thirds off a session check. A step whose time is over does not begin.
 */
export class Batches<Row extends { readonly key: string }> {
  readonly #run: (columns: readonly (readonly unknown[])[]) => Promise<readonly Row[]>
  readonly #shared: boolean
  #waiting: Waiting<Row>[] = []
  #running = 0

  /**
   * `run` gets the steps by columns, and resolves with a row for each that came to something; if it rejects, all do.
   * Steps on one key share their row if they are `shared`; otherwise each is in a statement of its own.
   */
  constructor(run: (columns: readonly (readonly unknown[])[]) => Promise<readonly Row[]>, shared: boolean) {
    this.#run = run
    this.#shared = shared
  }

  /** Does a step. Resolves with its row, or with undefined if it came to nothing. */
  do(step: Step): Promise<Row | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Row | undefined>()
    const waiting = { step, resolve, reject }
    const limited = callTime.enter(() => {
      this.#waiting = this.#waiting.filter((each) => each !== waiting)
      reject(new TimeLimitError(`no answer within ${timeLimitMs} ms`))
    })
    this.#waiting.push(waiting)
    void this.#runNext()
    return promise.finally(() => callTime.leave(limited))
  }

  async #runNext(): Promise<void> {
    if (this.#running === mostAtOnce) return
    this.#running++
    await new Promise(setImmediate)
    await Promise.race([this.#runAll(this.#takeBatch()), pause(slowMs, undefined, { ref: false })])
    this.#running--
    if (this.#waiting.length > 0) void this.#runNext()
  }

  async #runAll(batch: Batch<Row>): Promise<void> {
    if (batch.size === 0) return
    const all = [...batch.values()]
    try {
      const rows = await this.#run(columnsOf(all.map(([{ step }]) => step)))
      for (const row of rows) for (const { resolve } of batch.get(row.key) ?? []) resolve(row)
      for (const { resolve } of all.flat()) resolve(undefined)
    } catch (error) {
      for (const { reject } of all.flat()) reject(error)
    }
  }

  /** The steps of the next statement, by their keys. */
  #takeBatch(): Batch<Row> {
    const batch: Batch<Row> = new Map()
    this.#waiting = this.#waiting.filter((each) => {
      const [key] = each.step
      const same = batch.get(key)
      if (same === undefined ? batch.size === mostSteps : !this.#shared) return true
      if (same === undefined) batch.set(key, [each])
      else same.push(each)
      return false
    })
    return batch
  }
}

/** In the order of their keys, so that no two statements wait for each other. */
function columnsOf(steps: Step[]): unknown[][] {
  steps.sort(([a], [b]) => (a < b ? -1 : 1))
  return (steps[0] ?? []).map((_, column) => steps.map((step) => step[column]))
}
