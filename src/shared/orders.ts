/**
 * Cross-device orders as callers see them: plain objects in the shape of REST's JSON. Enum values are in lower case,
 * times are epoch milliseconds on the server's clock, and optional fields are absent if they have no value.
 */

import type { NonceChallenge, Session, UserWallet } from './session.ts'

/** Purpose of an order: a session, a signature, or another wallet for the signed-in user. */
export type OrderKind = 'login' | 'sign' | 'link'

/** States after which an order does not change any more. */
export const terminalStatuses = ['finalized', 'rejected', 'cancelled', 'expired'] as const

export const orderStatuses = ['created', 'claimed', 'waiting_user', 'approved', ...terminalStatuses] as const

/** Time in hours for which a wallet that was added to a user approves no order of the user's inbox. */
export const newWalletHours = 24

/** State of an order. The last four are terminal. */
export type OrderStatus = (typeof orderStatuses)[number]

/** Options of an order. */
export interface StartOrderOptions {
  readonly kind: OrderKind
  /** Wallet adapter that the phone must use. Default: any that the service is configured with. */
  readonly adapterId?: string | undefined
  /** Path on the desktop's own origin to go to after finalizing. Default "/". */
  readonly returnTo?: string | undefined
  /** Title for the phone's user, at most 120 characters; the wallet signs it as part of the text. */
  readonly displayTitle?: string | undefined
  /** Description for the phone's user, at most 500 characters; the wallet signs it as part of the text. */
  readonly displaySummary?: string | undefined
  /** Hash of the content to be signed; the wallet signs it as part of the text. */
  readonly payloadHash?: string | undefined
  /**
   * Content to be signed, kind sign only: I-JSON text (RFC 7493) of at most 8 KiB, which the phone's user reads as a
   * table. The service computes the hash of its canonical form (RFC 8785). Not together with {@link payloadHash}.
   */
  readonly payload?: string | undefined
  /** Public key of the only wallet that can approve, hex, kind sign only. Needs {@link adapterId}. */
  readonly expectedPublicKeyHex?: string | undefined
  /** Address of the only wallet that can approve, kind sign only. Needs {@link adapterId}. */
  readonly expectedAddress?: string | undefined
  /** Public key of this computer: see `computerKey` of the client, which adds it by itself. */
  readonly computerKey?: string | undefined
  /** For backends with a start key: the desktop that the order is for. */
  readonly requester?: StartOrderRequester | undefined
  /**
   * For backends with a start key: id of the user who can approve, kind sign with {@link payload} only. The order waits
   * in the user's inbox, and has no claim URL.
   */
  readonly inboxUserId?: string | undefined
  /** Life of an order for an inbox, in seconds, from 30 to 86400. Default 3600. */
  readonly ttlSeconds?: number | undefined
}

/** The desktop that a backend starts an order for. */
export interface StartOrderRequester {
  /** Origin of the page that shows the order. It must be trusted. */
  readonly origin: string
  /** IP address. Default: unknown. */
  readonly ip?: string | undefined
  /** User agent. Default: unknown. */
  readonly userAgent?: string | undefined
}

/** An order's identifier with the desktop's token. */
export interface DesktopOrder {
  readonly orderId: string
  /** Secret. */
  readonly desktopToken: string
}

/** A started order. */
export interface StartedOrder extends DesktopOrder {
  /** Address for the QR code. It is enough to claim the order. Empty for an order for an inbox. */
  readonly claimUrl: string
  /** Secret. {@link claimUrl} contains it. Empty for an order for an inbox. */
  readonly claimToken: string
  readonly kind: OrderKind
  readonly status: OrderStatus
  readonly expiresAt: number
  /**
   * Two digits that the desktop shows, to be compared with the phone's. Empty for kind link, for an inbox, and if the
   * service uses return codes.
   */
  readonly confirmationCode: string
  /** Address of the page on which the user approves an order for an inbox. It contains no token. Absent otherwise. */
  readonly approvalUrl?: string
}

/** A transition of an order. */
export interface OrderEvent {
  /** Number of the transition, from 1. */
  readonly sequence: number
  readonly status: OrderStatus
  readonly kind: OrderKind
  /** Time of the transition. */
  readonly at: number
  /** Path to go to after finalizing; only once the order is approved. */
  readonly redirectTo?: string
  /** Whether finalizing takes the return code that the phone shows. False in all events but `approved`. */
  readonly returnCodeRequired: boolean
  /** Time until which the order can be finalized. Only while it is approved. */
  readonly finishBy?: number
  /** Number of return codes that can still be tried. Only while an order that takes one is approved. */
  readonly triesLeft?: number
  /** Wallet adapter of the wallet that answered, kind link only; in events `approved`. */
  readonly adapterId?: string
  /** Address of that wallet. */
  readonly address?: string
}

/** An order's identifier and status. */
export interface OrderState {
  readonly ok: boolean
  readonly orderId: string
  readonly status: OrderStatus
}

/** An approved order. */
export interface ApprovedOrder extends OrderState {
  /** Six digits for the user to type on the computer, if finalizing takes them. Secret, for the phone's user only. */
  readonly returnCode?: string
  /** Time until which the computer can finalize the order. Absent once it has. */
  readonly finishBy?: number
}

/** A rejected order, or a finalized one that was taken back. */
export interface RejectedOrder extends OrderState {
  /**
   * Whether the order's session was still live. Only for a login order that was taken back; its status stays finalized.
   */
  readonly sessionEnded?: boolean
  /**
   * Whether the wallet was unlinked. Only for a link order that was taken back. False if the order had not added it,
   * and if it is the user's only one.
   */
  readonly walletUnlinked?: boolean
}

/** A ticket that continues an order in another browser. */
export interface HandOver {
  /** Secret, good for one use. */
  readonly ticket: string
  /** Address to open in the other browser. It contains the ticket. */
  readonly handoverUrl: string
  readonly expiresAt: number
}

/** An order's identifier with the phone's token. */
export interface PhoneOrder {
  readonly orderId: string
  /** Secret. */
  readonly challengeToken: string
}

/** A claimed order. */
export interface ClaimedOrder extends PhoneOrder {
  readonly ok: boolean
  readonly status: OrderStatus
}

/** The text that the wallet signs, and the details to show to its user. */
export interface OrderChallenge extends Omit<NonceChallenge, 'nonceId' | 'form'> {
  readonly kind: OrderKind
  readonly status: OrderStatus
  readonly adapterId?: string
  readonly displayTitle?: string
  readonly displaySummary?: string
  readonly payloadHash?: string
  /** Canonical form of what a sign order is about, if the desktop passed it. */
  readonly payload?: string
  /**
   * The same value, with its names in the order in which the desktop wrote them, if that is another one: to be shown.
   */
  readonly payloadAsWritten?: string
  /** Public key of the only wallet that can approve, if the desktop named one. */
  readonly expectedPublicKeyHex?: string
  /** Address of the only wallet that can approve, if the desktop named one. */
  readonly expectedAddress?: string
  /** Address of the wallet that the user is signed in with on the desktop, kind link only. */
  readonly sessionAccount?: string
  /** True if the order is one of the user's inbox: there is no computer beside the phone. Absent otherwise. */
  readonly fromInbox?: boolean
  /** Two digits to compare with those on the desktop; absent for kind link, and with return codes. */
  readonly confirmationCode?: string
  /** Whether the user can let the computer be remembered. */
  readonly canRememberComputer: boolean
  /** While the order is approved: six digits for the user to type on the computer, if finalizing takes them. Secret. */
  readonly returnCode?: string
  /** Time until which the computer can finalize the order. Only while it is approved. */
  readonly finishBy?: number
  /** Number of return codes that can still be tried. Only while it is approved, if finalizing it takes them. */
  readonly triesLeft?: number
  readonly requester: OrderRequester
}

/** The requester, as `previewOrder` answers before an order is claimed. */
export interface OrderPreview extends Omit<OrderRequester, 'ip'> {
  readonly kind: OrderKind
  /** Two digits to compare with those on the desktop; absent with return codes. */
  readonly confirmationCode?: string
  readonly expiresAt: number
}

/** The desktop that started an order, as the server saw it; or as a backend described it ({@link startedWithKey}). */
export interface OrderRequester {
  readonly origin: string
  /** IP address; empty if unknown. */
  readonly ip: string
  /** User agent; empty if unknown. */
  readonly userAgent: string
  /** Whether the desktop and this phone share a network; absent if that is unknown. */
  readonly sameNetwork?: boolean
  /** Whether the application's backend started the order. Otherwise its texts are what the desktop says of itself. */
  readonly startedWithKey: boolean
  /** Name of the start key with which the order was started. Absent if that key has none. */
  readonly startedBy?: string
}

/** An order that waits in a user's inbox. */
export interface InboxOrder {
  readonly orderId: string
  readonly displayTitle?: string
  readonly displaySummary?: string
  /** Name of the start key with which the order was started. Absent if that key has none. */
  readonly startedBy?: string
  readonly createdAt: number
  readonly expiresAt: number
}

/** A wallet's signature with everything that is needed to verify it offline. */
export interface ProofArtifact {
  readonly publicKeyHex: string
  readonly signatureHex: string
  readonly address: string
  /** Exact text that was signed. */
  readonly message: string
  readonly payloadHash?: string
  /** Canonical form (RFC 8785) of what the order was about, if the desktop passed it. */
  readonly payload?: string
  readonly adapterId: string
}

/** Result of an order: a session (kind login), a proof (kind sign), or a wallet of the user (kind link). */
export type FinalizedOrder = OrderState & { readonly redirectTo: string } & (
    | { readonly kind: 'login'; readonly token: string; readonly session: Session }
    | { readonly kind: 'sign'; readonly proofArtifact: ProofArtifact }
    | { readonly kind: 'link'; readonly wallet: UserWallet }
  )
