import { quietly } from '../../shared/rest-paths.ts'
import { defaultTimeoutMs } from '../client/call.ts'
import { type PhoneCalls, phoneCalls } from '../client/phone-orders.ts'
import { restCalls, restPhoneOrders } from '../client/rest-api.ts'
import type { ServiceClock } from './service-clock.ts'

/**
 * The phone's calls over REST, which every host of the approval page serves: the service itself, and Better Auth, which
 * has no RPCs. `basePath` is the path of the REST endpoints on the page's own origin. Each answer sets the clock. What has
 * become of the order is no error in the console: see {@link quietly}.
 */
export function pagePhoneCalls(basePath: string, clock: ServiceClock): PhoneCalls {
  const fetchAndSetClock = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(init.method === 'GET' ? `${url}&${quietly.parameter}` : url, init)
    const { body, headers } = response
    clock.set(headers.get('date'))
    const status = headers.get(quietly.header)
    return status === null ? response : new Response(body, { status: Number(status), headers })
  }
  const call = restCalls(fetchAndSetClock, { basePath })
  return phoneCalls({ service: restPhoneOrders(call), proofDefaults: {}, timeoutMs: defaultTimeoutMs })
}
