import { parse } from 'node:querystring'
import type { KoaContextWithOIDC } from 'oidc-provider'
import type { RequestContext } from '../base/request.ts'
import type { Exchange } from '../http/exchange.ts'
import type { LiveCount } from '../limits/concurrency.ts'
import type { RateLimiter } from '../limits/rate.ts'
import type { Store } from '../store/store.ts'
import { interactionSeconds } from './browser-cookies.ts'
import { deviceSeconds } from './device-codes.ts'
import { maxParameterBytes } from './parameters.ts'

/** Bytes of a stored request beside its parameters. */
const beside = 512

/** Life in seconds of what is stored of a request of a backend, by the library's endpoint. */
const backendSeconds: Readonly<Record<string, number>> = {
  // Two interactions can go on from it: a sign-in, then consent.
  pushed_authorization_request: 60 + 2 * interactionSeconds,
  device_authorization: 2 * deviceSeconds,
}

interface CountParts {
  /** Absent if the rate limits are off. */
  readonly limiter: RateLimiter | undefined
  readonly live: LiveCount
  readonly store: Store
}

/** Limits on requests that are stored before anyone has signed in, and the count of what is stored of them. */
export class RequestCounts {
  readonly #parts: CountParts

  constructor(parts: CountParts) {
    this.#parts = parts
  }

  /**
   * Counts a step of a request for authorization for the browser's network, before the library has it: the request, or
   * an interaction that goes on. Returns the function that gives the slots back if nothing was stored.
   */
  async ofNavigation({ context, query }: Exchange, uid: string | undefined): Promise<() => void> {
    await this.#parts.limiter?.spendNavigation('sign-in', context)
    const parameters = parse(query)
    // The parameters are in the store, and their size is not known yet.
    const isStored = uid !== undefined || parameters.request_uri !== undefined
    return this.#hold(isStored ? maxParameterBytes : bytesOf(parameters), interactionSeconds, context.ip)
  }

  /**
   * Counts a pushed request or a request for a code of a device, which the library is about to store: for its client if
   * that has proven who it is, else for the network. An id that was only sent is no proof.
   */
  async ofBackend({ route, client, params }: KoaContextWithOIDC['oidc'], request: RequestContext): Promise<void> {
    const seconds = backendSeconds[route]
    if (seconds === undefined) return
    const { clientId, clientAuthMethod = 'none' } = client ?? {}
    const isProven = clientId !== undefined && clientAuthMethod !== 'none'
    const { limiter } = this.#parts
    await (isProven ? limiter?.spendOfClient('sign-in', clientId) : limiter?.spend('sign-in', request))
    this.#hold(bytesOf(params ?? {}), seconds, isProven ? undefined : request.ip)
  }

  #hold(bytes: number, seconds: number, ip: string | undefined): () => void {
    const { live, store } = this.#parts
    const now = store.now()
    const endsAt = now + seconds * 1000
    const slots = live.slotsOf(beside + bytes)
    live.add(endsAt, now, ip, slots)
    return () => live.remove(endsAt, ip, slots)
  }
}

function bytesOf(parameters: object): number {
  return Buffer.byteLength(JSON.stringify(parameters))
}
