import type { AuditEvent, AuditWallet } from '../../base/audit.ts'
import type { Store } from '../../store/store.ts'
import { DeliveryQueue } from '../delivery.ts'

/** Whom an event can tell of. */
interface Party {
  readonly userId: string
  readonly wallets: readonly AuditWallet[]
}

/** The audit events that the webhook has not taken yet. */
export class WebhookQueue extends DeliveryQueue<AuditEvent> {
  constructor(store: Store) {
    super(store, 'webhook')
  }

  /**
   * Drops the events that wait and that tell of a user or of one of these wallets, or of an order that such an event
   * names.
   */
  async forget(party: Party): Promise<void> {
    const told = (await this.waiting()).filter((event) => tellsOf(event, party))
    const orders = new Set(told.map(orderIn).filter((orderId) => orderId !== undefined))
    await this.drop((event) => tellsOf(event, party) || orders.has(orderIn(event) ?? ''))
  }
}

function tellsOf(event: AuditEvent, { userId, wallets }: Party): boolean {
  if ('userId' in event && event.userId === userId) return true
  if (!('address' in event)) return false
  return wallets.some(({ adapterId, address }) => adapterId === event.adapterId && address === event.address)
}

function orderIn(event: AuditEvent): string | undefined {
  return 'orderId' in event ? event.orderId : undefined
}
