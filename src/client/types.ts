/**
 * The results of the client's calls: plain objects in the shape of REST's JSON. Enum values are in lower case, times are epoch
 * milliseconds on the server's clock, and optional fields are absent if they have no value.
 */

/** Purpose of an order: a session or a signature. */
export type OrderKind = 'login' | 'sign'

/** State of an order. The last four are terminal. */
export type OrderStatus =
  | 'created'
  | 'claimed'
  | 'waiting_user'
  | 'approved'
  | 'finalized'
  | 'rejected'
  | 'cancelled'
  | 'expired'

/** A signed-in wallet. */
export interface Session {
  /** Identifier. Not secret: it grants nothing. */
  readonly id: string
  readonly userId: string
  /** Wallet adapter. It is part of the identity, like the key. */
  readonly adapterId: string
  /** 32 bytes, lower-case hex. */
  readonly publicKeyHex: string
  /** Address of the key, in its grouped form. */
  readonly address: string
  readonly createdAt: number
  readonly expiresAt: number
  /** Order that made the session, if one did. */
  readonly orderId?: string
  /** IP address of the client; empty if unknown. */
  readonly ip: string
  /** User agent of the client; empty if unknown. */
  readonly userAgent: string
  /** Whether this is the caller's own session. */
  readonly current: boolean
}

/** A text for the wallet to sign, valid for one sign-in. */
export interface NonceChallenge {
  readonly action: string
  readonly challengeId: string
  readonly nonceId: string
  readonly nonce: string
  readonly origin: string
  readonly issuedAt: number
  readonly expiresAt: number
  readonly message: string
}

/** Result of a sign-in. */
export interface SignInResult {
  readonly ok: boolean
  /** Session token, for `Authorization: Bearer`. Secret. */
  readonly token: string
  readonly session: Session
}

/** Options of an order. */
export interface StartOrderOptions {
  readonly kind: OrderKind
  /** Wallet adapter that the phone must use. Default: any that the service is configured with. */
  readonly adapterId?: string
  /** Path on the desktop's own origin to go to after finalizing. Default "/". */
  readonly returnTo?: string
  /** Title for the phone's user, at most 120 characters; the wallet signs it as part of the text. */
  readonly displayTitle?: string
  /** Description for the phone's user, at most 500 characters; the wallet signs it as part of the text. */
  readonly displaySummary?: string
  /** Hash of the content to be signed; the wallet signs it as part of the text. */
  readonly payloadHash?: string
}

/** An order's identifier with the desktop's token. */
export interface DesktopOrder {
  readonly orderId: string
  /** Secret. */
  readonly desktopToken: string
}

/** A started order. */
export interface StartedOrder extends DesktopOrder {
  /** Address for the QR code. Whoever has it can claim the order. */
  readonly claimUrl: string
  /** Secret. {@link claimUrl} contains it. */
  readonly claimToken: string
  readonly kind: OrderKind
  readonly status: OrderStatus
  readonly expiresAt: number
  /** Digits that the desktop shows: two to compare, or six that the phone's user has to enter. */
  readonly confirmationCode: string
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
}

/** An order's identifier and status. */
export interface OrderState {
  readonly ok: boolean
  readonly orderId: string
  readonly status: OrderStatus
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
export interface OrderChallenge {
  readonly action: string
  readonly challengeId: string
  readonly nonce: string
  readonly origin: string
  readonly issuedAt: number
  readonly expiresAt: number
  /** Exact text to sign. */
  readonly message: string
  readonly kind: OrderKind
  readonly status: OrderStatus
  readonly adapterId?: string
  readonly displayTitle?: string
  readonly displaySummary?: string
  readonly payloadHash?: string
  /** Digits to compare with those on the desktop; absent if the user has to enter them. */
  readonly confirmationCode?: string
  /** Whether the user has to enter the desktop's digits to approve. */
  readonly confirmationCodeRequired: boolean
  readonly requester: OrderRequester
}

/** The desktop that started an order, as the server saw it. */
export interface OrderRequester {
  readonly origin: string
  /** IP address; empty if unknown. */
  readonly ip: string
  /** User agent; empty if unknown. */
  readonly userAgent: string
}

/** A wallet's signature with everything that is needed to verify it offline. */
export interface ProofArtifact {
  readonly publicKeyHex: string
  readonly signatureHex: string
  readonly address: string
  /** Exact text that was signed. */
  readonly message: string
  readonly payloadHash?: string
  readonly adapterId: string
}

/** Result of an order: a session (kind login) or a proof (kind sign). */
export type FinalizedOrder = OrderState & { readonly redirectTo: string } & (
    | { readonly kind: 'login'; readonly token: string; readonly session: Session }
    | { readonly kind: 'sign'; readonly proofArtifact: ProofArtifact }
  )
