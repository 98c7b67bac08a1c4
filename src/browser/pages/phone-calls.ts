import type { InboxApi } from '../client/api.ts'
import { defaultTimeoutMs } from '../client/call.ts'
import { Stopwatch } from '../client/page.ts'
import { phoneCalls } from '../client/phone-orders.ts'
import { type Fetcher, restInbox, restOf, restPhoneOrders } from '../client/rest-api.ts'
import { retriesOf } from '../client/retry.ts'

/**
 * The calls of the approval page: the phone's, and the claim from an inbox. They go over REST, which every host of the
 * page serves: the service itself, and Better Auth, which has no RPCs. `basePath` is the path of the REST endpoints on
 * the page's own origin. Each answer sets the clock.
 */
export function pagePhoneCalls(basePath: string, clock: ServiceClock) {
  const { call } = restOf(settingClock(clock), { basePath })
  const inbox = restInbox(call)
  const again = retriesOf(defaultTimeoutMs)
  return {
    ...phoneCalls({ service: restPhoneOrders(call), proofDefaults: {}, timeoutMs: defaultTimeoutMs }),
    /** Claims an order of the user's inbox. Retried with the same claim key if no answer arrives. */
    claimFromInbox: (request: Parameters<InboxApi['claimFromInbox']>[0], signal: AbortSignal) =>
      again((options) => inbox.claimFromInbox(request, options), signal),
  }
}

/** `fetch`, of which each answer sets the clock. */
export function settingClock(clock: ServiceClock): Fetcher {
  return async (url, init) => {
    const response = await fetch(url, init)
    clock.set(response.headers.get('date'))
    return response
  }
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
