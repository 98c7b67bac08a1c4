import { orderPaths } from '../rest-paths.ts'
import type { ApiMethod, OrderApi } from './api.ts'

/** Parts of a REST call. */
export interface RestCallInit {
  /** Sent with POST. Without it, the call is a GET. */
  readonly body?: object | undefined
  readonly query?: Record<string, string> | undefined
  readonly headers?: Record<string, string> | undefined
  readonly signal?: AbortSignal | undefined
  /** Whether the call goes on if the page is left. */
  readonly keepalive?: boolean | undefined
  /** Time limit in milliseconds, if the caller has none and it is not the usual one. */
  readonly timeoutMs?: number | undefined
}

/** Calls a REST endpoint by its path under the base path. Rejects with a `CountersignClientError`. */
export type RestCall = <T>(path: string, init?: RestCallInit) => Promise<T>

/** The calls for orders that answer once, over REST. */
export function restOrders(call: RestCall): Omit<OrderApi, 'watchOrder'> {
  const post =
    <Answer>(path: string, keepalive?: true): ApiMethod<object, Answer> =>
    (body, { signal, headers }) =>
      call(path, { body, signal, headers, keepalive })
  return {
    startOrder: post(orderPaths.start),
    claimOrder: post(orderPaths.claim),
    getOrderChallenge: ({ challengeToken, ...query }, { signal }) =>
      call(orderPaths.challenge, { query, headers: { authorization: bearer(challengeToken) }, signal }),
    approveOrder: post(orderPaths.approve),
    rejectOrder: post(orderPaths.reject, true),
    cancelOrder: post(orderPaths.cancel, true),
    finalizeOrder: post(orderPaths.finalize),
    handOverOrder: post(orderPaths.handOver),
    redeemHandOver: post(orderPaths.redeem),
  }
}

/** Value of the Authorization header for a token. */
export function bearer(token: string): string {
  return `Bearer ${token}`
}
