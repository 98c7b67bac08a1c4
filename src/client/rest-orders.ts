import { orderPaths } from '../rest-paths.ts'
import type { Services } from './connect.ts'
import type { PhoneOrder } from './types.ts'

/** Parts of a REST call. */
export interface RestCallInit {
  /** Sent with POST. Without it, the call is a GET. */
  readonly body?: object | undefined
  readonly query?: Record<string, string> | undefined
  readonly headers?: Record<string, string> | undefined
  readonly signal?: AbortSignal | undefined
}

/** Calls a REST endpoint by its path under the base path. Rejects with a `CountersignClientError`. */
export type RestCall = <T>(path: string, init?: RestCallInit) => Promise<T>

interface CallOptions {
  readonly signal?: AbortSignal
  readonly headers?: Record<string, string>
}

/**
 * The calls of OrderService that answer once, over REST, in the shape of the generated client, so that the client's own order
 * calls, with their retries, work over either.
 */
export function restOrders(call: RestCall): Omit<Services['order'], 'watchOrder'> {
  const post =
    (path: string) =>
    (body: object, { signal, headers }: CallOptions = {}): Promise<unknown> =>
      call(path, { body, signal, headers })
  const service = {
    startOrder: post(orderPaths.start),
    claimOrder: post(orderPaths.claim),
    getOrderChallenge: ({ orderId, challengeToken }: PhoneOrder, { signal }: CallOptions = {}) =>
      call(orderPaths.challenge, { query: { orderId }, headers: { authorization: bearer(challengeToken) }, signal }),
    approveOrder: post(orderPaths.approve),
    rejectOrder: post(orderPaths.reject),
    cancelOrder: post(orderPaths.cancel),
    finalizeOrder: post(orderPaths.finalize),
    handOverOrder: post(orderPaths.handOver),
    redeemHandOver: post(orderPaths.redeem),
  }
  // REST's JSON has the fields of the messages, but numbers and words for some of their types. The order calls accept both.
  return service as unknown as Omit<Services['order'], 'watchOrder'>
}

/** Value of the Authorization header for a token. */
export function bearer(token: string): string {
  return `Bearer ${token}`
}
