/**
 * What the client hands out: plain objects in the shape of REST's JSON. Enum values are in lower case, times are epoch
 * milliseconds on the server's clock, and optional fields are absent where there is nothing to say.
 */

/** What an order is for. */
export type OrderKind = 'login' | 'sign'

/** The state of an order. The last four are terminal. */
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
  /** Identifier; grants nothing. */
  readonly id: string
  readonly userId: string
  /** The wallet adapter; a part of the identity, like the key. */
  readonly adapterId: string
  /** 32 bytes, lower-case hex. */
  readonly publicKeyHex: string
  /** Grouped form. */
  readonly address: string
  readonly createdAt: number
  readonly expiresAt: number
  /** The order that made the session, when one did. */
  readonly orderId?: string
  /** Empty when unknown. */
  readonly ip: string
  /** Empty when unknown. */
  readonly userAgent: string
  /** Whether this is the session that asked. */
  readonly current: boolean
}

/** A text for the wallet to sign, good for one sign-in. */
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

/** What came of a sign-in. */
export interface SignInResult {
  readonly ok: boolean
  /** The session token, for `Authorization: Bearer`. Secret. */
  readonly token: string
  readonly session: Session
}

/** What a desktop asks a phone for. */
export interface StartOrderOptions {
  readonly kind: OrderKind
  /** The wallet adapter that the phone has to use. Without it, any configured one will do. */
  readonly adapterId?: string
  /** Where the desktop goes after finalizing: a path on its own origin. Default "/". */
  readonly returnTo?: string
  /** What the phone's user is asked, at most 120 characters; a line of what the wallet signs. */
  readonly displayTitle?: string
  /** The same at length, at most 500 characters; a line of what the wallet signs. */
  readonly displaySummary?: string
  /** Hash of what a sign order is about; a line of what the wallet signs. */
  readonly payloadHash?: string
}

/** Names an order, with the desktop's token. */
export interface DesktopOrder {
  readonly orderId: string
  /** Secret. */
  readonly desktopToken: string
}

/** A new order. */
export interface StartedOrder extends DesktopOrder {
  /** What the QR code shows. Whoever has it can claim the order. */
  readonly claimUrl: string
  /** Secret; a part of {@link claimUrl}. */
  readonly claimToken: string
  readonly kind: OrderKind
  readonly status: OrderStatus
  readonly expiresAt: number
  /** Digits for the desktop to show. */
  readonly confirmationCode: string
}

/** A transition of a watched order. */
export interface OrderEvent {
  /** Number of the transition, from 1. */
  readonly sequence: number
  readonly status: OrderStatus
  readonly kind: OrderKind
  /** Time of the transition. */
  readonly at: number
  /** Where the desktop goes after finalizing: of approved and finalized orders. */
  readonly redirectTo?: string
}

/** An order's identifier and where the order stands. */
export interface OrderState {
  readonly ok: boolean
  readonly orderId: string
  readonly status: OrderStatus
}

/** Names an order, with the phone's token. */
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

/** What the wallet signs and what its user is to see. */
export interface OrderChallenge {
  readonly action: string
  readonly challengeId: string
  readonly nonce: string
  readonly origin: string
  readonly issuedAt: number
  readonly expiresAt: number
  /** The text to be signed, to the letter. */
  readonly message: string
  readonly kind: OrderKind
  readonly status: OrderStatus
  readonly adapterId?: string
  readonly displayTitle?: string
  readonly displaySummary?: string
  readonly payloadHash?: string
  /** Digits to compare with those on the desktop; absent where the user has to enter them. */
  readonly confirmationCode?: string
  readonly confirmationCodeRequired: boolean
  /** The desktop, as the server saw it; ip and userAgent are empty when unknown. */
  readonly requester: { readonly origin: string; readonly ip: string; readonly userAgent: string }
}

/** A wallet's signature with all that is needed to check it offline. */
export interface ProofArtifact {
  readonly publicKeyHex: string
  readonly signatureHex: string
  readonly address: string
  /** The text that was signed, to the letter. */
  readonly message: string
  readonly payloadHash?: string
  readonly adapterId: string
}

/** What came of an order: a session (login) or a proof (sign). */
export type FinalizedOrder = OrderState & { readonly redirectTo: string } & (
    | { readonly kind: 'login'; readonly token: string; readonly session: Session }
    | { readonly kind: 'sign'; readonly proofArtifact: ProofArtifact }
  )
