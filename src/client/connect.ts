import { durationMs } from '@bufbuild/protobuf/wkt'
import { type Client, Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { OrderService } from '../../gen/client/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/client/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/client/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../gen/client/countersign/v1/wallet_service_pb.ts'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/client/google/rpc/error_details_pb.ts'
import { aborted, type ClientErrorCode, CountersignClientError } from './errors.ts'

/** The generated clients of all services. */
export interface Services {
  readonly signIn: Client<typeof SignInService>
  readonly order: Client<typeof OrderService>
  readonly session: Client<typeof SessionService>
  readonly wallet: Client<typeof WalletService>
}

/** Options of {@link connectServices}. */
export interface ServicesOptions {
  /** Address of the service; empty for the page's own origin. */
  readonly baseUrl: string
  /** Returns the `fetch` to use. Asked at each call, because a page may replace the global one. */
  readonly fetch: () => typeof globalThis.fetch
  /** Returns the session token, for calls that a session authorises. */
  readonly token: () => string | undefined
}

/**
 * Makes the generated clients. All calls send the session cookie; those that a session authorises also send the bearer token.
 */
export function connectServices({ baseUrl, fetch, token }: ServicesOptions): Services {
  const bearer: Interceptor = (next) => (request) => {
    // Other calls are authorised by tokens of their own and do not get to see this one.
    const sessionToken = ofSessions.has(request.service.typeName) ? token() : undefined
    if (sessionToken !== undefined) request.header.set('authorization', `Bearer ${sessionToken}`)
    return next(request)
  }
  const transport = createConnectTransport({
    baseUrl,
    interceptors: [bearer],
    // No cache mode: POSTs are not cached anyway, and "no-store" would make browsers repeat every CORS preflight.
    fetch: (input, init) => {
      const last = lastCalls.test(String(input)) ? { keepalive: true } : {}
      // Not `error`, which workerd does not know. An answer that leads elsewhere is no answer of the service.
      return fetch()(input, { ...init, credentials: 'include', redirect: 'manual', ...last })
    },
  })
  return {
    signIn: createClient(SignInService, transport),
    order: createClient(OrderService, transport),
    session: createClient(SessionService, transport),
    wallet: createClient(WalletService, transport),
  }
}

/** Calls that a page may make as it is left, and that go on then. */
const lastCalls = /\/(CancelOrder|RejectOrder|SignOut)$/

/** Services whose calls a session authorises. */
const ofSessions: ReadonlySet<string> = new Set([SessionService.typeName, WalletService.typeName])

/** The coded error for anything that a generated client threw. `signal` is the call's. */
export function toClientError(thrown: unknown, signal: AbortSignal | undefined): CountersignClientError {
  if (thrown instanceof CountersignClientError) return thrown
  if (signal?.aborted) return aborted(signal)
  const error = ConnectError.from(thrown)
  const [info] = error.findDetails(ErrorInfoSchema).filter(({ domain }) => domain === 'countersign')
  if (info !== undefined) {
    const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay
    const retryAfterMs = delay === undefined ? undefined : durationMs(delay)
    const { tries_left: tries } = info.metadata
    const triesLeft = tries === undefined ? undefined : Number(tries)
    const code = info.reason as ClientErrorCode
    return new CountersignClientError(code, error.rawMessage, { retryAfterMs, triesLeft, cause: error })
  }
  // Connect gives a cause if fetch or reading the body failed, and only a code if it read an answer that is not the service's.
  if (silent.has(error.code) || (error.code === Code.Unknown && error.cause !== undefined)) {
    return new CountersignClientError('NETWORK', 'The service did not answer', { cause: error.cause ?? error })
  }
  return new CountersignClientError('UNEXPECTED_ANSWER', `Unexpected answer: ${error.rawMessage}`, {
    cause: error,
  })
}

/** Codes for proxies that do not reach the service (429, 502, 503, 504) and for calls that ran out of time. */
const silent: ReadonlySet<Code> = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Canceled, Code.Aborted])
