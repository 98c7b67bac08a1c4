import type { AuditEvent, AuditWallet } from '../../base/audit.ts'
import type { Store } from '../../store/store.ts'
import { DeliveryQueue } from '../delivery.ts'

/** The subject of an event. */
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
   * Drops the waiting events that concern a user or one of these wallets, or an order that such an event
   * names.
   */
  async forget(party: Party): Promise<void> {
    const affected = (await this.waiting()).filter((event) => concerns(event, party))
    const orders = new Set(affected.map(orderIn).filter((orderId) => orderId !== undefined))
    await this.drop((event) => concerns(event, party) || orders.has(orderIn(event) ?? ''))
  }
}

function concerns(event: AuditEvent, { userId, wallets }: Party): boolean {
  if ('userId' in event && event.userId === userId) return true
  if (!('address' in event)) return false
  return wallets.some(({ adapterId, address }) => adapterId === event.adapterId && address === event.address)
}

function orderIn(event: AuditEvent): string | undefined {
  return 'orderId' in event ? event.orderId : undefined
}
