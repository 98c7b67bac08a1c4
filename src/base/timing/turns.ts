/** Time in ms that tasks may take of one turn of the event loop. */
const sliceMs = 5
/** Most tasks in one slice, because what a task starts may come back together, such as replies of the store. */
const tasksPerSlice = 100

/** Something to do soon. It must not throw. */
export type Task = () => void

/**
 * Runs tasks in later turns of the event loop, in the order in which they were added. A slice ends after about 5 ms,
 * and then everything else that waits for the event loop has its turn. Telling ten thousand watchers of something at
 * once would block it for a second or more.
 *
 * The time of a task includes the promise reactions that it sets off: waking a watcher takes no time, but what the
 * watcher then does takes all of it.
 */
export class Turns {
  readonly #due = new Set<Task>()
  /** The tasks still to run, while any are. One iterator for all: each new one would pass over those that have run. */
  #queue: SetIterator<Task> | undefined
  #sliceEndsAt = 0
  #tasksLeft = 0

  /** Runs a task after the current turn of the event loop. A task that is due already stays where it is. */
  add(task: Task): void {
    this.#due.add(task)
    if (this.#queue !== undefined) return
    this.#queue = this.#due.values()
    setImmediate(this.#startSlice)
  }

  /** Forgets a task that is due. */
  delete(task: Task): void {
    this.#due.delete(task)
  }

  readonly #startSlice = (): void => {
    this.#sliceEndsAt = performance.now() + sliceMs
    this.#tasksLeft = tasksPerSlice
    this.#runNext()
  }

  readonly #runNext = (): void => {
    const next = this.#queue?.next()
    if (next === undefined || next.done) {
      this.#queue = undefined
      return
    }
    this.#due.delete(next.value)
    try {
      next.value()
    } finally {
      // Even if a task throws, which it must not: the others still have to run.
      queueMicrotask(this.#afterReactions)
    }
  }

  /** Goes on in a tick, because Node.js runs a tick when there are no more promise reactions. */
  readonly #afterReactions = (): void => process.nextTick(this.#continue)

  readonly #continue = (): void => {
    this.#tasksLeft--
    if (this.#tasksLeft > 0 && performance.now() < this.#sliceEndsAt) this.#runNext()
    else setImmediate(this.#startSlice)
  }
}

/** The turns of this process. There is one event loop, so all tasks share its slices. */
export const turns: Turns = new Turns()

/** A wait that can be ended early. It has one waiter at a time, which goes on in {@link turns} when time is over. */
export class Sleep {
  #end: (() => void) | undefined

  /** Ends the wait, if there is one. */
  end(): void {
    this.#end?.()
  }

  /** Waits about `ms` milliseconds, unless it is ended before. */
  async atMost(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => turns.add(resolve), Math.max(1, Math.ceil(ms)))
      this.#end = () => {
        clearTimeout(timer)
        turns.delete(resolve)
        resolve()
      }
    })
    this.#end = undefined
  }
}
