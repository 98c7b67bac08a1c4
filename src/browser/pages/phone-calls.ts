import { defaultTimeoutMs } from '../client/call.ts'
import { type PhoneCalls, phoneCalls } from '../client/phone-orders.ts'
import { restCalls, restPhoneOrders } from '../client/rest-api.ts'
import type { ServiceClock } from './service-clock.ts'

/**
 * The phone's calls over REST, which every host of the approval page serves: the service itself, and Better Auth, which
 * has no RPCs. `basePath` is the path of the REST endpoints on the page's own origin. Each answer sets the clock.
 */
export function pagePhoneCalls(basePath: string, clock: ServiceClock): PhoneCalls {
  const fetchAndSetClock = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init)
    clock.set(response.headers.get('date'))
    return response
  }
  const call = restCalls(fetchAndSetClock, { basePath })
  return phoneCalls({ service: restPhoneOrders(call), proofDefaults: {}, timeoutMs: defaultTimeoutMs })
}
