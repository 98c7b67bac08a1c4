import type { Observer } from '../../base/observer.ts'
import { parseRecord, recordText } from '../../base/record.ts'
import type { OpenOrders } from '../../limits/concurrency.ts'
import { internalError } from '../../shared/errors.ts'
import { plainAddress } from '../../shared/wallet-address.ts'
import type { Life, Store } from '../../store/store.ts'
import type { ProvenIdentity } from '../wallet/wallet.ts'
import { subjectOf } from './kinds/recipes.ts'
import type { OrderRecord } from './order.ts'
import { forgottenAt, isTerminal } from './states.ts'

/**
 * Where orders are kept. Each method is one atomic step, also between the processes that share the orders.
 *
 * An order is kept until it is forgotten (`forgottenAt`), or longer. If the storage does not answer, a method rejects
 * with STORE_UNAVAILABLE, and a change may or may not have happened.
 */
export interface OrderRecords {
  /** Receives each order that has reached another status here, `expired` included, once that is stored. */
  readonly observe?: Observer<OrderRecord> | undefined

  /** The time, in epoch milliseconds, by which all processes that share the orders decide what has expired. */
  now(): number

  /**
   * Stores a new order, version 1. Rejects with INTERNAL if its id is taken, which cannot happen with 128 random bits,
   * and with RATE_LIMITED if too many orders are open; then it is not stored.
   */
  create(order: OrderRecord): Promise<void>

  /** Reads an order and its version. */
  load(orderId: string): Promise<VersionedOrder | undefined>

  /**
   * Replaces an order if its version is still `version`, adds 1 to the version, and wakes its watchers, all
   * in the same step. Resolves with false and changes nothing if it has another version or is gone.
   */
  compareAndSet(order: OrderRecord, version: number): Promise<boolean>

  /**
   * Calls `onWake` after every change of the order, by any process. Resolves once the watch is in force: no later
   * change is missed. A call only says that the order should be read again. `onWake` must not throw.
   *
   * The returned function ends the watch. It may be called more than once.
   */
  watch(orderId: string, onWake: () => void): Promise<() => void>
}

/** An order as read, with the version to pass to `compareAndSet`. */
export interface VersionedOrder {
  readonly order: OrderRecord
  readonly version: number
}

/**
 * Keeps orders in a store. `open` limits those that are open; `create` rejects with RATE_LIMITED then, and stores
 * nothing. `observe` is called for each step.
 */
export function storedOrders(
  store: Store,
  {
    observe,
    open,
  }: { readonly observe?: Observer<OrderRecord> | undefined; readonly open?: OpenOrders | undefined } = {},
): OrderRecords {
  const keyOf = (orderId: string): string => `order:{${orderId}}`
  const lifeOf = (order: OrderRecord): Life => {
    // An order may be written in the millisecond in which it is forgotten, and a store does not take a life of 0.
    return { ttlMs: Math.max(1, forgottenAt(order) - store.now()) }
  }
  return {
    observe,
    now: () => store.now(),
    async create(order) {
      const key = keyOf(order.orderId)
      const [created, counted] = await Promise.allSettled([
        store.create(key, recordText(order), lifeOf(order)),
        open?.add(order),
      ])
      if (counted.status === 'rejected') {
        // No caller has seen it.
        await store.take(key)
        throw counted.reason
      }
      if (created.status === 'rejected') throw created.reason
      if (!created.value) throw internalError(new Error('a new order has the identifier of another one'))
    },
    async load(orderId) {
      const stored = await store.get(keyOf(orderId))
      return stored === undefined ? undefined : { order: parseOrder(stored.value), version: stored.version }
    },
    async compareAndSet(order, version) {
      const key = keyOf(order.orderId)
      const stored = await store.compareAndSet(key, version, recordText(order), lifeOf(order), { wake: true })
      // A take-back changes a finalized order, which has been removed already.
      if (stored && isTerminal(order.status) && order.takenBack === undefined) open?.remove(order)
      return stored
    },
    watch: async (orderId, onWake) => await store.watch(keyOf(orderId), onWake),
  }
}

/** Reads an order from its JSON. Throws a `RecordVersionError` if a newer release stored it. */
export function parseOrder(text: string): OrderRecord {
  return parseRecord<OrderRecord>('order', text)
}

/** Whose orders are searched for: those of a user, and those that name one of the wallets. */
export interface OrderParty {
  readonly userId: string
  readonly wallets: readonly ProvenIdentity[]
}

/** The orders in a store that name a user or one of the user's wallets. Reads all orders. */
export async function ordersOf(scan: NonNullable<Store['scan']>, party: OrderParty): Promise<OrderRecord[]> {
  const found = new Map<string, OrderRecord>()
  for await (const { value } of scan('order:')) {
    const order = parseOrder(value)
    if (names(order, party)) found.set(order.orderId, order)
  }
  return [...found.values()]
}

function names(order: OrderRecord, { userId, wallets }: OrderParty): boolean {
  const { proof, adapterId, expectedAddress, expectedPublicKeyHex } = order
  if (subjectOf(order).userId === userId) return true
  return wallets.some((wallet) => {
    if (proof?.adapterId === wallet.adapterId && proof.subject === wallet.subject) return true
    if (adapterId !== wallet.adapterId) return false
    if (expectedPublicKeyHex !== undefined && expectedPublicKeyHex === wallet.publicKeyHex) return true
    return expectedAddress !== undefined && plainAddress(expectedAddress) === plainAddress(wallet.address)
  })
}
