import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { Slices } from './slices.ts'

/** The error code of a database that another connection keeps locked. */
const busy = 5

interface StepQueueParts {
  readonly database: DatabaseSync
  /** Makes what a step rejects with of what it failed with. */
  readonly errorOf: (cause: unknown) => Error
  /** Makes what steps reject with that come after {@link StepQueue.finish}. */
  readonly closedError: () => Error
}

/**
 * The steps of a SQLite store. They are done in {@link Slices}, in the order in which they were added: the writes of a turn are one
 * transaction, and all promises settle after its commit.
 *
 * Each step is atomic, as if it were alone. A transaction is begun and ended without giving anything else a turn, so that what else
 * uses the connection is never in the middle of one.
 */
export class StepQueue {
  readonly #database: DatabaseSync
  readonly #errorOf: StepQueueParts['errorOf']
  readonly #closedError: StepQueueParts['closedError']
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #rollback: StatementSync
  #waiting: WaitingStep[] = []
  #isFinished = false
  /** Whether a rollback has failed. */
  #isLeftOpen = false
  readonly #slices = new Slices({
    doFirst: (most) => this.#do(most),
    areWaiting: () => this.#waiting.length > 0,
  })

  constructor({ database, errorOf, closedError }: StepQueueParts) {
    this.#database = database
    this.#errorOf = errorOf
    this.#closedError = closedError
    this.#begin = database.prepare('BEGIN IMMEDIATE')
    this.#commit = database.prepare('COMMIT')
    this.#rollback = database.prepare('ROLLBACK')
  }

  /** Adds a step that changes nothing. */
  read<Result>(statements: () => Result): Promise<Result> {
    return this.#add('read', statements)
  }

  /**
   * Adds a step that is atomic outside of a transaction too, such as a single statement. It may be repeated if it is certain that it
   * did not happen, so it must not do anything else.
   *
   * @param onCommit is called once it is committed, before its promise resolves.
   */
  write<Result>(statement: () => Result, onCommit?: (result: Result) => void): Promise<Result> {
    return this.#add('write', statement, onCommit)
  }

  /** Adds a step of several statements that need a transaction to be atomic. As {@link write} otherwise. */
  transaction<Result>(statements: () => Result): Promise<Result> {
    return this.#add('transaction', statements)
  }

  /** Does all that wait, now. Steps that come later are rejected. */
  finish(): void {
    this.#isFinished = true
    this.#slices.finish()
  }

  #add<Result>(kind: StepKind, run: () => Result, onCommit?: (result: Result) => void): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#isFinished) {
        reject(this.#closedError())
        return
      }
      this.#waiting.push(new Step(kind, run, onCommit, resolve, reject))
      this.#slices.request()
    })
  }

  /** Does the first steps that wait, at most so many. Those that are put back are tried anew. */
  #do(most: number): void {
    const steps = this.#takeFirst(most)
    const needsTransaction = isGroup(steps)
    let isOpen = false
    let count = 0
    try {
      if (this.#isLeftOpen) this.#rollBack()
      for (const step of steps) {
        // Reads that come before do not need the lock.
        if (needsTransaction && !isOpen && step.kind !== 'read') {
          this.#begin.run()
          isOpen = true
        }
        step.run()
        count++
        if (count < steps.length && this.#slices.isOver) break
      }
    } catch (cause) {
      this.#undo()
      this.#putBack(steps)
      if (isBusy(cause)) this.#failLocked(cause, steps[count])
      else if (steps.length === 1) this.#fail(cause, (step) => step === steps[0])
      // Only what fails alone, too, fails.
      else for (const _ of steps) this.#do(1)
      return
    }
    try {
      if (isOpen) this.#commit.run()
    } catch (cause) {
      this.#undo()
      this.#putBack(steps)
      // The writes may have happened, so they are not repeated. The reads saw what may be undone.
      const undone = new Set(steps.slice(0, count))
      this.#fail(cause, (step) => step.kind !== 'read' && undone.has(step))
      return
    }
    if (count < steps.length) this.#putBack(steps.splice(count))
    for (const step of steps) step.settle()
  }

  #takeFirst(most: number): WaitingStep[] {
    if (this.#waiting.length > most) return this.#waiting.splice(0, most)
    const all = this.#waiting
    this.#waiting = []
    return all
  }

  #putBack(steps: readonly WaitingStep[]): void {
    this.#waiting = [...steps, ...this.#waiting]
  }

  /**
   * Fails all writes that wait, because they have waited for the lock together: one after the other, each would block the event loop
   * for the whole time anew.
   */
  #failLocked(cause: unknown, failed: WaitingStep | undefined): void {
    this.#fail(cause, (step) => step.kind !== 'read' || step === failed)
  }

  #fail(cause: unknown, fails: (step: WaitingStep) => boolean): void {
    const all = this.#takeFirst(Number.POSITIVE_INFINITY)
    this.#waiting = all.filter((step) => !fails(step))
    for (const step of all) if (fails(step)) step.reject(this.#errorOf(cause))
  }

  #undo(): void {
    try {
      this.#rollBack()
    } catch {
      // Tried again before the next step, which fails if that does.
    }
  }

  #rollBack(): void {
    // SQLite may have done so by itself.
    this.#isLeftOpen = this.#database.isTransaction
    if (this.#isLeftOpen) this.#rollback.run()
    this.#isLeftOpen = false
  }
}

/** A transaction costs two statements, so a single write does without if it can. */
function isGroup(steps: readonly WaitingStep[]): boolean {
  let writes = 0
  for (const { kind } of steps) {
    if (kind === 'transaction') return true
    if (kind === 'write' && ++writes > 1) return true
  }
  return false
}

function isBusy(cause: unknown): boolean {
  // The low byte is the code, and the others say why.
  return cause instanceof Error && 'errcode' in cause && (Number(cause.errcode) & 0xff) === busy
}

type StepKind = 'read' | 'write' | 'transaction'

interface WaitingStep {
  readonly kind: StepKind
  run(): void
  /** Resolves with what the last run came to. */
  settle(): void
  reject(error: Error): void
}

class Step<Result> implements WaitingStep {
  readonly kind: StepKind
  readonly reject: (error: Error) => void
  readonly #run: () => Result
  readonly #onCommit: ((result: Result) => void) | undefined
  readonly #resolve: (result: Result) => void
  #result: Result | undefined

  // One by one, because there is one for each step.
  constructor(
    kind: StepKind,
    run: () => Result,
    onCommit: ((result: Result) => void) | undefined,
    resolve: (result: Result) => void,
    reject: (error: Error) => void,
  ) {
    this.kind = kind
    this.reject = reject
    this.#run = run
    this.#onCommit = onCommit
    this.#resolve = resolve
  }

  run(): void {
    this.#result = this.#run()
  }

  settle(): void {
    const result = this.#result as Result
    this.#onCommit?.(result)
    this.#resolve(result)
  }
}
