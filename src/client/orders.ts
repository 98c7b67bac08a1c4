import type { Message } from '@bufbuild/protobuf'
import { base64url } from './base64url.ts'
import { type Call, type CallOptions, run } from './call.ts'
import { type Claim, parseClaimUrl } from './claim-url.ts'
import type { ComputerKey } from './computer-key.ts'
import type { Services } from './connect.ts'
import { given } from './given.ts'
import { type WatchOrderOptions, watchOrder } from './order-watch.ts'
import { plain, protoKind } from './plain.ts'
import { bearer } from './rest-orders.ts'
import { retrying } from './retry.ts'
import { keepToken } from './sign-in.ts'
import type { TokenStore } from './token-store.ts'
import type {
  ApprovedOrder,
  ClaimedOrder,
  DesktopOrder,
  FinalizedOrder,
  HandOver,
  OrderChallenge,
  OrderEvent,
  OrderState,
  PhoneOrder,
  RejectedOrder,
  StartedOrder,
  StartOrderOptions,
} from './types.ts'
import { type ProofOptions, proveWithWallet } from './wallet.ts'

/** Options of {@link OrderCalls.startOrder} that are not part of the order. */
export interface StartOrderCallOptions extends CallOptions {
  /** Start key of the application's backend, if the service takes orders from there only. Secret: never give it to a page. */
  readonly startKey?: string | undefined
}

/** Options of {@link OrderCalls.finalizeOrder}. */
export interface FinalizeOrderOptions extends CallOptions {
  /** The six digits that the phone shows, if the event `approved` has `returnCodeRequired`. */
  readonly returnCode?: string | undefined
  /** Proof of possession of the order's computer key, if that is not the client's own. Default: made with the client's key. */
  readonly computerProof?: string | undefined
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
  /**
   * Whether the computer is to be remembered, so that its next orders need no return code. Without effect unless
   * `canRememberComputer` of the challenge is true. Default false.
   */
  readonly rememberComputer?: boolean | undefined
}

/** Calls for cross-device orders. Those that are retried get the same answer again. */
export interface OrderCalls {
  /**
   * Desktop: the public key of this computer, for a backend that starts the order. `startOrder` adds it by itself. `undefined`
   * without WebCrypto and IndexedDB, and if the option `knownComputer` is off. Never rejects.
   */
  computerKey(): Promise<string | undefined>
  /** Desktop, or the application's backend: starts an order. Not retried. */
  startOrder(options: StartOrderOptions & StartOrderCallOptions): Promise<StartedOrder>
  /**
   * Desktop: yields each transition of the order once and ends after a terminal one. A lost stream is opened again. Rejects
   * with ABORTED, and with errors that a retry cannot change, such as ORDER_TOKEN_INVALID.
   */
  watchOrder(order: DesktopOrder, options?: WatchOrderOptions): AsyncGenerator<OrderEvent, void, undefined>
  /**
   * Desktop: turns an approved order into a session, whose token is stored, or a proof. Retried with the same return code if no
   * answer arrives. Rejects with RETURN_CODE_WRONG, whose `triesLeft` says how many codes are left to try, and with ORDER_REJECTED
   * if the phone stopped the order or took the sign-in back. After COMPUTER_PROOF_INVALID, start a new order: the browser has
   * lost the key that the order was started with.
   */
  finalizeOrder(order: DesktopOrder, options?: FinalizeOrderOptions): Promise<FinalizedOrder>
  /** Desktop: cancels an order. Retried if no answer arrives. */
  cancelOrder(order: DesktopOrder, options?: CallOptions): Promise<OrderState>
  /** Phone: claims an order by its claim URL. Retried with the same claim key if no answer arrives. */
  claimOrder(claim: string | URL | Claim, options?: ClaimOrderOptions): Promise<ClaimedOrder>
  /** Phone: reads the text to sign and the details to show to the user. Retried if no answer arrives. */
  getOrderChallenge(order: PhoneOrder, options?: CallOptions): Promise<OrderChallenge>
  /** Phone: asks the wallet to sign the challenge, then approves the order. Call it in a user gesture. Retried if no answer arrives. */
  approveOrder(order: PhoneOrder, options: ApproveOrderOptions): Promise<ApprovedOrder>
  /**
   * Phone: rejects an order, also an approved one. Takes a finalized login order back: its session ends. Retried if no answer
   * arrives.
   */
  rejectOrder(order: PhoneOrder, options?: CallOptions): Promise<RejectedOrder>
  /** Phone: makes a ticket that continues the order in another browser. A retry makes another one, which voids the first. */
  handOverOrder(order: PhoneOrder, options?: CallOptions): Promise<HandOver>
  /**
   * Phone: continues an order here by the ticket of another browser. Call it in a user gesture, never when a page is merely
   * opened. Retried with the same claim key if no answer arrives.
   */
  redeemHandOver(ticket: string, options?: ClaimOrderOptions): Promise<Omit<ClaimedOrder, 'ok'>>
}

/** Options of {@link orderCalls}. */
export interface OrderCallsOptions {
  readonly service: Services['order']
  /** Key of this computer, for the desktop's calls. Without it, computers do not become known. */
  readonly computer?: ComputerKey | undefined
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
  const { service, computer, tokens, timeoutMs, heartbeatTimeoutMs } = options
  const once = async <T>(call: Call<Message>, signal?: AbortSignal): Promise<T> =>
    plain<T>(await run(call, signal, timeoutMs))
  const again = async <T>(call: Call<Message>, signal: AbortSignal | undefined, forMs?: number): Promise<T> =>
    await retrying(() => once<T>(call, signal), signal, forMs)

  return {
    computerKey: async () => await computer?.publicKey(),
    async startOrder({ signal, startKey, kind, ...order }) {
      const headers = startKey === undefined ? {} : { headers: { authorization: bearer(startKey) } }
      const computerKey = order.computerKey ?? (await computer?.publicKey())
      const request = { ...order, kind: protoKind(kind), ...(computerKey === undefined ? {} : { computerKey }) }
      return await once((call) => service.startOrder(request, { ...call, ...headers }), signal)
    },
    watchOrder: (order, watch = {}) => watchOrder({ open: service.watchOrder, heartbeatTimeoutMs }, order, watch),
    async finalizeOrder({ orderId, desktopToken }, finalize = {}) {
      const { signal, returnCode, autoPersistToken = options.autoPersistToken } = finalize
      // For an order without a key, the service ignores it.
      const computerProof = finalize.computerProof ?? (await computer?.prove({ orderId, desktopToken }))
      const request = { orderId, desktopToken, ...given({ returnCode, computerProof }) }
      const finalized = await again<FinalizedOrder>(
        (call) => service.finalizeOrder(request, call),
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
    async approveOrder({ orderId, challengeToken }, approval) {
      const { challenge, confirmationCode, rememberComputer, ...proofOptions } = approval
      const proving = { ...options.proofDefaults, ...given(proofOptions) }
      const proof = await proveWithWallet(challenge.message, proving)
      const request = {
        orderId,
        challengeToken,
        proof,
        ...(confirmationCode === undefined ? {} : { confirmationCode }),
        ...(rememberComputer === undefined ? {} : { rememberComputer }),
      }
      return await again((call) => service.approveOrder(request, call), proving.signal)
    },
    rejectOrder: ({ orderId, challengeToken }, { signal } = {}) =>
      again((call) => service.rejectOrder({ orderId, challengeToken }, call), signal),
    handOverOrder: ({ orderId, challengeToken }, { signal } = {}) =>
      again((call) => service.handOverOrder({ orderId, challengeToken }, call), signal),
    redeemHandOver: (ticket, { signal, claimKey = newClaimKey() } = {}) =>
      again((call) => service.redeemHandOver({ ticket, claimKey }, call), signal),
  }
}

/** A new secret for `claimKey`: 256 random bits in base64url. */
export function newClaimKey(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)))
}
