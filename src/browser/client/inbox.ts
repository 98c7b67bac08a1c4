import type { ClaimedOrder, InboxOrder } from '../../shared/orders.ts'
import type { InboxApi } from './api.ts'
import type { CallOptions } from './call.ts'
import { type ClaimOrderOptions, newClaimKey } from './phone-orders.ts'
import type { Authorised } from './sessions.ts'

/**
 * Calls for the orders that wait for the signed-in user's approval. They reject with SESSION_NOT_FRESH for a session
 * that an order made, with ORIGIN_NOT_TRUSTED on pages of other origins than the service's own, and with NOT_ENABLED if
 * the application keeps its users or sessions itself.
 */
export interface InboxCalls {
  /** The orders that wait for the user's approval, newest first. It does not extend the session. */
  listInbox(options?: CallOptions): Promise<readonly InboxOrder[]>
  /**
   * Claims an order for this browser: `getOrderChallenge`, `approveOrder` and `rejectOrder` follow. Call it in a user
   * gesture. Until the order is approved, each new claim takes the place of the last, whose token can then only reject.
   * A retry with the same claim key gets the same answer.
   */
  claimFromInbox(orderId: string, options?: ClaimOrderOptions): Promise<ClaimedOrder>
}

/** Calls for the user's inbox, over any protocol. */
export function inboxCalls(api: InboxApi, authorised: Authorised): InboxCalls {
  return {
    listInbox: async (options) => (await authorised(api.listInbox, {}, options)).orders,
    claimFromInbox: (orderId, { signal, claimKey = newClaimKey() } = {}) =>
      authorised(api.claimFromInbox, { orderId, claimKey }, { signal }),
  }
}
