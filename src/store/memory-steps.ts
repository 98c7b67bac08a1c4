import { Slices } from './slices.ts'

/**
 * The steps of a store in memory. They are done in {@link Slices}, in the order in which they were added; each is atomic, because
 * nothing else runs in its middle. One that throws rejects, alone.
 */
export class MemorySteps {
  readonly #closedError: () => Error
  readonly #slices = new Slices({
    doFirst: (most) => this.#doFirst(most),
    areWaiting: () => this.#waiting.length > 0,
  })
  #waiting: WaitingStep[] = []
  #isFinished = false

  /** @param closedError makes what steps reject with that come after {@link finish}. */
  constructor(closedError: () => Error) {
    this.#closedError = closedError
  }

  add<Result>(run: () => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#isFinished) {
        reject(this.#closedError())
        return
      }
      this.#waiting.push({ run, resolve: resolve as (result: unknown) => void, reject })
      this.#slices.request()
    })
  }

  /** Does all that wait, now. Steps that come later are rejected. */
  finish(): void {
    this.#isFinished = true
    this.#slices.finish()
  }

  #doFirst(most: number): void {
    const steps = this.#takeFirst(most)
    for (let count = 0; count < steps.length; ) {
      const { run, resolve, reject } = steps[count] as WaitingStep
      // What waits for it goes on once the steps are done.
      try {
        resolve(run())
      } catch (thrown) {
        reject(thrown)
      }
      count++
      if (count < steps.length && this.#slices.isOver) {
        this.#waiting = [...steps.slice(count), ...this.#waiting]
        return
      }
    }
  }

  #takeFirst(most: number): readonly WaitingStep[] {
    if (this.#waiting.length > most) return this.#waiting.splice(0, most)
    const all = this.#waiting
    this.#waiting = []
    return all
  }
}

interface WaitingStep {
  readonly run: () => unknown
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}
