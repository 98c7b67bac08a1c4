import { desktopOrderPaths, phoneOrderPaths } from '../rest-paths.ts'
import type { ApiMethod, DesktopOrderApi, OrderApi, PhoneOrderApi } from './api.ts'

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

/** The computer's calls for orders that answer once, over REST. */
export function restDesktopOrders(call: RestCall): Omit<DesktopOrderApi, 'watchOrder'> {
  return {
    startOrder: post(call, desktopOrderPaths.start),
    finalizeOrder: post(call, desktopOrderPaths.finalize),
    cancelOrder: post(call, desktopOrderPaths.cancel, true),
  }
}

/** The phone's calls for orders, over REST. */
export function restPhoneOrders(call: RestCall): PhoneOrderApi {
  return {
    claimOrder: post(call, phoneOrderPaths.claim),
    getOrderChallenge: ({ challengeToken, ...query }, { signal }) =>
      call(phoneOrderPaths.challenge, { query, headers: { authorization: bearer(challengeToken) }, signal }),
    approveOrder: post(call, phoneOrderPaths.approve),
    rejectOrder: post(call, phoneOrderPaths.reject, true),
    handOverOrder: post(call, phoneOrderPaths.handOver),
    redeemHandOver: post(call, phoneOrderPaths.redeem),
  }
}

/** The calls for orders that answer once, over REST. */
export function restOrders(call: RestCall): Omit<OrderApi, 'watchOrder'> {
  return { ...restDesktopOrders(call), ...restPhoneOrders(call) }
}

function post<Answer>(call: RestCall, path: string, keepalive?: true): ApiMethod<object, Answer> {
  return (body, { signal, headers }) => call(path, { body, signal, headers, keepalive })
}

/** Value of the Authorization header for a token. */
export function bearer(token: string): string {
  return `Bearer ${token}`
}
