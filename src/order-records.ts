import { CountersignError } from './errors.ts'
import { forgottenAt, type OrderRecord } from './order.ts'
import type { Life, Store } from './store/store.ts'

/**
 * Where orders are kept. Each method is one atomic step, also between the processes that share the orders.
 *
 * An order is kept until it is forgotten (`forgottenAt`); whether it is gone at that moment or later makes no difference.
 * When the storage does not answer, a method rejects with STORE_UNAVAILABLE, and a change may or may not have happened.
 */
export interface OrderRecords {
  /** Stores a new order, version 1. Rejects with INTERNAL when its id is taken, which 128 random bits do not let happen. */
  create(order: OrderRecord): Promise<void>

  /** Reads an order and its version. */
  load(orderId: string): Promise<VersionedOrder | undefined>

  /**
   * Replaces an order if its version still is `version`, which rises by one, and wakes everyone who watches it as a part of
   * the same step. Returns false, and changes nothing, if it has another version or is gone.
   */
  compareAndSet(order: OrderRecord, version: number): Promise<boolean>

  /**
   * Calls `onWake` after every change of the order, by any process. Resolves once the watch is in force: a later change is
   * not missed. A call is only a hint to read again; `onWake` must not throw.
   *
   * The returned function ends the watch; it may be called more than once.
   */
  watch(orderId: string, onWake: () => void): Promise<() => void>
}

/** An order as read, with the version that a compare-and-set has to name. */
export interface VersionedOrder {
  readonly order: OrderRecord
  readonly version: number
}

/** Keeps orders in a store. `keyPrefix` goes in front of their keys, for stores that are shared with others. */
export function storedOrders(store: Store, keyPrefix = ''): OrderRecords {
  const keyOf = (orderId: string): string => `${keyPrefix}order:{${orderId}}`
  return {
    async create(order) {
      if (await store.create(keyOf(order.orderId), JSON.stringify(order), lifeOf(order))) return
      throw new CountersignError('INTERNAL', 'A new order has the identifier of another one')
    },
    async load(orderId) {
      const stored = await store.get(keyOf(orderId))
      return stored === undefined ? undefined : { order: parseOrder(stored.value), version: stored.version }
    },
    async compareAndSet(order, version) {
      const key = keyOf(order.orderId)
      return await store.compareAndSet(key, version, JSON.stringify(order), lifeOf(order), { wake: true })
    },
    watch: async (orderId, onWake) => await store.watch(keyOf(orderId), onWake),
  }
}

/** Reads an order from its JSON. Throws a TypeError for a shape that this release does not know. */
export function parseOrder(text: string): OrderRecord {
  const order = JSON.parse(text) as OrderRecord
  if (order.v !== 1) throw new TypeError(`an order of version ${order.v} was stored by another release`)
  return order
}

function lifeOf(order: OrderRecord): Life {
  // An order may be written in the very millisecond in which it is forgotten; a life of 0 is none that a store takes.
  return { ttlMs: Math.max(1, forgottenAt(order) - Date.now()) }
}
