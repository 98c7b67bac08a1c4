/**
 * The results of the client's calls: plain objects in the shape of REST's JSON. Enum values are in lower case, times
 * are epoch milliseconds on the server's clock, and optional fields are absent if they have no value.
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
  /** Lower-case hex; empty if the adapter knows the wallet by its address only. */
  readonly publicKeyHex: string
  /** Address in its canonical form; of a contract wallet, its CAIP-10 identifier. */
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

/** A wallet that the user signs in with. */
export interface UserWallet {
  /** Wallet adapter. */
  readonly adapterId: string
  /** Address in its canonical form; for a contract wallet, its CAIP-10 identifier. */
  readonly address: string
  /** Lower-case hex; empty if the adapter knows the wallet by its address only. */
  readonly publicKeyHex: string
  /** Time at which the wallet became the user's. */
  readonly linkedAt: number
  /** Whether the caller signed in with it. */
  readonly current: boolean
}

/** The account that is going to sign. The texts of ethereum and solana name it. */
export interface SigningAccount {
  /** Wallet adapter. */
  readonly adapterId: string
  /** Address. For solana it may be absent: the wallet fills it in. */
  readonly address?: string
  /** Chain as the sign-in form writes it: "1" for ethereum, "mainnet" for solana. */
  readonly chainId?: string
}

/** What a nonce is asked for with. The account is absent for wallets whose texts do not name it. */
export interface NonceRequest extends Partial<SigningAccount> {
  /** Application name that the client expects. */
  readonly appName?: string
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
  /**
   * Content to be signed, kind sign only: I-JSON text (RFC 7493) of at most 8 KiB, which the phone's user reads as a
   * table. The service computes the hash of its canonical form (RFC 8785). Not together with {@link payloadHash}.
   */
  readonly payload?: string
  /** Public key of the only wallet that can approve, hex, kind sign only. Needs {@link adapterId}. */
  readonly expectedPublicKeyHex?: string
  /** Address of the only wallet that can approve, kind sign only. Needs {@link adapterId}. */
  readonly expectedAddress?: string
  /** Public key of this computer: see `computerKey` of the client, which adds it by itself. */
  readonly computerKey?: string
  /** For backends with a start key: the desktop that the order is for. */
  readonly requester?: StartOrderRequester
}

/** The desktop that a backend starts an order for. */
export interface StartOrderRequester {
  /** Origin of the page that shows the order. It must be trusted. */
  readonly origin: string
  /** IP address. Default: unknown. */
  readonly ip?: string
  /** User agent. Default: unknown. */
  readonly userAgent?: string
}

/** An order's identifier with the desktop's token. */
export interface DesktopOrder {
  readonly orderId: string
  /** Secret. */
  readonly desktopToken: string
}

/** A started order. */
export interface StartedOrder extends DesktopOrder {
  /** Address for the QR code. It is enough to claim the order. */
  readonly claimUrl: string
  /** Secret. {@link claimUrl} contains it. */
  readonly claimToken: string
  readonly kind: OrderKind
  readonly status: OrderStatus
  readonly expiresAt: number
  /** Two digits that the desktop shows, to be compared with the phone's. Empty if the service uses return codes. */
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
  /** Whether finalizing takes the return code that the phone shows. False in all events but `approved`. */
  readonly returnCodeRequired: boolean
  /** Time until which the order can be finalized. Only while it is approved. */
  readonly finishBy?: number
  /** Number of return codes that can still be tried. Only while an order that takes one is approved. */
  readonly triesLeft?: number
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
  /** Canonical form of what a sign order is about, if the desktop passed it. */
  readonly payload?: string
  /** The same value, with its names in the order in which the desktop wrote them, if that is another one: to be shown. */
  readonly payloadAsWritten?: string
  /** Public key of the only wallet that can approve, if the desktop named one. */
  readonly expectedPublicKeyHex?: string
  /** Address of the only wallet that can approve, if the desktop named one. */
  readonly expectedAddress?: string
  /** Two digits to compare with those on the desktop; absent with return codes. */
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

/** Who asks, as `previewOrder` tells it before an order is claimed. */
export interface OrderPreview {
  readonly kind: OrderKind
  readonly origin: string
  /** User agent; empty if unknown. */
  readonly userAgent: string
  /** Whether the desktop and this phone share a network; absent if the server cannot tell. */
  readonly sameNetwork?: boolean
  /** As in {@link OrderRequester}. */
  readonly startedWithKey: boolean
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
  /** Whether the desktop and this phone share a network; absent if the server cannot tell. */
  readonly sameNetwork?: boolean
  /** Whether the application's backend started the order. Otherwise its texts are what the desktop says of itself. */
  readonly startedWithKey: boolean
}

/** A computer whose orders need no return code. */
export interface KnownComputer {
  /** Identifier. Not secret. */
  readonly id: string
  readonly createdAt: number
  readonly lastUsedAt: number
  /** IP address at its last order; empty if unknown. */
  readonly ip: string
  /** User agent at its last order; empty if unknown. */
  readonly userAgent: string
  /** Whether the caller's own session came from it. */
  readonly current: boolean
}

/** An application that the user has connected by OpenID Connect. Times are epoch milliseconds. */
export interface ConnectedApp {
  readonly clientId: string
  /** Name, as the service's operator wrote it. */
  readonly name: string
  /** Host that it is reached at; empty for an application on the user's device. */
  readonly host: string
  /** What the user has allowed. */
  readonly scopes: readonly string[]
  readonly connectedAt: number
  /** To the hour. */
  readonly lastUsedAt: number
}

/** A token for a backend that verifies it without asking the service. */
export interface AccessToken {
  /** For `Authorization: Bearer` at the backend. Secret. */
  readonly accessToken: string
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

/** Result of an order: a session (kind login) or a proof (kind sign). */
export type FinalizedOrder = OrderState & { readonly redirectTo: string } & (
    | { readonly kind: 'login'; readonly token: string; readonly session: Session }
    | { readonly kind: 'sign'; readonly proofArtifact: ProofArtifact }
  )
