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

/** Time in ms by which a task can be late, in addition to the lateness of the event loop. */
const tickMs = 100
/** Longest time in ms that `setTimeout` takes. */
const maxTimeoutMs = 2 ** 31 - 1

/**
 * Many coarse timers on one timer of Node.js. Times are rounded up to ticks of 100 ms; the tasks of one tick run in
 * {@link turns}. Setting and cancelling take constant time, and a cancelled timer leaves nothing behind.
 */
export class TimerWheel {
  /** The tasks of each tick that has any. Tick n is the time n * tickMs by performance.now. */
  readonly #slots = new Map<number, Set<Task>>()
  #timer: NodeJS.Timeout | undefined
  /** The tick that the timer is set for. */
  #nextTick = Number.POSITIVE_INFINITY

  /**
   * Runs a task once, `ms` milliseconds from now or up to 100 ms later, never earlier. The returned function cancels
   * that; it may be called more than once, and after the task has run.
   */
  set(ms: number, task: Task): () => void {
    const tick = Math.ceil((performance.now() + Math.max(0, ms)) / tickMs)
    // A function of its own, because sets tell tasks apart by identity.
    const due = (): void => task()
    const slot = this.#slots.get(tick) ?? new Set()
    this.#slots.set(tick, slot.add(due))
    if (tick < this.#nextTick) this.#setTimer(tick)
    return () => this.#cancel(tick, due)
  }

  #cancel(tick: number, due: Task): void {
    turns.delete(due)
    const slot = this.#slots.get(tick)
    if (!slot?.delete(due) || slot.size > 0) return
    this.#slots.delete(tick)
    if (this.#slots.size === 0) this.#setTimer(Number.POSITIVE_INFINITY)
  }

  /** Sets the timer for a tick, or clears it. If that tick's tasks are cancelled, the timer fires for nothing, once. */
  #setTimer(tick: number): void {
    clearTimeout(this.#timer)
    this.#nextTick = tick
    if (tick === Number.POSITIVE_INFINITY) return
    const ms = Math.ceil(tick * tickMs - performance.now())
    this.#timer = setTimeout(this.#runDue, Math.min(Math.max(1, ms), maxTimeoutMs))
  }

  readonly #runDue = (): void => {
    const now = Math.floor(performance.now() / tickMs)
    let nextTick = Number.POSITIVE_INFINITY
    for (const [tick, slot] of this.#slots) {
      if (tick > now) {
        nextTick = Math.min(nextTick, tick)
        continue
      }
      this.#slots.delete(tick)
      for (const due of slot) turns.add(due)
    }
    this.#setTimer(nextTick)
  }
}
