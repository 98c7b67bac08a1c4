/** Time in ms after which no more steps are done in a turn of the event loop. */
const sliceMs = 5
/** Most steps in one turn, because what waits for them goes on together. */
const stepsPerSlice = 100

interface SlicesParts {
  /** Does the first steps that wait, at most so many. It must not throw. */
  readonly doFirst: (most: number) => void
  /** Whether any step waits. */
  readonly areWaiting: () => boolean
}

/**
 * When the steps of an embedded store are done: together, at the end of the event loop's turn, so that the answers that they lead to
 * are sent together, and a file is written to once for all of them. What these then add waits for the next turn, with what other calls
 * have added by then: to do it at once would make more and smaller slices, each with a commit of its own.
 *
 * A slice ends after about 5 ms, and then everything else that waits for the event loop has its turn. These are not the slices of
 * `timing/turns.ts`: there, a step would wait behind ten thousand watchers that are told of something.
 */
export class Slices {
  readonly #doFirst: SlicesParts['doFirst']
  readonly #areWaiting: SlicesParts['areWaiting']
  #isDue = false
  #endsAt = 0

  constructor({ doFirst, areWaiting }: SlicesParts) {
    this.#doFirst = doFirst
    this.#areWaiting = areWaiting
  }

  /** Says that a step waits. */
  request(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(this.#start)
  }

  /** Whether the slice has taken its time: then no further step is begun in it. */
  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  /** Does all steps that wait, now. */
  finish(): void {
    this.#endsAt = Number.POSITIVE_INFINITY
    while (this.#areWaiting()) this.#doFirst(stepsPerSlice)
  }

  readonly #start = (): void => {
    this.#isDue = false
    this.#endsAt = performance.now() + sliceMs
    this.#doFirst(stepsPerSlice)
    if (this.#areWaiting()) this.request()
  }
}
