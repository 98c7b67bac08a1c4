import type { AuthContext } from '@better-auth/core'
import { recordText } from '../base/record.ts'
import type { OrderRecord } from '../core/order/order.ts'
import { type OrderRecords, parseOrder } from '../core/order/records.ts'
import { forgottenAt } from '../core/order/states.ts'
import { Watchers } from '../store/watchers.ts'
import { guarded } from './failures.ts'
import { sweepExpired } from './once-marks.ts'
import { orderModel } from './schema.ts'

/**
 * Time between two reads of a watched order, in ms: another process may have changed it, and a database does not say
 * so. Changes by this process are seen at once.
 */
const rereadMs = 2000

/** A row of the model. */
interface OrderRow {
  readonly version: number
  readonly record: string
}

/**
 * Keeps orders in Better Auth's database. A change is one `incrementOne` with the row's version in its condition, so
 * that of concurrent changes, on any instances, one wins.
 *
 * A watcher sees a change by another process up to two seconds late. If that is too late, give the plugin a store.
 */
export class DatabaseOrders implements OrderRecords {
  readonly #adapter: AuthContext['adapter']
  readonly #watchers = new Watchers()

  constructor(adapter: AuthContext['adapter']) {
    this.#adapter = adapter
  }

  /** Better Auth's databases give no time, and Better Auth itself uses the clock of its process. */
  now(): number {
    return Date.now()
  }

  async create(order: OrderRecord): Promise<void> {
    await guarded(async () => {
      await sweepExpired(this.#adapter, orderModel)
      const data = { orderId: order.orderId, kind: order.kind, version: 1, createdAt: new Date(), ...columnsOf(order) }
      await this.#adapter.create({ model: orderModel, data })
    })
  }

  async load(orderId: string): Promise<{ order: OrderRecord; version: number } | undefined> {
    const where = [{ field: 'orderId', value: orderId }]
    const row = await guarded(() => this.#adapter.findOne<OrderRow>({ model: orderModel, where }))
    return row === null ? undefined : { order: parseOrder(row.record), version: row.version }
  }

  async compareAndSet(order: OrderRecord, version: number): Promise<boolean> {
    const { orderId } = order
    const changed = await guarded(() =>
      this.#adapter.incrementOne({
        model: orderModel,
        where: [
          { field: 'orderId', value: orderId },
          { field: 'version', value: version },
        ],
        increment: { version: 1 },
        set: columnsOf(order),
      }),
    )
    if (changed !== null) this.#watchers.wake(orderId)
    return changed !== null
  }

  async watch(orderId: string, onWake: () => void): Promise<() => void> {
    const unwatch = this.#watchers.add(orderId, onWake)
    const timer = setInterval(onWake, rereadMs)
    return () => {
      clearInterval(timer)
      unwatch()
    }
  }
}

function columnsOf(order: OrderRecord): Record<string, unknown> {
  return { status: order.status, record: recordText(order), expiresAt: new Date(forgottenAt(order)) }
}
