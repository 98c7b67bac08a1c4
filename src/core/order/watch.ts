import { randomInt } from 'node:crypto'
import { Sleep, turns } from '../../base/timing/turns.ts'
import { pick } from '../../shared/defined-fields.ts'
import { CountersignError, invalidField } from '../../shared/errors.ts'
import type { OrderEvent, OrderStatus } from '../../shared/orders.ts'
import { changeOrder } from './change.ts'
import { rulesOf } from './kinds/recipes.ts'
import { newestTransition, type OrderRecord, proofOf } from './order.ts'
import type { OrderRecords } from './records.ts'
import { deadlineOf, deadlinesOf, isTerminal, takesReturnCode } from './states.ts'

/** A message of a watch. Its `sequence` and `at` are those of a transition, unless it is one of the two others. */
export interface WatchEvent extends OrderEvent {
  /** Whether this is a heartbeat: `sequence` is that of the newest transition that the watcher has got. */
  readonly heartbeat: boolean
  /** Whether the stream ends here although the order is still live: watch again from `sequence`. */
  readonly reconnect: boolean
}

/** A watch of one order. */
export interface OrderWatch {
  readonly orderId: string
  /** Throws unless the caller may watch the order. Called before anything is revealed. */
  readonly admit: (order: OrderRecord) => void
  /** The last sequence the caller has seen. Without it, the first event is the newest transition. */
  readonly afterSequence?: number | undefined
  /** Aborts when the watcher leaves. */
  readonly signal: AbortSignal
}

/**
 * Time in ms after which a silent stream sends a heartbeat. Proxies cut silent streams. The first one comes earlier, at
 * random, so that streams that began together do not all read their orders together.
 */
const heartbeatMs = 15_000
const firstHeartbeatMs = { min: heartbeatMs / 2, max: heartbeatMs }
/**
 * Lifetime of a stream in ms: nine to eleven minutes, at random, so that streams that began together after a restart do
 * not all reconnect together.
 */
const streamLifeMs = { min: 9 * 60_000, max: 11 * 60_000 }
/**
 * Lifetime in ms of a stream that begins while the server stops: a proxy may lead a client that reconnects
 * back here, which must not be sent away again at once, over and over.
 */
const stoppingStreamMs = 1_000

/**
 * Watches of orders. They read an order if it was changed or has reached its deadline, and before each heartbeat: if a
 * wake-up was lost, its watcher is late by one heartbeat at most.
 */
export class OrderWatches {
  readonly #records: OrderRecords
  readonly #shutdown: AbortSignal
  /** Ends the wait of each watcher, which then looks again at what there is to do. */
  readonly #wakers = new Set<() => void>()

  /**
   * `shutdown` aborts when the server begins to stop. Every stream then ends with `reconnect`, and one that begins
   * later does so after a second.
   */
  constructor(records: OrderRecords, shutdown: AbortSignal) {
    this.#records = records
    this.#shutdown = shutdown
    // One listener for all: removing one of many from a signal takes time in proportion to their number.
    shutdown.addEventListener('abort', () => {
      for (const wake of this.#wakers) turns.add(wake)
    })
  }

  /** Number of open watches. */
  get size(): number {
    return this.#wakers.size
  }

  /**
   * Yields the newest transition, or every one after `afterSequence` (or a heartbeat, if there is none yet), then every
   * later one, once and in order. Ends after a terminal one; without an event if `signal` aborts; with `reconnect` if
   * the server ends the stream.
   *
   * Rejects with what `admit` throws, with ORDER_NOT_FOUND, and with STORE_UNAVAILABLE if the storage does not answer,
   * at the start or later. An `afterSequence` that the order has not reached is INVALID_REQUEST: waiting for it would
   * skip the transitions before it.
   *
   * To leave while the watch waits for an event, abort `signal`: an async generator handles `return` only at its next
   * event.
   */
  async *watch({ orderId, admit, afterSequence, signal }: OrderWatch): AsyncGenerator<WatchEvent, void, undefined> {
    // Read before subscribing, so that a caller without the token does not cost a subscription, and an order that is
    // over none either.
    const read = await this.#read(orderId, admit)
    if (isTerminal(read.status)) {
      for (const event of stepsAfter(read, cursorIn(read, afterSequence))) {
        if (signal.aborted) return
        yield event
      }
      return
    }
    const changed = new Signal()
    const wake = (): void => changed.end()
    const unwatch = await this.#records.watch(orderId, () => changed.notify())
    try {
      this.#wakers.add(wake)
      signal.addEventListener('abort', wake)
      yield* this.#follow(orderId, admit, afterSequence, signal, changed)
    } finally {
      unwatch()
      this.#wakers.delete(wake)
      turns.delete(wake)
      signal.removeEventListener('abort', wake)
    }
  }

  async *#follow(
    orderId: string,
    admit: (order: OrderRecord) => void,
    afterSequence: number | undefined,
    signal: AbortSignal,
    changed: Signal,
  ): AsyncGenerator<WatchEvent, void, undefined> {
    const late = this.#shutdown.aborted
    // Not the clock of the records: one that is set back must not silence the heartbeat.
    const endsAt = performance.now() + (late ? stoppingStreamMs : randomInt(streamLifeMs.min, streamLifeMs.max))
    let order = await this.#read(orderId, admit)
    let sequence = cursorIn(order, afterSequence)
    // A watcher that comes back and has missed nothing gets a heartbeat at once, and so knows that the watch is in
    // force.
    let beatDue = true
    let nextBeat = performance.now() + randomInt(firstHeartbeatMs.min, firstHeartbeatMs.max)
    for (;;) {
      for (const event of stepsAfter(order, sequence)) {
        if (signal.aborted) return
        sequence = event.sequence
        beatDue = false
        yield event
      }
      if (isTerminal(order.status)) return
      if (signal.aborted) return
      if (beatDue) yield { ...eventOf(order, order.status), sequence, at: this.#records.now(), heartbeat: true }
      beatDue = false
      while (!changed.consume() && this.#records.now() < deadlineOf(order)) {
        if (signal.aborted) return
        const now = performance.now()
        if ((this.#shutdown.aborted && !late) || now >= endsAt) {
          yield { ...eventOf(order, order.status), sequence, at: this.#records.now(), reconnect: true }
          return
        }
        if (now >= nextBeat) {
          nextBeat = now + heartbeatMs
          beatDue = true
          break
        }
        await changed.atMost(Math.min(nextBeat - now, endsAt - now, deadlineOf(order) - this.#records.now()))
      }
      order = await (beatDue ? this.#readUnlessAway(order, admit) : this.#read(orderId, admit))
    }
  }

  /** Reads an order. If it has passed its deadline, it is first stored as expired. */
  async #read(orderId: string, admit: (order: OrderRecord) => void): Promise<OrderRecord> {
    const { after } = await changeOrder(this.#records, orderId, (order) => {
      admit(order)
      return { type: 'expire' }
    })
    return after
  }

  /** Reads an order again. While the store is unavailable, returns the known order. */
  async #readUnlessAway(known: OrderRecord, admit: (order: OrderRecord) => void): Promise<OrderRecord> {
    try {
      return await this.#read(known.orderId, admit)
    } catch (error) {
      if (error instanceof CountersignError && error.reason === 'STORE_UNAVAILABLE') return known
      throw error
    }
  }
}

/**
 * The sequence after which a watcher gets an order's transitions. Throws INVALID_REQUEST if the order has not
 * reached it.
 */
function cursorIn(order: OrderRecord, afterSequence: number | undefined): number {
  const { sequence: newest } = newestTransition(order)
  if (afterSequence === undefined) return newest - 1
  if (afterSequence <= newest) return afterSequence
  throw invalidField('after_sequence', 'The order has not reached after_sequence; watch it without one')
}

/** The events of an order's transitions after one, in order. */
function stepsAfter(order: OrderRecord, after: number): WatchEvent[] {
  return order.history
    .filter(({ sequence }) => sequence > after)
    .map(({ sequence, status, at }) => ({ ...eventOf(order, status), sequence, at }))
}

function eventOf(order: OrderRecord, status: OrderStatus): Omit<WatchEvent, 'sequence' | 'at'> {
  const arrived = status === 'approved' || status === 'finalized'
  return {
    status,
    kind: order.kind,
    ...(arrived ? { redirectTo: order.returnTo } : {}),
    returnCodeRequired: status === 'approved' && takesReturnCode(order),
    // Only while the order is approved: afterwards it has no deadline.
    ...(status === 'approved' && order.status === 'approved' ? deadlinesOf(order) : {}),
    ...(status === 'approved' && rulesOf(order).showsWallet ? pick(proofOf(order), ['adapterId', 'address']) : {}),
    heartbeat: false,
    reconnect: false,
  }
}

/**
 * Wakes one waiter; without one, the next wait ends at once. Clocks can be set, so a caller that waits for a time must
 * look at the clock again.
 */
class Signal extends Sleep {
  #isSet = false

  /** Something changed. */
  notify(): void {
    this.#isSet = true
    this.end()
  }

  /** Whether something changed since the last call. */
  consume(): boolean {
    const wasSet = this.#isSet
    this.#isSet = false
    return wasSet
  }
}
