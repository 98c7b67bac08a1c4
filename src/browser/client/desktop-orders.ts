import { given } from '../../shared/defined-fields.ts'
import type {
  DesktopOrder,
  FinalizedOrder,
  OrderEvent,
  OrderKind,
  OrderState,
  StartedOrder,
  StartOrderOptions,
} from '../../shared/orders.ts'
import type { Session } from '../../shared/session.ts'
import type { ApiCall, DesktopOrderApi } from './api.ts'
import { type CallOptions, runTrusted } from './call.ts'
import type { ComputerKey } from './computer-key.ts'
import { type WatchOrderOptions, watchOrder } from './order-watch.ts'
import { bearer } from './rest-api.ts'
import { retriesOf } from './retry.ts'
import { keepToken, type TokenStore } from './token-store.ts'

/** Options of {@link DesktopCalls.startOrder} that are not part of the order. */
export interface StartOrderCallOptions extends CallOptions {
  /**
   * Start key of the application's backend, if the service takes orders from there only. Secret: never give it to a
   * page.
   */
  readonly startKey?: string | undefined
}

/** Options of {@link DesktopCalls.finalizeOrder}. */
export interface FinalizeOrderOptions extends CallOptions {
  /** The six digits that the phone shows, if the event `approved` has `returnCodeRequired`. */
  readonly returnCode?: string | undefined
  /**
   * Proof of possession of the order's computer key, if that is not the client's own. Default: made with the client's
   * key.
   */
  readonly computerProof?: string | undefined
  /** Whether the token of a login order is stored. Default: the client's own option. */
  readonly autoPersistToken?: boolean | undefined
}

/** The desktop's calls for cross-device orders. Those that are retried get the same answer again. */
export interface DesktopCalls {
  /**
   * Desktop: the public key of this computer, for a backend that starts the order. `startOrder` adds it by itself.
   * `undefined` without WebCrypto and IndexedDB, and if the option `knownComputer` is off. Never rejects.
   */
  computerKey(): Promise<string | undefined>
  /**
   * Desktop, or the application's backend: starts an order. Not retried. Kind link adds a wallet of another device to
   * the signed-in user: it rejects with SESSION_NOT_FRESH unless the user has signed in on this device in the last ten
   * minutes (not with a phone), and with NOT_ENABLED if the application keeps its users or sessions itself.
   */
  startOrder(options: StartOrderOptions & StartOrderCallOptions): Promise<StartedOrder>
  /**
   * Desktop: yields each transition of the order once and ends after a terminal one. A lost stream is opened again.
   * Rejects with ABORTED, and with errors that a retry cannot change, such as ORDER_TOKEN_INVALID.
   */
  watchOrder(order: DesktopOrder, options?: WatchOrderOptions): AsyncGenerator<OrderEvent, void, undefined>
  /**
   * Desktop: turns an approved order into a session, whose token is stored, a proof, or another wallet of the user, for
   * which {@link order} needs its `kind`; WALLET_TAKEN if it has become another user's. Retried with the same return
   * code if no answer arrives. Rejects with RETURN_CODE_WRONG, whose `triesLeft` says how many codes are left to try,
   * and with ORDER_REJECTED if the phone stopped the order or took the sign-in back. After COMPUTER_PROOF_INVALID,
   * start a new order: the browser has lost the key that the order was started with.
   */
  finalizeOrder(
    order: DesktopOrder & Partial<Pick<StartedOrder, 'kind'>>,
    options?: FinalizeOrderOptions,
  ): Promise<FinalizedOrder>
  /** Desktop: cancels an order. Retried if no answer arrives. */
  cancelOrder(order: DesktopOrder, options?: CallOptions): Promise<OrderState>
}

/** Options of {@link desktopCalls}. */
export interface DesktopCallsOptions {
  readonly service: DesktopOrderApi
  /** Address of the service; empty for the page's own origin. */
  readonly baseUrl: string
  /** Key of this computer, for the desktop's calls. Without it, computers do not become known. */
  readonly computer?: ComputerKey | undefined
  readonly tokens: TokenStore
  readonly autoPersistToken: boolean
  /** Time limit of a call, in milliseconds. */
  readonly timeoutMs: number
  /** Longest silence of an event stream, in milliseconds. */
  readonly heartbeatTimeoutMs: number
  /** Called with the session of a login order that was finalized. */
  readonly onSession?: ((session: Session) => void) | undefined
}

/**
 * Time for the retries of a finalize, in milliseconds. The service repeats its answer for 60 seconds. No answer can
 * carry that number: the retries begin because none arrived. The difference is for the last try to arrive.
 */
const finalizeRetriesMs = 50_000

/** The desktop's calls, over any protocol. */
export function desktopCalls(options: DesktopCallsOptions): DesktopCalls {
  const { service, baseUrl, computer, tokens, timeoutMs, heartbeatTimeoutMs } = options
  const again = retriesOf(timeoutMs)
  /** A link order is the signed-in user's. Without a stored token, the browser's cookie says who that is. */
  const headersOf = (kind: OrderKind | undefined, startKey?: string): ApiCall['headers'] => {
    const token = kind === 'link' ? tokens.read() : startKey
    return token === undefined ? undefined : { authorization: bearer(token) }
  }
  return {
    computerKey: async () => await computer?.publicKey(),
    async startOrder({ signal, startKey, ...order }) {
      const headers = headersOf(order.kind, startKey)
      const ownKey = order.kind === 'link' ? undefined : await computer?.publicKey()
      const request = { ...order, ...given({ computerKey: order.computerKey ?? ownKey }) }
      const start = (call: ApiCall): Promise<StartedOrder> => service.startOrder(request, { ...call, headers })
      return await runTrusted(start, signal, timeoutMs, baseUrl)
    },
    watchOrder: (order, watch = {}) => watchOrder({ open: service.watchOrder, heartbeatTimeoutMs }, order, watch),
    async finalizeOrder({ orderId, desktopToken, kind }, finalize = {}) {
      const { signal, returnCode, autoPersistToken = options.autoPersistToken } = finalize
      // For an order without a key, the service ignores it.
      const computerProof = finalize.computerProof ?? (await computer?.prove({ orderId, desktopToken }))
      const request = { orderId, desktopToken, ...given({ returnCode, computerProof }) }
      const headers = headersOf(kind)
      const finalized = await again(
        (call) => service.finalizeOrder(request, { ...call, headers }),
        signal,
        finalizeRetriesMs,
      )
      if (finalized.kind === 'login') {
        keepToken(tokens, finalized.token, autoPersistToken)
        options.onSession?.(finalized.session)
      }
      return finalized
    },
    cancelOrder: ({ orderId, desktopToken }, { signal } = {}) =>
      again((call) => service.cancelOrder({ orderId, desktopToken }, call), signal),
  }
}
