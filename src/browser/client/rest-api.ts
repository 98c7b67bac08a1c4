import { given } from '../../shared/defined-fields.ts'
import { parseObject } from '../../shared/json-object.ts'
import {
  appPaths,
  computerPaths,
  desktopOrderPaths,
  inboxPaths,
  phoneOrderPaths,
  sessionPaths,
  signInPaths,
  walletPaths,
} from '../../shared/rest-paths.ts'
import type { NonceChallenge } from '../../shared/session.ts'
import type {
  ApiMethod,
  DesktopOrderApi,
  InboxApi,
  OrderApi,
  PhoneOrderApi,
  SessionApi,
  SignInApi,
  WalletApi,
} from './api.ts'
import { defaultTimeoutMs, withTimeLimit } from './call.ts'
import { aborted, type ClientErrorCode, CountersignClientError } from './errors.ts'

/** A function that makes HTTP requests, as `fetch` does. */
export type Fetcher = (url: string, init: RequestInit) => Promise<Response>

/** Address and time limit of the REST endpoints. */
export interface RestOptions {
  /** Address of the service. Default: the page's own origin. */
  readonly baseUrl?: string | undefined
  /** Path of the REST endpoints. Default /api/auth. */
  readonly basePath?: string | undefined
  /** Path of the direct sign-in endpoints under `basePath`. Default /wallet. */
  readonly endpointPrefix?: string | undefined
  /** Time limit of a call, in milliseconds. Default 15,000. */
  readonly timeoutMs?: number | undefined
}

/** Path of the REST endpoints, unless the options say otherwise. */
export const defaultBasePath = '/api/auth'

/** Path of the direct sign-in endpoints, unless the options say otherwise. */
export const defaultPrefix = '/wallet'

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

/** Ways to the REST endpoints, by their paths under the base path. */
export interface Rest {
  /** POST with a body, GET without. Rejects with a `CountersignClientError`. */
  readonly call: RestCall
  /** The same for an answer that is a stream, without a time limit. */
  readonly open: (path: string, init: RestCallInit) => Promise<Response>
}

/** The REST endpoints of a service. */
export function restOf(fetcher: Fetcher, options: Omit<RestOptions, 'endpointPrefix'>): Rest {
  const { baseUrl = '', basePath = defaultBasePath, timeoutMs: usualMs = defaultTimeoutMs } = options
  const root = baseUrl.replace(/\/+$/, '') + basePath

  /** Makes a request and reads the answer, of which a failure leaves nothing to read. */
  const answerOf = async <T>(
    path: string,
    { body, query, headers: own, signal, keepalive }: RestCallInit,
    limited: AbortSignal | undefined,
    read: (response: Response) => Promise<T | undefined> | T,
  ): Promise<T> => {
    const search = query === undefined ? '' : `?${new URLSearchParams(query)}`
    const init: RequestInit = {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...own },
      credentials: 'include',
      // Not `error`, which workerd does not know. An answer that leads elsewhere is no answer of the service.
      redirect: 'manual',
      ...given({ body: body && JSON.stringify(body), keepalive, signal: limited }),
    }
    let response: Response
    let refusal: Record<string, unknown> | undefined
    let answer: T | undefined
    try {
      response = await fetcher(root + path + search, init)
      if (response.ok) answer = await read(response)
      else refusal = parseObject(await response.text())
    } catch (cause) {
      if (signal?.aborted) throw aborted(signal)
      throw new CountersignClientError('NETWORK', 'The service did not answer', { cause })
    }
    const { status, headers } = response
    if (answer !== undefined) return answer
    throw refusalError({ ...refusal, status, retryAfterMs: retryAfterMs(headers) })
  }

  return {
    call: <T>(path: string, init: RestCallInit = {}) => {
      const limited = withTimeLimit(init.signal, init.timeoutMs ?? usualMs)
      return answerOf<T>(path, init, limited, async (response) => parseObject(await response.text()) as T | undefined)
    },
    open: (path, init) => answerOf(path, init, init.signal, (response) => response),
  }
}

function retryAfterMs(headers: Headers): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds * 1000 : undefined
}

/** A REST answer that is not a success. */
export interface RestRefusal {
  /** HTTP status. */
  readonly status: number
  /** `code` of the body. */
  readonly code?: unknown
  /** `message` of the body. */
  readonly message?: unknown
  /** `triesLeft` of the body, for a wrong code. */
  readonly triesLeft?: unknown
  /** `metadata` of the body. */
  readonly metadata?: unknown
  /** Time from the Retry-After header, in milliseconds. */
  readonly retryAfterMs?: number | undefined
}

/** The error that a REST answer stands for. Only the service itself answers with a code and a message. */
export function refusalError(refusal: RestRefusal): CountersignClientError {
  const { status, code, message, triesLeft, metadata, retryAfterMs } = refusal
  if (typeof code === 'string' && typeof message === 'string') {
    const tries = typeof triesLeft === 'number' ? { triesLeft } : {}
    const { adapterId, address } = (metadata ?? {}) as { readonly adapterId?: string; readonly address?: string }
    return new CountersignClientError(code as ClientErrorCode, message, { retryAfterMs, ...tries, adapterId, address })
  }
  // A proxy that does not reach the service.
  return [429, 502, 503, 504].includes(status)
    ? new CountersignClientError('NETWORK', `The service did not answer: HTTP ${status}`, { retryAfterMs })
    : new CountersignClientError('UNEXPECTED_ANSWER', `Unexpected answer: HTTP ${status}`)
}

/** The calls of a direct sign-in over REST. `prefix` is the path of its endpoints under the base path. */
export function restSignIn(call: RestCall, prefix: string): SignInApi {
  return {
    issueNonce: post(call, prefix + signInPaths.nonce),
    verifySignIn: post(call, prefix + signInPaths.verify),
  }
}

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
    previewOrder: ({ claimToken, ...query }, { signal }) =>
      call(phoneOrderPaths.preview, { query, headers: { authorization: bearer(claimToken) }, signal }),
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

function get<Answer>(call: RestCall, path: string): ApiMethod<object, Answer> {
  return (_, { signal, headers }) => call(path, { signal, headers })
}

/** A session's calls over REST. */
export function restSessions(call: RestCall): SessionApi {
  return {
    getCurrentSession: get(call, `${sessionPaths.current}?allowSignedOut=true`),
    listSessions: get(call, sessionPaths.list),
    revokeSession: post(call, sessionPaths.revoke),
    revokeOtherSessions: post(call, sessionPaths.revokeOthers),
    signOut: post(call, sessionPaths.signOut, true),
    listConnectedApps: get(call, appPaths.list),
    disconnectApp: post(call, appPaths.disconnect),
    listKnownComputers: get(call, computerPaths.list),
    forgetKnownComputer: post(call, computerPaths.forget),
    issueAccessToken: post(call, sessionPaths.accessToken),
  }
}

/** The calls for the user's wallets over REST. `prefix` is as for {@link restSignIn}. */
export function restWallets(call: RestCall, prefix: string): WalletApi {
  const issueNonce = post<NonceChallenge>(call, prefix + signInPaths.nonce)
  return {
    issueLinkNonce: (request, options) => issueNonce({ ...request, purpose: 'link' }, options),
    listWallets: get(call, prefix + walletPaths.list),
    linkWallet: post(call, prefix + walletPaths.link),
    unlinkWallet: post(call, prefix + walletPaths.unlink),
  }
}

/** The calls for the user's inbox over REST. */
export function restInbox(call: RestCall): InboxApi {
  return { listInbox: get(call, inboxPaths.orders), claimFromInbox: post(call, inboxPaths.claim) }
}

/** Value of the Authorization header for a token. */
export function bearer(token: string): string {
  return `Bearer ${token}`
}
