import type { Store } from '../../store/store.ts'
import type { ProvenIdentity } from '../wallet/proof.ts'
import { applyCommand, isTerminal, type OrderRecord } from './order.ts'
import { parseOrder, storedOrders } from './records.ts'

/** What orders are looked for by: a user, and the wallets to which it is enough that the order names them. */
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

/** Cancels an order unless it is over, so that it leaves the store within ten minutes, and tells its watchers. */
export async function cancelOrder(store: Store, orderId: string): Promise<void> {
  const records = storedOrders(store)
  for (;;) {
    const loaded = await records.load(orderId)
    if (loaded === undefined || isTerminal(loaded.order.status)) return
    const { order } = applyCommand(loaded.order, { type: 'cancel' }, records.now())
    if (await records.compareAndSet(order, loaded.version)) return
  }
}

function names(order: OrderRecord, { userId, wallets }: OrderParty): boolean {
  const { proof, login, adapterId, expectedAddress, expectedPublicKeyHex } = order
  if (login?.userId === userId) return true
  return wallets.some((wallet) => {
    if (proof?.adapterId === wallet.adapterId && proof.subject === wallet.subject) return true
    if (adapterId !== wallet.adapterId) return false
    if (expectedPublicKeyHex !== undefined && expectedPublicKeyHex === wallet.publicKeyHex) return true
    return expectedAddress !== undefined && compact(expectedAddress) === compact(wallet.address)
  })
}

/** An address without its grouping and case, which is enough to find it. */
function compact(address: string): string {
  return address.replaceAll(' ', '').toLowerCase()
}
