import { defaultTimeoutMs } from '../client/call.ts'
import { Stopwatch } from '../client/page.ts'
import { type PhoneCalls, phoneCalls } from '../client/phone-orders.ts'
import { restCalls, restPhoneOrders } from '../client/rest-api.ts'

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

/**
 * The service's time, which the header Date of its answers has to the second. This device's own clock may be hours
 * off.
 */
export class ServiceClock {
  #known: { readonly at: number; readonly since: Stopwatch } | undefined

  /** Sets the clock by a header Date; does nothing if it is missing or malformed. */
  set(date: string | null): void {
    const at = Date.parse(date ?? '')
    if (!Number.isNaN(at)) this.#known = { at, since: new Stopwatch() }
  }

  /** Epoch milliseconds. By this device's clock until an answer has the service's. */
  now(): number {
    return this.#known === undefined ? Date.now() : this.#known.at + this.#known.since.elapsedMs
  }
}
