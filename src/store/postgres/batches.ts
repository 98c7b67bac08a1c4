import { setTimeout as pause } from 'node:timers/promises'
import { callTime, TimeLimitError, timeLimitMs } from '../reconnecting-link.ts'

/** Time in milliseconds after which a statement is slow, as one behind a lock is: further steps do not wait for it. */
const slowMs = 50

/** Most steps of one statement. */
const mostSteps = 100

/** A step: its key, and what else its statement gets of it. */
type Step = readonly [key: string, ...values: unknown[]]

/** A step that waits for its statement, or is in it. */
interface Waiting<Row> {
  readonly step: Step
  readonly resolve: (row: Row | undefined) => void
  readonly reject: (error: unknown) => void
  /** Its time is over, and it was reported as failed. */
  isOver: boolean
  /** Called then, if it is in a statement. */
  onOver: () => void
}

/** Steps of one statement, by their keys. */
type Batch<Row> = Map<string, [Waiting<Row>, ...Waiting<Row>[]]>

interface BatchesOptions<Row> {
  /**
   * Runs a statement. Asks for the steps, by columns, when it sends that, and resolves with a row for each that came to
   * something. `isOver` is aborted once the time of all steps is over: the statement must not begin any more.
   */
  readonly run: (columns: () => unknown[][], isOver: AbortSignal) => Promise<readonly Row[]>
  /** Steps on one key share their row; otherwise each is in a statement of its own. */
  readonly isShared?: boolean
  /** Most statements at once. Further steps wait for one of them, a slow one excepted, and go out together. */
  readonly mostAtOnce?: number
  /** Whether an error, which undid all steps of a statement at once, can be that of a single one. */
  readonly isOfOne?: (error: unknown) => boolean
}

/**
 * Steps of one kind: those of a turn of the event loop are one statement, which takes half of the CPU time off a
 * sign-in on PostgreSQL, and two thirds off a session check. A step whose time is over does not begin.
 */
export class Batches<Row extends { readonly key: string }> {
  readonly #options: Required<BatchesOptions<Row>>
  #waiting: Waiting<Row>[] = []
  #running = 0

  constructor(options: BatchesOptions<Row>) {
    this.#options = { isShared: false, mostAtOnce: 4, isOfOne: () => false, ...options }
  }

  /** Does a step. Resolves with its row, or with undefined if it came to nothing. */
  do(step: Step): Promise<Row | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Row | undefined>()
    const waiting = { step, resolve, reject, isOver: false, onOver: () => {} }
    const limited = callTime.enter(() => {
      waiting.isOver = true
      reject(new TimeLimitError(`no answer within ${timeLimitMs} ms`))
      waiting.onOver()
    })
    this.#waiting.push(waiting)
    void this.#runNext()
    return promise.finally(() => callTime.leave(limited))
  }

  async #runNext(): Promise<void> {
    const { mostAtOnce } = this.#options
    if (this.#running === mostAtOnce) return
    this.#running++
    await new Promise(setImmediate)
    const sent = Promise.withResolvers<void>()
    const done = this.#runAll(this.#takeBatch(), sent.resolve)
    // With one statement at a time, the next one waits however slow it is.
    if (mostAtOnce === 1) await done
    else await Promise.race([done, sent.promise.then(() => pause(slowMs, undefined, { ref: false }))])
    this.#running--
    if (this.#waiting.length > 0) void this.#runNext()
  }

  async #runAll(batch: Batch<Row>, sent: () => void): Promise<void> {
    if (batch.size === 0) return
    const { run, isOfOne } = this.#options
    const all = [...batch.values()]
    const over = new AbortController()
    for (const waiting of all.flat()) {
      waiting.onOver = () => {
        if (all.flat().every(({ isOver }) => isOver)) over.abort()
      }
    }
    const columns = (): unknown[][] => {
      sent()
      return columnsOf(all.filter((same) => !same.every(({ isOver }) => isOver)).map(([{ step }]) => step))
    }
    try {
      const rows = await run(columns, over.signal)
      for (const row of rows) for (const { resolve } of batch.get(row.key) ?? []) resolve(row)
      for (const { resolve } of all.flat()) resolve(undefined)
    } catch (error) {
      if (batch.size > 1 && isOfOne(error)) {
        await Promise.all([...batch].map((one) => this.#runAll(new Map([one]), sent)))
      } else for (const { reject } of all.flat()) reject(error)
    }
  }

  /** The steps of the next statement, by their keys. */
  #takeBatch(): Batch<Row> {
    const batch: Batch<Row> = new Map()
    this.#waiting = this.#waiting.filter((each) => {
      if (each.isOver) return false
      const [key] = each.step
      const same = batch.get(key)
      if (same === undefined ? batch.size === mostSteps : !this.#options.isShared) return true
      if (same === undefined) batch.set(key, [each])
      else same.push(each)
      return false
    })
    return batch
  }
}

/** In the order of their keys, so that two statements rarely wait for each other. */
function columnsOf(steps: Step[]): unknown[][] {
  steps.sort(([a], [b]) => (a < b ? -1 : 1))
  return (steps[0] ?? []).map((_, column) => steps.map((step) => step[column]))
}
