import type { InboxService } from '../../gen/server/countersign/v1/inbox_service_pb.ts'
import type { Orders } from '../core/order/orders.ts'
import { limited, type ServiceHandlers, setCookies, withTimes } from './methods.ts'
import { done } from './order-service.ts'

/** InboxService on the domain. */
export function inboxHandlers(orders: Orders): ServiceHandlers<typeof InboxService> {
  return {
    // A page looks every few seconds. Without a live session, a look counts on the limit of sessions.
    listInbox: limited('unlimited', async (_input, call) => ({
      orders: (await orders.listInbox(call.request)).map((order) => withTimes(order, 'createdAt', 'expiresAt')),
    })),
    claimFromInbox: limited('order', async (input, call) => {
      const { cookies, ...claimed } = await orders.claimFromInbox(input, call.request)
      setCookies(call, cookies)
      return done(claimed)
    }),
  }
}
