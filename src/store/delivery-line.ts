import { Slots } from '../base/timing/slots.ts'
import type { Deliverable, Delivery, DeliveryQueue } from './delivery-queue.ts'

/**
 * What became of a delivery: the receiver took the event, did not answer or cannot at the moment (`away`, because …),
 * or refused it, which may be because of the event.
 */
export type DeliveryOutcome = 'taken' | { readonly away: string } | { readonly refused: string | number }

/** What a {@link DeliveryLine} works with. */
export interface LineParts<Event extends Deliverable> {
  readonly queue: DeliveryQueue<Event>
  /** Most deliveries at a time. */
  readonly atOnce: number
  /** Longest time in ms that `send` takes. */
  readonly answerMs: number
  /** Sends an event to the receiver. Never rejects. `signal` aborts when the line is closed. */
  readonly send: (event: Event, signal: AbortSignal) => Promise<DeliveryOutcome>
  /** Logs a refusal: `waitMs` is the time until the event is sent again; `undefined` if it is dropped. */
  readonly onRefused: (event: Event, why: string | number, waitMs: number | undefined) => void
  /** Logs that the receiver is away, at the first of several failures in a row. */
  readonly onAway: (because: string) => void
  readonly onBack: () => void
}

/** Most new events that wait in memory for a delivery to end. Further ones are found in the store. */
const maxReady = 1_000

/** Shortest and longest time in ms for which nothing is sent to a receiver that is away. */
const pauseMs = { min: 1_000, max: 60_000 }

/**
 * The way of a queue's events to its one receiver: a few at a time, and after a pause if it is away. So a receiver that
 * accepts connections and never answers takes nothing from others, each of which has a line of its own.
 */
export class DeliveryLine<Event extends Deliverable> {
  readonly #parts: LineParts<Event>
  readonly #slots: Slots
  readonly #stopping = new AbortController()
  /** Deliveries of new events. */
  readonly #deliveries = new Set<Promise<void>>()
  /**
   * Number of new events that wait for a delivery to end. They are stored: if this instance ends before, another one
   * delivers them.
   */
  #ready = 0
  #looking: Promise<void> | undefined
  /** Whether to look once more, because something may have become due since the last read. */
  #isAsked = false
  /** Failures of the receiver in a row. */
  #failures = 0
  #awayUntil = 0

  constructor(parts: LineParts<Event>) {
    this.#parts = parts
    this.#slots = new Slots(parts.atOnce)
  }

  /** Whether a new event is to be delivered now. Otherwise it is found in the store later. */
  get takesNew(): boolean {
    return this.#isGoing && this.#ready < maxReady
  }

  /** Delivers a new event once there is a place for it, unless this instance stops. */
  deliver(delivery: Delivery<Event>): void {
    this.#ready++
    const deliver = (): Promise<void> => {
      this.#ready--
      return this.#deliver(delivery)
    }
    const delivering = this.#slots
      .run(deliver, this.#stopping.signal)
      .catch(() => {})
      .finally(() => this.#deliveries.delete(delivering))
    this.#deliveries.add(delivering)
  }

  /** Looks for events that are due: new ones, those that other instances left, and those whose delivery failed. */
  look(): void {
    this.#isAsked = true
    if (!this.#isGoing) return
    this.#looking ??= this.#deliverDue().finally(() => {
      this.#looking = undefined
    })
  }

  /** Stops, and resolves once nothing is on its way. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#looking, ...this.#deliveries])
  }

  get #isGoing(): boolean {
    return performance.now() >= this.#awayUntil && !this.#stopping.signal.aborted
  }

  async #deliverDue(): Promise<void> {
    const { queue, atOnce } = this.#parts
    // They are delivered before another instance may take them, however slow the receiver is.
    const claimedAtOnce = 5 * atOnce
    try {
      let claimed: number
      do {
        this.#isAsked = false
        claimed = 0
        // Read once for all that is due: with a read for each few of them, a long line would be read over and over.
        const due = await queue.due()
        while (due.length > 0 && this.#isGoing) {
          // One at first, if it is not known whether the receiver is back.
          const deliveries = await queue.claim(due.splice(0, this.#failures > 0 ? 1 : claimedAtOnce))
          claimed += deliveries.length
          // Also when this instance stops: they are then put back, for another one.
          await Promise.all(deliveries.map((delivery) => this.#slots.run(() => this.#deliver(delivery))))
        }
      } while ((claimed > 0 || this.#isAsked) && this.#isGoing)
    } catch {
      // The store is away, which the log says. The next look comes.
    }
  }

  /** Delivers an event, and notes in the store how that went. */
  async #deliver(delivery: Delivery<Event>): Promise<void> {
    const { queue, answerMs, send, onRefused } = this.#parts
    // It has waited for so long that another instance could deliver it, too. The next look finds it.
    if (!queue.isHeld(delivery, answerMs)) return
    const isAway = performance.now() < this.#awayUntil
    const outcome = isAway ? { away: '' } : await send(delivery.event, this.#stopping.signal)
    if (outcome !== 'taken' && 'away' in outcome) this.#pause(outcome.away)
    else this.#goOn()
    try {
      if (outcome === 'taken') await queue.done(delivery)
      else if ('away' in outcome) await queue.putBack(delivery, 0)
      else onRefused(delivery.event, outcome.refused, await queue.refused(delivery))
    } catch {
      // The store is away, which the log says. Once the time for the delivery is over, the event is delivered again.
    }
  }

  #pause(because: string): void {
    // A delivery that was under way beside the first one that failed says nothing new, nor one that was broken off.
    if (!this.#isGoing) return
    const waitMs = Math.min(pauseMs.max, pauseMs.min * 2 ** this.#failures)
    if (this.#failures === 0) this.#parts.onAway(because)
    this.#failures++
    this.#awayUntil = performance.now() + waitMs
    setTimeout(() => this.look(), waitMs + 1).unref()
  }

  #goOn(): void {
    if (this.#failures > 0) this.#parts.onBack()
    this.#failures = 0
    this.#awayUntil = 0
  }
}
