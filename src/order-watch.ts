import { randomInt } from 'node:crypto'
import { CountersignError } from './errors.ts'
import {
  deadlineOf,
  isTerminal,
  newestTransition,
  type OrderKind,
  type OrderRecord,
  type OrderStatus,
} from './order.ts'
import { changeOrder } from './order-change.ts'
import type { OrderRecords } from './order-records.ts'

/** One event of a watched order. */
export interface OrderEvent {
  /** Number of the transition; in a heartbeat and in a `reconnect`, that of the newest one the watcher knows. */
  readonly sequence: number
  readonly status: OrderStatus
  readonly kind: OrderKind
  /** Time of the transition, or of the event itself where it is none; epoch milliseconds. */
  readonly at: number
  /** Where the desktop goes after finalizing: of approved and finalized orders. */
  readonly redirectTo?: string
  /** Whether this is no transition but a sign of life. */
  readonly heartbeat: boolean
  /** Whether this is no transition but the end of the stream, although the order goes on: watch again from `sequence`. */
  readonly reconnect: boolean
}

/** A watch of one order. */
export interface OrderWatch {
  readonly orderId: string
  /** Throws unless the caller may watch the order. Asked before anything is told. */
  readonly admit: (order: OrderRecord) => void
  /** The last sequence the caller has seen. Without it, the first event is the newest transition. */
  readonly afterSequence?: number | undefined
  /** Aborts when the watcher has left. */
  readonly signal: AbortSignal
}

/** Proxies cut silent streams, some after 15 s; milliseconds. */
const heartbeatMs = 15_000
/**
 * How long one stream lives, milliseconds: ten minutes, give or take one, so that those that a restart brought in together
 * do not come back together.
 */
const streamLifeMs = { min: 9 * 60_000, max: 11 * 60_000 }

/** Tells what happens to orders. Reads an order when it was changed and when its time is up, and at no other time. */
export class OrderWatches {
  readonly #records: OrderRecords
  readonly #shutdown: AbortSignal
  readonly #bells = new Set<Bell>()

  /** `shutdown` aborts when the server means to stop: every stream then ends with `reconnect`. */
  constructor(records: OrderRecords, shutdown: AbortSignal) {
    this.#records = records
    this.#shutdown = shutdown
    // One listener for all: with one each, every stream that leaves would be looked up among all the others.
    shutdown.addEventListener('abort', () => {
      for (const bell of this.#bells) bell.stir()
    })
  }

  /**
   * Yields the newest transition, or every one after `afterSequence` (a heartbeat where there is none yet), then every later
   * one, once and in order. Ends after a terminal one, without a word when `signal` aborts, and with `reconnect` when the server ends it.
   *
   * Rejects with what `admit` throws, with ORDER_NOT_FOUND, and with STORE_UNAVAILABLE when the storage is away, at the start
   * or later. An `afterSequence` that the order has not reached is INVALID_REQUEST: waiting for it would leave out what
   * comes before.
   *
   * To leave while an event is waited for, abort `signal`: an async generator hears of its `return` only afterwards.
   */
  async *watch({ orderId, admit, afterSequence, signal }: OrderWatch): AsyncGenerator<OrderEvent, void, undefined> {
    // Once before there is anything to clean up: a caller without the token costs no subscription.
    await this.#read(orderId, admit)
    const bell = new Bell()
    const stir = (): void => bell.stir()
    const unwatch = await this.#records.watch(orderId, () => bell.ring())
    try {
      this.#bells.add(bell)
      signal.addEventListener('abort', stir)
      yield* this.#follow(orderId, admit, afterSequence, signal, bell)
    } finally {
      unwatch()
      this.#bells.delete(bell)
      signal.removeEventListener('abort', stir)
    }
  }

  async *#follow(
    orderId: string,
    admit: (order: OrderRecord) => void,
    afterSequence: number | undefined,
    signal: AbortSignal,
    bell: Bell,
  ): AsyncGenerator<OrderEvent, void, undefined> {
    // Not Date.now: a clock that is set back must not silence the heartbeat.
    const endsAt = performance.now() + randomInt(streamLifeMs.min, streamLifeMs.max)
    let order = await this.#read(orderId, admit)
    let sequence = afterSequence ?? newestTransition(order).sequence - 1
    // Who comes back and has missed nothing gets a sign of life at once, in place of an event, and knows that the watch stands.
    let nextBeat = performance.now() + (sequence === newestTransition(order).sequence ? 0 : heartbeatMs)
    if (sequence > newestTransition(order).sequence) {
      throw new CountersignError('INVALID_REQUEST', 'The order has not reached after_sequence; watch it without')
    }
    for (;;) {
      for (const transition of order.history) {
        if (transition.sequence <= sequence) continue
        if (signal.aborted) return
        sequence = transition.sequence
        yield { ...eventOf(order, transition.status), sequence, at: transition.at }
      }
      if (isTerminal(order.status)) return
      while (!bell.takeRing() && Date.now() < deadlineOf(order)) {
        if (signal.aborted) return
        const now = performance.now()
        const known = { ...eventOf(order, order.status), sequence, at: Date.now() }
        if (this.#shutdown.aborted || now >= endsAt) {
          yield { ...known, reconnect: true }
          return
        }
        if (now >= nextBeat) {
          nextBeat = now + heartbeatMs
          yield { ...known, heartbeat: true }
          continue
        }
        await bell.wait(Math.min(nextBeat - now, endsAt - now, deadlineOf(order) - Date.now()))
      }
      order = await this.#read(orderId, admit)
    }
  }

  /** Reads an order as it is now: one whose time is up is stored as expired first, by whichever watcher is first. */
  async #read(orderId: string, admit: (order: OrderRecord) => void): Promise<OrderRecord> {
    return await changeOrder(this.#records, orderId, { admit, command: { type: 'expire' } })
  }
}

function eventOf(order: OrderRecord, status: OrderStatus): Omit<OrderEvent, 'sequence' | 'at'> {
  const arrived = status === 'approved' || status === 'finalized'
  return {
    status,
    kind: order.kind,
    ...(arrived ? { redirectTo: order.returnTo } : {}),
    heartbeat: false,
    reconnect: false,
  }
}

/** Wakes one waiter. What rings while nobody waits is kept. */
class Bell {
  #rung = false
  #wake: (() => void) | undefined

  /** Something changed. */
  ring(): void {
    this.#rung = true
    this.stir()
  }

  /** Ends the wait, so that the waiter looks around. */
  stir(): void {
    this.#wake?.()
  }

  /** Whether it rang since it was last asked. */
  takeRing(): boolean {
    const rung = this.#rung
    this.#rung = false
    return rung
  }

  /**
   * Waits until it is rung or stirred, at most `ms` milliseconds. Timers may fire a little early, and clocks may be set:
   * whoever waits for a time looks at the clock again.
   */
  async wait(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, Math.ceil(ms)))
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = undefined
  }
}
