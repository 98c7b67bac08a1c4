import type { Message } from '@bufbuild/protobuf'
import { durationMs } from '@bufbuild/protobuf/wkt'
import { type Client, Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { OrderKind, OrderService, OrderStatus } from '../../../gen/client/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../../gen/client/countersign/v1/session_service_pb.ts'
import { NoncePurpose, SignInService } from '../../../gen/client/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../../gen/client/countersign/v1/wallet_service_pb.ts'
import { ErrorInfoSchema, RetryInfoSchema } from '../../../gen/client/google/rpc/error_details_pb.ts'
import { type EnumWords, enumWords } from '../../shared/enum-words.ts'
import type { ApiCall, ApiMethod, OrderApi, SessionApi, SignInApi, WalletApi, WatchMessage } from './api.ts'
import { aborted, type ClientErrorCode, CountersignClientError } from './errors.ts'
import { bearer } from './rest-api.ts'
import type * as types from './types.ts'

/** The generated clients of all services. */
export interface Services {
  readonly signIn: Client<typeof SignInService>
  readonly order: Client<typeof OrderService>
  readonly session: Client<typeof SessionService>
  readonly wallet: Client<typeof WalletService>
}

/** Options of {@link connectServices}. */
interface ServicesOptions {
  /** Address of the service; empty for the page's own origin. */
  readonly baseUrl: string
  /** Returns the `fetch` to use. Asked at each call, because a page may replace the global one. */
  readonly fetch: () => typeof globalThis.fetch
  /** Returns the session token, for calls that a session authorises. */
  readonly token: () => string | undefined
}

/**
 * Makes the generated clients. All calls send the session cookie; those that a session authorises also send the bearer
 * token.
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
  // Connect gives a cause if fetch or reading the body failed, and only a code if it read an answer that is not the
  // service's.
  if (silent.has(error.code) || (error.code === Code.Unknown && error.cause !== undefined)) {
    return new CountersignClientError('NETWORK', 'The service did not answer', { cause: error.cause ?? error })
  }
  return new CountersignClientError('UNEXPECTED_ANSWER', `Unexpected answer: ${error.rawMessage}`, {
    cause: error,
  })
}

/** Codes for proxies that do not reach the service (429, 502, 503, 504) and for calls that ran out of time. */
const silent: ReadonlySet<Code> = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Canceled, Code.Aborted])

/** The service's calls over Connect. */
interface ConnectApi {
  readonly signIn: SignInApi
  readonly order: OrderApi
  readonly session: SessionApi
  readonly wallet: WalletApi
}

/**
 * The service's calls over its generated clients. `token` returns the session token, for calls that a session
 * authorises.
 */
export function connectApi(services: Services, token: () => string | undefined): ConnectApi {
  const { signIn, order, session, wallet } = services
  return {
    signIn: {
      issueNonce: plainly(signIn.issueNonce),
      verifySignIn: plainly(signIn.verifySignIn),
    },
    order: {
      startOrder: plainly(({ kind, ...request }, call) =>
        order.startOrder({ ...request, kind: protoKind(kind) }, call),
      ),
      async *watchOrder(request, { signal, onOpen }) {
        try {
          for await (const message of order.watchOrder({ ...request }, { signal, onHeader: onOpen })) {
            yield plain<WatchMessage>(message)
          }
        } catch (thrown) {
          throw toClientError(thrown, signal)
        }
      },
      finalizeOrder: plainly(order.finalizeOrder),
      cancelOrder: plainly(order.cancelOrder),
      previewOrder: plainly(order.previewOrder),
      claimOrder: plainly(order.claimOrder),
      getOrderChallenge: plainly(order.getOrderChallenge),
      approveOrder: plainly(order.approveOrder),
      rejectOrder: plainly(order.rejectOrder),
      handOverOrder: plainly(order.handOverOrder),
      redeemHandOver: plainly(order.redeemHandOver),
    },
    session: {
      getCurrentSession: plainly(session.getCurrentSession),
      signOut: plainly(session.signOut),
      listSessions: plainly(session.listSessions),
      revokeSession: plainly(session.revokeSession),
      revokeOtherSessions: plainly(session.revokeOtherSessions),
      listConnectedApps: plainly(session.listConnectedApps),
      disconnectApp: plainly(session.disconnectApp),
      listKnownComputers: plainly(session.listKnownComputers),
      forgetKnownComputer: plainly(session.forgetKnownComputer),
      issueAccessToken: plainly(session.issueAccessToken),
    },
    wallet: {
      issueLinkNonce: plainly((request, call) => {
        // Of this service's calls, only the nonce of a link has a session.
        const sessionToken = token()
        const headers = sessionToken === undefined ? {} : { headers: { authorization: bearer(sessionToken) } }
        return signIn.issueNonce({ ...request, purpose: NoncePurpose.LINK }, { ...call, ...headers })
      }),
      listWallets: plainly(wallet.listWallets),
      linkWallet: plainly(wallet.linkWallet),
      unlinkWallet: plainly(wallet.unlinkWallet),
    },
  }
}

/** A call of a generated client with a plain answer and the client's own errors. */
function plainly<Request, Answer>(
  method: (request: Request, call: { signal: AbortSignal; headers?: HeadersInit }) => Promise<Message>,
): ApiMethod<Request, Answer> {
  return async (request, { signal, headers }: ApiCall) => {
    try {
      return plain<Answer>(await method(request, { signal, ...(headers === undefined ? {} : { headers }) }))
    } catch (thrown) {
      throw toClientError(thrown, signal)
    }
  }
}

const kinds = enumWords(OrderKind)

/** The enum fields of all messages, by their names. */
const enumFields: Readonly<Record<string, EnumWords>> = { kind: kinds, status: enumWords(OrderStatus) }

/** The value of an order kind in the protos. */
function protoKind(kind: types.OrderKind): OrderKind {
  return kinds.numberOf(kind)
}

/** A message as a plain object in the shape of REST's JSON; `T` is the type of that shape. */
export function plain<T>(message: Message): T {
  const entries = Object.entries(message).filter(([name, value]) => !name.startsWith('$') && value !== undefined)
  return Object.fromEntries(
    entries.map(([name, value]) => [name, enumFields[name]?.wordOf(value) ?? plainValue(value)]),
  ) as T
}

function plainValue(value: unknown): unknown {
  // Times: they fit in a number for the next 280,000 years.
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(plainValue)
  return typeof value === 'object' && value !== null ? plain(value as Message) : value
}
