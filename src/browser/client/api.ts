import type * as order from '../../shared/orders.ts'
import type * as session from '../../shared/session.ts'
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
  readonly issueNonce: ApiMethod<session.NonceRequest, session.NonceChallenge>
  readonly verifySignIn: ApiMethod<WalletProof & { readonly nonceId: string }, session.SignInResult>
}

/** The computer's calls for cross-device orders. */
export interface DesktopOrderApi {
  readonly startOrder: ApiMethod<order.StartOrderOptions, order.StartedOrder>
  readonly watchOrder: (request: WatchRequest, call: WatchCall) => AsyncIterable<WatchMessage>
  readonly finalizeOrder: ApiMethod<
    order.DesktopOrder & { readonly returnCode?: string; readonly computerProof?: string },
    order.FinalizedOrder
  >
  readonly cancelOrder: ApiMethod<order.DesktopOrder, order.OrderState>
}

/** The contents of a claim URL. */
export interface Claim {
  readonly orderId: string
  /** Secret. */
  readonly claimToken: string
}

/** The phone's calls for cross-device orders. */
export interface PhoneOrderApi {
  readonly claimOrder: ApiMethod<Claim & { readonly claimKey: string }, order.ClaimedOrder>
  readonly previewOrder: ApiMethod<Claim, order.OrderPreview>
  readonly getOrderChallenge: ApiMethod<order.PhoneOrder & Partial<session.SigningAccount>, order.OrderChallenge>
  readonly approveOrder: ApiMethod<
    order.PhoneOrder & { readonly proof: WalletProof; readonly rememberComputer?: boolean },
    order.ApprovedOrder
  >
  readonly rejectOrder: ApiMethod<order.PhoneOrder, order.RejectedOrder>
  readonly handOverOrder: ApiMethod<order.PhoneOrder, order.HandOver>
  readonly redeemHandOver: ApiMethod<
    { readonly ticket: string; readonly claimKey: string },
    Omit<order.ClaimedOrder, 'ok'>
  >
}

/** Calls for cross-device orders. */
export interface OrderApi extends DesktopOrderApi, PhoneOrderApi {}

/** What a watch asks for: the transitions after a sequence. */
export interface WatchRequest extends order.DesktopOrder {
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
  | (order.OrderEvent & { readonly heartbeat?: false; readonly reconnect?: false })
  | { readonly heartbeat: true; readonly reconnect?: false }
  | { readonly heartbeat?: false; readonly reconnect: true }

/** Calls that a session authorises: its token is sent along, if one is stored. */
export interface SessionApi {
  readonly getCurrentSession: ApiMethod<{ readonly allowSignedOut: true }, { readonly session?: session.Session }>
  readonly signOut: ApiMethod<object, unknown>
  readonly listSessions: ApiMethod<object, { readonly sessions: readonly session.Session[] }>
  readonly revokeSession: ApiMethod<{ readonly sessionId: string }, unknown>
  readonly revokeOtherSessions: ApiMethod<object, { readonly revokedCount: number }>
  readonly listKnownComputers: ApiMethod<object, { readonly computers: readonly session.KnownComputer[] }>
  readonly listConnectedApps: ApiMethod<object, { readonly apps: readonly session.ConnectedApp[] }>
  readonly disconnectApp: ApiMethod<{ readonly clientId: string }, unknown>
  readonly forgetKnownComputer: ApiMethod<{ readonly id: string }, unknown>
  readonly issueAccessToken: ApiMethod<{ readonly audience: string }, session.AccessToken>
}

/** Calls for the inbox of the signed-in user. They are authorised like those of {@link SessionApi}. */
export interface InboxApi {
  readonly listInbox: ApiMethod<object, { readonly orders: readonly order.InboxOrder[] }>
  readonly claimFromInbox: ApiMethod<{ readonly orderId: string; readonly claimKey: string }, order.ClaimedOrder>
}

/** Calls for the wallets of the signed-in user. They are authorised like those of {@link SessionApi}. */
export interface WalletApi {
  /** Issues a nonce for adding a wallet. */
  readonly issueLinkNonce: ApiMethod<Omit<session.NonceRequest, 'form'>, session.NonceChallenge>
  readonly listWallets: ApiMethod<object, { readonly wallets: readonly session.UserWallet[] }>
  readonly linkWallet: ApiMethod<
    { readonly nonceId: string; readonly proof: WalletProof },
    { readonly wallet: session.UserWallet }
  >
  readonly unlinkWallet: ApiMethod<Pick<session.UserWallet, 'adapterId' | 'address'>, unknown>
}
