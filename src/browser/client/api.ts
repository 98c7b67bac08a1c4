import type {
  AccessToken,
  ApprovedOrder,
  ClaimedOrder,
  ConnectedApp,
  DesktopOrder,
  FinalizedOrder,
  HandOver,
  KnownComputer,
  NonceChallenge,
  NonceRequest,
  OrderChallenge,
  OrderEvent,
  OrderPreview,
  OrderState,
  PhoneOrder,
  RejectedOrder,
  Session,
  SignInResult,
  SigningAccount,
  StartedOrder,
  StartOrderOptions,
  UserWallet,
} from './types.ts'
import type { WalletProof } from './wallet.ts'

/**
 * The service's calls, over any protocol: requests and answers in the shape of REST's JSON. Each makes one request, and
 * rejects with a `CountersignClientError`, of ABORTED if the signal was aborted.
 */

/** Parts of a call that are not its request. */
export interface ApiCall {
  readonly signal: AbortSignal
  readonly headers?: Record<string, string> | undefined
}

/** A call of the service. */
export type ApiMethod<Request, Answer> = (request: Request, call: ApiCall) => Promise<Answer>

/** Calls of a direct sign-in. */
export interface SignInApi {
  readonly issueNonce: ApiMethod<NonceRequest, NonceChallenge>
  readonly verifySignIn: ApiMethod<WalletProof & { readonly nonceId: string }, SignInResult>
}

/** The computer's calls for cross-device orders. */
export interface DesktopOrderApi {
  readonly startOrder: ApiMethod<StartOrderOptions, StartedOrder>
  readonly watchOrder: (request: WatchRequest, call: WatchCall) => AsyncIterable<WatchMessage>
  readonly finalizeOrder: ApiMethod<
    DesktopOrder & { readonly returnCode?: string; readonly computerProof?: string },
    FinalizedOrder
  >
  readonly cancelOrder: ApiMethod<DesktopOrder, OrderState>
}

/** The phone's calls for cross-device orders. */
export interface PhoneOrderApi {
  readonly claimOrder: ApiMethod<
    { readonly orderId: string; readonly claimToken: string; readonly claimKey: string },
    ClaimedOrder
  >
  readonly previewOrder: ApiMethod<{ readonly orderId: string; readonly claimToken: string }, OrderPreview>
  readonly getOrderChallenge: ApiMethod<PhoneOrder & Partial<SigningAccount>, OrderChallenge>
  readonly approveOrder: ApiMethod<
    PhoneOrder & { readonly proof: WalletProof; readonly rememberComputer?: boolean },
    ApprovedOrder
  >
  readonly rejectOrder: ApiMethod<PhoneOrder, RejectedOrder>
  readonly handOverOrder: ApiMethod<PhoneOrder, HandOver>
  readonly redeemHandOver: ApiMethod<{ readonly ticket: string; readonly claimKey: string }, Omit<ClaimedOrder, 'ok'>>
}

/** Calls for cross-device orders. */
export interface OrderApi extends DesktopOrderApi, PhoneOrderApi {}

/** What a watch asks for: the transitions after a sequence. */
export interface WatchRequest extends DesktopOrder {
  readonly afterSequence?: number | undefined
}

/** Parts of a watch that are not its request. */
export interface WatchCall {
  readonly signal: AbortSignal
  /** To be called when the service has answered. */
  readonly onOpen: () => void
  /** Longest silence, in milliseconds, after which the caller gives the watch up. */
  readonly heartbeatTimeoutMs: number
}

/** A message of a watch: a transition, a sign of life, or the request to come again. */
export type WatchMessage =
  | (OrderEvent & { readonly heartbeat?: false; readonly reconnect?: false })
  | { readonly heartbeat: true; readonly reconnect?: false }
  | { readonly heartbeat?: false; readonly reconnect: true }

/** Calls that a session authorises: its token is sent along, if one is stored. */
export interface SessionApi {
  readonly getCurrentSession: ApiMethod<{ readonly allowSignedOut: true }, { readonly session?: Session }>
  readonly signOut: ApiMethod<object, unknown>
  readonly listSessions: ApiMethod<object, { readonly sessions: readonly Session[] }>
  readonly revokeSession: ApiMethod<{ readonly sessionId: string }, unknown>
  readonly revokeOtherSessions: ApiMethod<object, { readonly revokedCount: number }>
  readonly listKnownComputers: ApiMethod<object, { readonly computers: readonly KnownComputer[] }>
  readonly listConnectedApps: ApiMethod<object, { readonly apps: readonly ConnectedApp[] }>
  readonly disconnectApp: ApiMethod<{ readonly clientId: string }, unknown>
  readonly forgetKnownComputer: ApiMethod<{ readonly id: string }, unknown>
  readonly issueAccessToken: ApiMethod<{ readonly audience: string }, AccessToken>
}

/** Calls for the wallets of the signed-in user. They are authorised like those of {@link SessionApi}. */
export interface WalletApi {
  /** Issues a nonce for adding a wallet. */
  readonly issueLinkNonce: ApiMethod<NonceRequest, NonceChallenge>
  readonly listWallets: ApiMethod<object, { readonly wallets: readonly UserWallet[] }>
  readonly linkWallet: ApiMethod<
    { readonly nonceId: string; readonly proof: WalletProof },
    { readonly wallet: UserWallet }
  >
  readonly unlinkWallet: ApiMethod<{ readonly adapterId: string; readonly address: string }, unknown>
}
