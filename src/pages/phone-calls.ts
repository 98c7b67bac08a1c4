import { type OrderCalls, orderCalls } from '../client/orders.ts'
import { restCalls } from '../client/rest.ts'
import { restOrders } from '../client/rest-orders.ts'
import { defaultTimeoutMs } from '../client/time-limit.ts'
import { TokenStore } from '../client/token-store.ts'
import type { ServiceClock } from './service-clock.ts'

/** What a phone does with an order. */
export type PhoneCalls = Pick<
  OrderCalls,
  'claimOrder' | 'getOrderChallenge' | 'approveOrder' | 'rejectOrder' | 'handOverOrder' | 'redeemHandOver'
>

/**
 * The phone's calls over REST, which every host of the approval page serves: the service itself, and Better Auth, which has no
 * RPCs. `basePath` is the path of the REST endpoints on the page's own origin. Each answer sets the clock.
 */
export function phoneCalls(basePath: string, clock: ServiceClock): PhoneCalls {
  const fetchAndSetClock = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init)
    clock.set(response.headers.get('date'))
    return response
  }
  const call = restCalls(fetchAndSetClock, { basePath })
  return orderCalls({
    // Without watchOrder, which only a desktop calls.
    service: restOrders(call) as Parameters<typeof orderCalls>[0]['service'],
    baseUrl: '',
    tokens: new TokenStore(),
    autoPersistToken: false,
    proofDefaults: {},
    timeoutMs: defaultTimeoutMs,
    heartbeatTimeoutMs: 0,
  })
}
