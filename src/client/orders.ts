import type { Message } from '@bufbuild/protobuf'
import { type Call, type CallOptions, run } from './call.ts'
import { type Claim, parseClaimUrl } from './claim-url.ts'
import type { Services } from './connect.ts'
import { given } from './given.ts'
import { type WatchOrderOptions, watchOrder } from './order-watch.ts'
import { plain, protoKind } from './plain.ts'
import { retrying } from './retry.ts'
import { keepToken } from './sign-in.ts'
import type { TokenStore } from './token-store.ts'
import type {
  ClaimedOrder,
  DesktopOrder,
  FinalizedOrder,
  OrderChallenge,
  OrderEvent,
  OrderState,
  PhoneOrder,
  StartedOrder,
  StartOrderOptions,
} from './types.ts'
import { type ProofOptions, proveWithWallet } from './wallet.ts'

/** Options of {@link OrderCalls.finalizeOrder}. */
export interface FinalizeOrderOptions extends CallOptions {
  /** Whether the token of a login order is stored. Default: the client's own option. */
  readonly autoPersistToken?: boolean | undefined
}

/** Options of {@link OrderCalls.claimOrder}. */
export interface ClaimOrderOptions extends CallOptions {
  /**
   * Secret of this phone (see `newClaimKey`). With the same one, a claim whose answer was lost can be repeated, even after
   * the page was reloaded. Default: a new one.
   */
  readonly claimKey?: string | undefined
}

/** Options of {@link OrderCalls.approveOrder}. */
export interface ApproveOrderOptions extends ProofOptions {
  /** The answer of `getOrderChallenge`; the wallet signs its `message`. */
  readonly challenge: OrderChallenge
  /** Digits on the desktop's screen, if `confirmationCodeRequired` of the challenge is true. */
  readonly confirmationCode?: string | undefined
}

/** Calls for cross-device orders. Those that are retried get the same answer again. */
export interface OrderCalls {
  /** Desktop: starts an order. Not retried. */
  startOrder(options: StartOrderOptions & CallOptions): Promise<StartedOrder>
  /**
   * Desktop: yields each transition of the order once and ends after a terminal one. A lost stream is opened again. Rejects
   * with ABORTED, and with errors that a retry cannot change, such as ORDER_TOKEN_INVALID.
   */
  watchOrder(order: DesktopOrder, options?: WatchOrderOptions): AsyncGenerator<OrderEvent, void, undefined>
  /** Desktop: turns an approved order into a session, whose token is stored, or a proof. Retried if no answer arrives. */
  finalizeOrder(order: DesktopOrder, options?: FinalizeOrderOptions): Promise<FinalizedOrder>
  /** Desktop: cancels an order. Retried if no answer arrives. */
  cancelOrder(order: DesktopOrder, options?: CallOptions): Promise<OrderState>
  /** Phone: claims an order by its claim URL. Retried with the same claim key if no answer arrives. */
  claimOrder(claim: string | URL | Claim, options?: ClaimOrderOptions): Promise<ClaimedOrder>
  /** Phone: reads the text to sign and the details to show to the user. Retried if no answer arrives. */
  getOrderChallenge(order: PhoneOrder, options?: CallOptions): Promise<OrderChallenge>
  /** Phone: asks the wallet to sign the challenge, then approves the order. Call it in a user gesture. Retried if no answer arrives. */
  approveOrder(order: PhoneOrder, options: ApproveOrderOptions): Promise<OrderState>
  /** Phone: rejects an order. Retried if no answer arrives. */
  rejectOrder(order: PhoneOrder, options?: CallOptions): Promise<OrderState>
}

/** Options of {@link orderCalls}. */
export interface OrderCallsOptions {
  readonly service: Services['order']
  readonly tokens: TokenStore
  readonly autoPersistToken: boolean
  readonly proofDefaults: ProofOptions
  /** Time limit of a call, in milliseconds. */
  readonly timeoutMs: number
  /** Longest silence of an event stream, in milliseconds. */
  readonly heartbeatTimeoutMs: number
}

/** Time for the retries of a finalize, in milliseconds: the service repeats its answer for 60 seconds. */
const finalizeRetriesMs = 50_000

/** Calls for cross-device orders over the generated client. */
export function orderCalls(options: OrderCallsOptions): OrderCalls {
  const { service, tokens, timeoutMs, heartbeatTimeoutMs } = options
  const once = async <T>(call: Call<Message>, signal?: AbortSignal): Promise<T> =>
    plain<T>(await run(call, signal, timeoutMs))
  const again = async <T>(call: Call<Message>, signal: AbortSignal | undefined, forMs?: number): Promise<T> =>
    await retrying(() => once<T>(call, signal), signal, forMs)

  return {
    startOrder: ({ signal, kind, ...order }) =>
      once((call) => service.startOrder({ ...order, kind: protoKind(kind) }, call), signal),
    watchOrder: (order, watch = {}) => watchOrder({ open: service.watchOrder, heartbeatTimeoutMs }, order, watch),
    async finalizeOrder({ orderId, desktopToken }, { signal, autoPersistToken = options.autoPersistToken } = {}) {
      const finalized = await again<FinalizedOrder>(
        (call) => service.finalizeOrder({ orderId, desktopToken }, call),
        signal,
        finalizeRetriesMs,
      )
      if (finalized.kind === 'login') keepToken(tokens, finalized.token, autoPersistToken)
      return finalized
    },
    cancelOrder: ({ orderId, desktopToken }, { signal } = {}) =>
      again((call) => service.cancelOrder({ orderId, desktopToken }, call), signal),
    async claimOrder(claim, { signal, claimKey = newClaimKey() } = {}) {
      const { orderId, claimToken } = typeof claim === 'string' || claim instanceof URL ? parseClaimUrl(claim) : claim
      return await again((call) => service.claimOrder({ orderId, claimToken, claimKey }, call), signal)
    },
    getOrderChallenge: ({ orderId, challengeToken }, { signal } = {}) =>
      again((call) => service.getOrderChallenge({ orderId, challengeToken }, call), signal),
    async approveOrder({ orderId, challengeToken }, { challenge, confirmationCode, ...proofOptions }) {
      const proving = { ...options.proofDefaults, ...given(proofOptions) }
      const proof = await proveWithWallet(challenge.message, proving)
      const request = {
        orderId,
        challengeToken,
        proof,
        ...(confirmationCode === undefined ? {} : { confirmationCode }),
      }
      return await again((call) => service.approveOrder(request, call), proving.signal)
    },
    rejectOrder: ({ orderId, challengeToken }, { signal } = {}) =>
      again((call) => service.rejectOrder({ orderId, challengeToken }, call), signal),
  }
}

/** A new secret for `claimKey`: 256 random bits in base64url. */
export function newClaimKey(): string {
  const bytes = String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)))
  return btoa(bytes).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')
}
