import { setTimeout as pause } from 'node:timers/promises'
import { callTime, TimeLimitError } from '../reconnecting-link.ts'
import { sqlStateOf } from './connection.ts'

/** Most steps of one statement. */
const mostSteps = 100

/** Most statements of a kind at once. Further steps wait for one of them and go out together. */
const mostStatements = 4

/** Time in milliseconds after which a statement is slow, as one behind a lock is: further steps do not wait for it. */
const slowMs = 50

/** A step: its key, and what else its statement gets of it. */
type Step = readonly [key: string, ...values: unknown[]]

/** A step that waits for its statement, or is in it. */
interface Waiting<Row> {
  readonly step: Step
  readonly resolve: (row: Row | undefined) => void
  readonly reject: (error: unknown) => void
  /** Its time is over, and it was reported as failed. */
  isOver: boolean
}

/** Steps of one statement, by their keys. */
type Batch<Row> = Map<string, [Waiting<Row>, ...Waiting<Row>[]]>

interface BatchesOptions<Row> {
  /**
   * Runs a statement, unless `isOver` by then: the time of all steps is over. Asks for the steps, by columns, when it
   * sends that, and resolves with a row for each that came to something.
   */
  readonly run: (columns: () => unknown[][], isOver: () => boolean) => Promise<readonly Row[]>
  /** Makes the error that the steps of a statement reject with. */
  readonly failureOf: (cause: unknown) => Error
  /** Steps on one key share their row; otherwise each is in a statement of its own. */
  readonly isShared?: boolean
}

/**
 * Steps of one kind: those of a turn of the event loop are one statement, which takes half of the CPU time off a
 * sign-in on PostgreSQL, and two thirds off a session check. A step whose time is over does not begin.
 */
export class Batches<Row extends { readonly key: string }> {
  readonly #options: BatchesOptions<Row>
  #waiting: Waiting<Row>[] = []
  #running = 0

  constructor(options: BatchesOptions<Row>) {
    this.#options = options
  }

  /** Does a step. Resolves with its row, or with undefined if it came to nothing. */
  do(step: Step): Promise<Row | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Row | undefined>()
    const waiting: Waiting<Row> = { step, resolve, reject, isOver: false }
    const limited = callTime.enter(() => {
      waiting.isOver = true
      reject(this.#options.failureOf(new TimeLimitError()))
    })
    this.#waiting.push(waiting)
    void this.#runNext()
    return promise.finally(() => callTime.leave(limited))
  }

  async #runNext(): Promise<void> {
    if (this.#running === mostStatements) return
    this.#running++
    await new Promise(setImmediate)
    const sent = Promise.withResolvers<void>()
    const isSlow = sent.promise.then(() => pause(slowMs, undefined, { ref: false }))
    await Promise.race([this.#runAll(this.#takeBatch(), sent.resolve), isSlow])
    this.#running--
    if (this.#waiting.length > 0) void this.#runNext()
  }

  async #runAll(batch: Batch<Row>, sent: () => void): Promise<void> {
    if (batch.size === 0) return
    const { run, failureOf } = this.#options
    const all = [...batch.values()]
    const inTime = (): Step[] => all.filter((same) => !same.every(({ isOver }) => isOver)).map(([{ step }]) => step)
    const columns = (): unknown[][] => {
      sent()
      return columnsOf(inTime())
    }
    try {
      const rows = await run(columns, () => inTime().length === 0)
      for (const row of rows) for (const { resolve } of batch.get(row.key) ?? []) resolve(row)
      for (const { resolve } of all.flat()) resolve(undefined)
    } catch (error) {
      if (batch.size > 1 && isOfOneStep(error)) {
        await Promise.all([...batch].map((one) => this.#runAll(new Map([one]), sent)))
        return
      }
      const failure = failureOf(error)
      for (const { reject } of all.flat()) reject(failure)
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

/**
 * Whether the server undid a statement at once for what can be the fault of one of its steps: another transaction, or a
 * value that it cannot take. One behind a lock has used up the time of those beside it.
 */
function isOfOneStep(cause: unknown): boolean {
  return /^(?:40|22|21000)/.test(sqlStateOf(cause) ?? '')
}
