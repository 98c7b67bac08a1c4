import { hash } from 'node:crypto'
import { changeRecord, parseRecord, recordText } from '../../base/record.ts'
import { CountersignError } from '../../shared/errors.ts'
import type { InboxOrder } from '../../shared/orders.ts'
import type { Store } from '../../store/store.ts'

/** An open order in its user's inbox: all that a list shows, and what the limits count by. */
export interface InboxEntry extends InboxOrder {
  /** Name of the application that it was started at. */
  readonly appName: string
  /** The start key that the order counts for: its name, or a hash if it has none. */
  readonly startKeyId: string
}

/** What is stored of an inbox. 20 orders with the longest texts are 62 KB, and a store takes 64. */
interface InboxRecord {
  /** Newest first. */
  readonly orders: readonly InboxEntry[]
}

/** Most open orders of a user. */
const maxOrders = 20

/** Most open orders of a user that were started with one key, or with keys of one name. */
const maxOfStartKey = 5

/**
 * The inboxes of users: their orders that wait for an approval.
 *
 * An inbox has one record, and each change is a compare-and-set on it, decided anew if another instance was faster. So
 * the bounds hold. An entry comes before its order and goes after the order is approved or over. A crash in between
 * leaves an entry, which a claim takes out, or the end of its time.
 */
export class Inboxes {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The open orders of a user, newest first. */
  async list(userId: string): Promise<readonly InboxEntry[]> {
    const stored = await this.#store.get(keyOf(userId))
    return stored === undefined ? [] : readInbox(stored.value, this.#store.now())
  }

  /** Enters an order. Rejects with RATE_LIMITED if the user has too many, or too many of the start key. */
  async enter(userId: string, entry: InboxEntry): Promise<void> {
    await this.#change(userId, (entries, now) => {
      const ofKey = entries.filter(({ startKeyId }) => startKeyId === entry.startKeyId)
      const full = ofKey.length >= maxOfStartKey ? ofKey : entries.length >= maxOrders ? entries : undefined
      if (full !== undefined) throw inboxFull(Math.min(...full.map(({ expiresAt }) => expiresAt)) - now)
      return [entry, ...entries]
    })
  }

  /** Takes an order out, if it is in. */
  async takeOut(userId: string, orderId: string): Promise<void> {
    await this.#change(userId, (entries) =>
      entries.some((entry) => entry.orderId === orderId)
        ? entries.filter((entry) => entry.orderId !== orderId)
        : undefined,
    )
  }

  /** Erases the inbox of a user. */
  async erase(userId: string): Promise<void> {
    await this.#store.take(keyOf(userId))
  }

  /** Changes what is not over. `change` returns `undefined` to change nothing; it is called again after a lost race. */
  async #change(
    userId: string,
    change: (entries: readonly InboxEntry[], now: number) => readonly InboxEntry[] | undefined,
  ): Promise<void> {
    await changeRecord(this.#store, keyOf(userId), readInbox, (entries = [], now) => {
      const orders = change(entries, now)
      if (orders === undefined) return undefined
      const life = { ttlMs: Math.max(1, ...orders.map(({ expiresAt }) => expiresAt - now)) }
      return { value: recordText({ orders } satisfies InboxRecord), life }
    })
  }
}

function keyOf(userId: string): string {
  // Hashed, because a user's id may be of any form.
  return `inbox:${hash('sha256', `inbox\n${userId}`, 'base64url')}`
}

/** The entries of a stored inbox that are not over. */
function readInbox(text: string, now: number): readonly InboxEntry[] {
  return parseRecord<InboxRecord>('inbox', text).orders.filter(({ expiresAt }) => now < expiresAt)
}

function inboxFull(retryAfterMs: number): CountersignError {
  return new CountersignError(
    'RATE_LIMITED',
    'Too many requests wait for this user; cancel one, or try again once one is answered or over',
    { retryAfterMs, metadata: { limit: 'inbox' } },
  )
}
