import { type DesktopCalls, type DesktopCallsOptions, desktopCalls } from './desktop-orders.ts'
import { type PhoneCalls, type PhoneCallsOptions, phoneCalls } from './phone-orders.ts'

/** Calls for cross-device orders. */
export interface OrderCalls extends DesktopCalls, PhoneCalls {}

/** Options of {@link orderCalls}. Its service has the calls of both. */
export type OrderCallsOptions = DesktopCallsOptions & PhoneCallsOptions

/** Calls for cross-device orders, over any protocol. */
export function orderCalls(options: OrderCallsOptions): OrderCalls {
  return { ...desktopCalls(options), ...phoneCalls(options) }
}
