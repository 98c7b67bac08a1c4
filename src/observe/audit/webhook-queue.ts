import type { AuditEvent, AuditWallet } from '../../base/audit.ts'
import type { Life, Store } from '../../store/store.ts'

/** An event that waits to be delivered, as stored. */
interface Entry {
  readonly v: 1
  readonly event: AuditEvent
  /** How often the receiver has refused it. */
  readonly refusals: number
  /**
   * Epoch milliseconds by the store's clock. From then on, the instance that changes the entry first may deliver it.
   */
  readonly dueAt: number
}

/** An event that this instance, and no other, is to deliver now. */
export interface Delivery {
  readonly event: AuditEvent
  /** How often the receiver has refused it. */
  readonly refusals: number
  /** Version of the stored entry. */
  readonly version: number
  /** The member of the set that stands for it. */
  readonly member: string
}

/** Most events that wait. Beyond that, those that have waited longest are dropped. */
export const maxWaiting = 10_000

/** Time in ms for which an event is kept: three days. */
const keptMs = 3 * 24 * 60 * 60_000

/** Time in ms that an instance has for a delivery. If it has died by then, another one takes over. */
const deliveryMs = 60_000

const setKey = 'webhooks'

/**
 * The events that are not delivered yet, in the store: they outlive a restart, and every instance delivers what another
 * one left. Rejects with STORE_UNAVAILABLE if the store does not answer.
 *
 * The stored entry decides which instance delivers an event, and when. A member of the set says when, too, so that
 * entries that are not due are not read; for a moment there can be two. The entry is stored before its member, and goes
 * before it.
 */
export class WebhookQueue {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * Stores an event: for this instance to deliver now, or for the first that looks. Resolves with that, and with the
   * number of events that were dropped for it. May be repeated.
   */
  async add(event: AuditEvent, now: boolean): Promise<{ readonly delivery: Delivery; readonly dropped: number }> {
    const entry: Entry = { v: 1, event, refusals: 0, dueAt: this.#store.now() + (now ? deliveryMs : 0) }
    await this.#store.create(keyOf(event.id), JSON.stringify(entry), this.#lifeOf(event))
    const member = memberOf(entry)
    const surplus = await this.#store.addMember(setKey, member, this.#lifeOf(event), maxWaiting)
    await Promise.all(surplus.map((each) => this.#remove(each)))
    return { delivery: { event, refusals: 0, version: 1, member }, dropped: surplus.length }
  }

  /** The members of the events that are due, the oldest first. */
  async due(): Promise<string[]> {
    const now = this.#store.now()
    return (await this.#store.members(setKey)).filter((member) => dueAtOf(member) <= now).sort()
  }

  /** Takes over those of these events that no other instance has taken by then, to deliver them now. */
  async claim(members: readonly string[]): Promise<Delivery[]> {
    const claimed: Delivery[] = []
    for (const member of members) {
      const delivery = await this.#claimOne(member)
      if (delivery !== undefined) claimed.push(delivery)
    }
    return claimed
  }

  /** Whether an event is this instance's to deliver for `forMs` more. Afterwards another one may take it over. */
  isHeld({ member }: Delivery, forMs: number): boolean {
    return this.#store.now() + forMs <= dueAtOf(member)
  }

  /** Forgets an event that is delivered or refused for good. */
  async done({ member }: Delivery): Promise<void> {
    await this.#remove(member)
  }

  /** Puts an event back, to be delivered in `waitMs`; `refused` is whether the receiver refused it. */
  async putBack({ event, refusals, version, member }: Delivery, refused: boolean, waitMs: number): Promise<void> {
    await this.#change(member, version, { event, refusals: refusals + (refused ? 1 : 0) }, waitMs)
  }

  /**
   * Drops the events that wait and that tell of a user or of one of these wallets, or of an order that such an event
   * names.
   */
  async forget(party: { readonly userId: string; readonly wallets: readonly AuditWallet[] }): Promise<void> {
    const waiting: { readonly member: string; readonly event: AuditEvent }[] = []
    for (const member of await this.#store.members(setKey)) {
      const stored = await this.#store.get(keyOf(idOf(member)))
      if (stored !== undefined) waiting.push({ member, event: (JSON.parse(stored.value) as Entry).event })
    }
    const told = waiting.filter(({ event }) => tellsOf(event, party))
    const orders = new Set(told.map(({ event }) => orderIn(event)).filter((orderId) => orderId !== undefined))
    for (const { member, event } of waiting) {
      if (tellsOf(event, party) || orders.has(orderIn(event) ?? '')) await this.#remove(member)
    }
  }

  async #claimOne(member: string): Promise<Delivery | undefined> {
    const stored = await this.#store.get(keyOf(idOf(member)))
    if (stored === undefined) {
      await this.#store.removeMember(setKey, member)
      return undefined
    }
    const entry = JSON.parse(stored.value) as Entry
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
    { event, refusals }: Pick<Entry, 'event' | 'refusals'>,
    waitMs: number,
  ): Promise<string | undefined> {
    const life = this.#lifeOf(event)
    const entry: Entry = { v: 1, event, refusals, dueAt: this.#store.now() + waitMs }
    if (!(await this.#store.compareAndSet(keyOf(event.id), version, JSON.stringify(entry), life))) return undefined
    const next = memberOf(entry)
    // In this order: an entry without a member would never be delivered.
    await this.#store.addMember(setKey, next, life)
    if (next !== member) await this.#store.removeMember(setKey, member)
    return next
  }

  async #remove(member: string): Promise<void> {
    await this.#store.take(keyOf(idOf(member)))
    await this.#store.removeMember(setKey, member)
  }

  #lifeOf({ time }: AuditEvent): Life {
    return { ttlMs: Math.max(1, Math.min(keptMs, time + keptMs - this.#store.now())) }
  }
}

function tellsOf(event: AuditEvent, { userId, wallets }: Parameters<WebhookQueue['forget']>[0]): boolean {
  if ('userId' in event && event.userId === userId) return true
  if (!('address' in event)) return false
  return wallets.some(({ adapterId, address }) => adapterId === event.adapterId && address === event.address)
}

function orderIn(event: AuditEvent): string | undefined {
  return 'orderId' in event ? event.orderId : undefined
}

function keyOf(id: string): string {
  return `webhook:${id}`
}

function memberOf({ event, dueAt }: Entry): string {
  return `${String(dueAt).padStart(15, '0')}.${event.id}`
}

/** From when on the event of a member may be delivered. */
function dueAtOf(member: string): number {
  return Number(member.slice(0, 15))
}

function idOf(member: string): string {
  return member.slice(16)
}
