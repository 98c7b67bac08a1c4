import { type Task, turns } from './turns.ts'

/** Time in ms by which a task can be late, beside what the event loop is late. */
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
