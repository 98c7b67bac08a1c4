import type { Message } from '@bufbuild/protobuf'
import { type Claim, parseClaimUrl } from './claim-url.ts'
import { type Services, toClientError } from './connect.ts'
import { type WatchOrderOptions, watchOrder } from './order-watch.ts'
import { plain, protoKind } from './plain.ts'
import { callSignal } from './rest.ts'
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

/** What every call can be told. */
export interface CallOptions {
  /** Ends the call: it rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/** How an order is finalized. */
export interface FinalizeOrderOptions extends CallOptions {
  /** Whether a login's token is kept in the storage. Default: the client's own setting. */
  readonly autoPersistToken?: boolean | undefined
}

/** How an order is claimed. */
export interface ClaimOrderOptions extends CallOptions {
  /**
   * A secret of the phone's own (see `newClaimKey`), with which a claim whose answer was lost can be made again, even after
   * a reload of the page. Default: a new one.
   */
  readonly claimKey?: string | undefined
}

/** How an order is approved. */
export interface ApproveOrderOptions extends ProofOptions {
  /** What `getOrderChallenge` answered; its message is what the wallet signs. */
  readonly challenge: OrderChallenge
  /** The digits on the desktop's screen, where the challenge says that they are required. */
  readonly confirmationCode?: string | undefined
}

/** Cross-device orders. */
export interface OrderCalls {
  /** Makes an order, for the desktop. */
  startOrder(options: StartOrderOptions & CallOptions): Promise<StartedOrder>
  /** Tells the desktop what happens to the order; see {@link watchOrder}. */
  watchOrder(order: DesktopOrder, options?: WatchOrderOptions): AsyncGenerator<OrderEvent, void, undefined>
  /** Turns an approved order into a session or a proof, for the desktop, and keeps a session's token. Made again when no answer comes. */
  finalizeOrder(order: DesktopOrder, options?: FinalizeOrderOptions): Promise<FinalizedOrder>
  /** Takes an order back, for the desktop. Made again when no answer comes. */
  cancelOrder(order: DesktopOrder, options?: CallOptions): Promise<OrderState>
  /** Takes an order for this phone, from its claim URL. Made again, with the same claim key, when no answer comes. */
  claimOrder(claim: string | URL | Claim, options?: ClaimOrderOptions): Promise<ClaimedOrder>
  /** What the wallet is to sign and its user to see. Made again when no answer comes. */
  getOrderChallenge(order: PhoneOrder, options?: CallOptions): Promise<OrderChallenge>
  /** Has the wallet sign the challenge and approves the order. Call it from a user's gesture. */
  approveOrder(order: PhoneOrder, options: ApproveOrderOptions): Promise<OrderState>
  /** Says no, for the phone. Made again when no answer comes. */
  rejectOrder(order: PhoneOrder, options?: CallOptions): Promise<OrderState>
}

/** What {@link orderCalls} works with. */
export interface OrderCallsParts {
  readonly service: Services['order']
  readonly tokens: TokenStore
  readonly autoPersistToken: boolean
  readonly proofDefaults: ProofOptions
  readonly timeoutMs: number
  readonly silenceMs: number
}

/** How long a finalize is tried, milliseconds: the service gives the same answer again for 60 seconds. */
const finalizeForMs = 50_000

/** Cross-device orders over the generated client. */
export function orderCalls(parts: OrderCallsParts): OrderCalls {
  const { service, tokens, timeoutMs } = parts
  const once = async <T>(
    call: (options: { signal: AbortSignal }) => Promise<Message>,
    signal?: AbortSignal,
  ): Promise<T> => {
    try {
      return plain<T>(await call({ signal: callSignal(signal, timeoutMs) }))
    } catch (thrown) {
      throw toClientError(thrown, signal)
    }
  }
  const again = async <T>(
    call: (options: { signal: AbortSignal }) => Promise<Message>,
    signal: AbortSignal | undefined,
    forMs?: number,
  ): Promise<T> => await retrying(() => once<T>(call, signal), signal, forMs)

  return {
    startOrder: ({ signal, kind, ...order }) =>
      once((call) => service.startOrder({ ...order, kind: protoKind(kind) }, call), signal),
    watchOrder: (order, options = {}) =>
      watchOrder({ open: service.watchOrder, silenceMs: parts.silenceMs }, order, options),
    async finalizeOrder({ orderId, desktopToken }, { signal, autoPersistToken = parts.autoPersistToken } = {}) {
      const call = (options: { signal: AbortSignal }) => service.finalizeOrder({ orderId, desktopToken }, options)
      const finalized = await again<FinalizedOrder>(call, signal, finalizeForMs)
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
      const options = { ...parts.proofDefaults, ...given(proofOptions) }
      const proof = await proveWithWallet(challenge.message, options)
      const request = {
        orderId,
        challengeToken,
        proof,
        ...(confirmationCode === undefined ? {} : { confirmationCode }),
      }
      return await again((call) => service.approveOrder(request, call), options.signal)
    },
    rejectOrder: ({ orderId, challengeToken }, { signal } = {}) =>
      again((call) => service.rejectOrder({ orderId, challengeToken }, call), signal),
  }
}

/** A new secret for a phone's claim: 256 random bits, base64url. */
export function newClaimKey(): string {
  const bytes = String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)))
  return btoa(bytes).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')
}

/** Only what was given: an option that is `undefined` does not hide its default. */
export function given<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}
