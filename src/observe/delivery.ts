import { Slots } from '../base/timing/slots.ts'
import type { Life, Store } from '../store/store.ts'

/** What a queue delivers. */
export interface Deliverable {
  /** Its own id. Added twice, it is there once. */
  readonly id: string
  /** Time at which it happened, by the store's clock in epoch milliseconds. */
  readonly time: number
}

/** What waits to be delivered, as stored. */
interface Entry<Event> {
  readonly v: 1
  readonly event: Event
  /** How often the receiver has refused it. */
  readonly refusals: number
  /**
   * Epoch milliseconds by the store's clock. From then on, the instance that changes the entry first may deliver it.
   */
  readonly dueAt: number
}

/** An event that this instance, and no other, is to deliver now. */
export interface Delivery<Event> {
  readonly event: Event
  /** How often the receiver has refused it. */
  readonly refusals: number
  /** Version of the stored entry. */
  readonly version: number
  /** The member of the set that stands for it. */
  readonly member: string
}

/** Most waiting events. Beyond that, the oldest are dropped. */
export const maxWaiting = 10_000

/** Time in ms for which an event is kept: three days. */
const keptMs = 3 * 24 * 60 * 60_000

/** Time in ms that an instance has for a delivery. If it has died by then, another one takes over. */
const deliveryMs = 60_000

/**
 * Times in ms between the tries to deliver an event that the receiver refuses; then it is dropped. About three days in
 * all.
 */
const retryMs = [5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 72_000_000, 100_000_000] as const

/**
 * The events that are not delivered yet, in the store: they outlive a restart, and every instance delivers what another
 * one left. Rejects with STORE_UNAVAILABLE if the store does not answer.
 *
 * The stored entry decides which instance delivers an event, and when. A member of the set says when, too, so that
 * entries that are not due are not read; for a moment there can be two. The entry is stored before its member, and goes
 * before it.
 */
export class DeliveryQueue<Event extends Deliverable> {
  readonly #store: Store
  readonly #name: string
  readonly #setKey: string

  /** A queue with this name, which is the beginning of its keys; of several of a name, the one for this receiver. */
  constructor(store: Store, name: string, receiver?: string) {
    this.#store = store
    this.#name = name
    this.#setKey = receiver === undefined ? `${name}s` : `${name}s:${receiver}`
  }

  /**
   * Stores an event. With `now`, this instance delivers it; else the next one that polls. Resolves with that and the
   * number of events that were dropped for it. May be repeated.
   */
  async add(event: Event, now: boolean): Promise<{ readonly delivery: Delivery<Event>; readonly dropped: number }> {
    const entry: Entry<Event> = { v: 1, event, refusals: 0, dueAt: this.#store.now() + (now ? deliveryMs : 0) }
    await this.#store.create(this.#keyOf(event.id), JSON.stringify(entry), this.#lifeOf(event))
    const member = memberOf(entry)
    const surplus = await this.#store.addMember(this.#setKey, member, this.#lifeOf(event), maxWaiting)
    await Promise.all(surplus.map((each) => this.#remove(each)))
    return { delivery: { event, refusals: 0, version: 1, member }, dropped: surplus.length }
  }

  /** The members of the events that are due, the oldest first. */
  async due(): Promise<string[]> {
    const now = this.#store.now()
    return (await this.#store.members(this.#setKey)).filter((member) => dueAtOf(member) <= now).sort()
  }

  /** Takes over those of these events that no other instance has taken by then, to deliver them now. */
  async claim(members: readonly string[]): Promise<Delivery<Event>[]> {
    const claimed: Delivery<Event>[] = []
    for (const member of members) {
      const delivery = await this.#claimOne(member)
      if (delivery !== undefined) claimed.push(delivery)
    }
    return claimed
  }

  /** Whether an event is this instance's to deliver for `forMs` more. Afterwards another one may take it over. */
  isHeld({ member }: Delivery<Event>, forMs: number): boolean {
    return this.#store.now() + forMs <= dueAtOf(member)
  }

  /** Forgets an event that is delivered or refused for good. */
  async done({ member }: Delivery<Event>): Promise<void> {
    await this.#remove(member)
  }

  /** Puts an event back, to be delivered in `waitMs`. */
  async putBack({ event, refusals, version, member }: Delivery<Event>, waitMs: number): Promise<void> {
    await this.#change(member, version, { event, refusals }, waitMs)
  }

  /**
   * Puts an event back that the receiver refused. Resolves with the time in ms until it is delivered again; with
   * undefined if it is dropped, because this was the last try.
   */
  async refused(delivery: Delivery<Event>): Promise<number | undefined> {
    const { event, refusals, version, member } = delivery
    const waitMs = retryMs[refusals]
    if (waitMs === undefined) await this.done(delivery)
    else await this.#change(member, version, { event, refusals: refusals + 1 }, waitMs)
    return waitMs
  }

  /** All events that wait. */
  async waiting(): Promise<readonly Event[]> {
    const found = await Promise.all(
      (await this.#store.members(this.#setKey)).map((member) => this.#store.get(this.#keyOf(idOf(member)))),
    )
    return found.filter((stored) => stored !== undefined).map(({ value }) => (JSON.parse(value) as Entry<Event>).event)
  }

  /** Drops the events that wait and that fit. */
  async drop(fits: (event: Event) => boolean): Promise<void> {
    for (const member of await this.#store.members(this.#setKey)) {
      const stored = await this.#store.get(this.#keyOf(idOf(member)))
      if (stored !== undefined && fits((JSON.parse(stored.value) as Entry<Event>).event)) await this.#remove(member)
    }
  }

  async #claimOne(member: string): Promise<Delivery<Event> | undefined> {
    const stored = await this.#store.get(this.#keyOf(idOf(member)))
    if (stored === undefined) {
      await this.#store.removeMember(this.#setKey, member)
      return undefined
    }
    const entry = JSON.parse(stored.value) as Entry<Event>
    // A newer release's entry is left to it.
    if (entry.v !== 1 || this.#store.now() < entry.dueAt) return undefined
    const taken = await this.#change(member, stored.version, entry, deliveryMs)
    if (taken === undefined) return undefined
    return { event: entry.event, refusals: entry.refusals, version: stored.version + 1, member: taken }
  }

  /**
   * Changes an entry, which becomes due in `waitMs`. Resolves with its new member; with undefined if another was
   * faster.
   */
  async #change(
    member: string,
    version: number,
    { event, refusals }: Pick<Entry<Event>, 'event' | 'refusals'>,
    waitMs: number,
  ): Promise<string | undefined> {
    const life = this.#lifeOf(event)
    const entry: Entry<Event> = { v: 1, event, refusals, dueAt: this.#store.now() + waitMs }
    if (!(await this.#store.compareAndSet(this.#keyOf(event.id), version, JSON.stringify(entry), life)))
      return undefined
    const next = memberOf(entry)
    // In this order: an entry without a member would never be delivered.
    await this.#store.addMember(this.#setKey, next, life)
    if (next !== member) await this.#store.removeMember(this.#setKey, member)
    return next
  }

  async #remove(member: string): Promise<void> {
    await this.#store.take(this.#keyOf(idOf(member)))
    await this.#store.removeMember(this.#setKey, member)
  }

  #keyOf(id: string): string {
    return `${this.#name}:${id}`
  }

  #lifeOf({ time }: Event): Life {
    return { ttlMs: Math.max(1, Math.min(keptMs, time + keptMs - this.#store.now())) }
  }
}

function memberOf({ event, dueAt }: Pick<Entry<Deliverable>, 'event' | 'dueAt'>): string {
  return `${String(dueAt).padStart(15, '0')}.${event.id}`
}

/** From when on the event of a member may be delivered. */
function dueAtOf(member: string): number {
  return Number(member.slice(0, 15))
}

function idOf(member: string): string {
  return member.slice(16)
}

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
    // A failure while another one is being handled says nothing new, nor one that was broken off.
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
