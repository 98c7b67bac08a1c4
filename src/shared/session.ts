/**
 * Signing in, sessions, and what users have: plain objects in the shape of REST's JSON. Times are epoch milliseconds on
 * the server's clock, and optional fields are absent if they have no value.
 */

/**
 * A signed-in wallet. Says who calls; what the user may do is for the application to decide. Times are epoch
 * milliseconds.
 */
export interface BaseSession {
  /** Identifier. Not secret: it grants nothing. */
  readonly id: string
  readonly userId: string
  /** Wallet adapter. It is part of the identity, like the address. */
  readonly adapterId: string
  /** Lower-case hex; empty if the adapter knows the wallet by its address only. */
  readonly publicKeyHex: string
  /** Address in its canonical form; of a contract wallet, its CAIP-10 identifier. */
  readonly address: string
  readonly createdAt: number
  readonly expiresAt: number
  /** Order that made the session, if one did. */
  readonly orderId?: string
  /** IP address of the client that signed in; empty if unknown. */
  readonly ip: string
  /** User agent of the client that signed in; empty if unknown. */
  readonly userAgent: string
}

/** A session as its user sees it. */
export interface Session extends BaseSession {
  /** Whether this is the caller's own session. */
  readonly current: boolean
}

/**
 * Whether a session may end another one of its user. A session that an order made reaches only such sessions: an
 * attacker who relays an order has one of the victim's, and must not end what the victim signed in to directly. Every
 * known computer was remembered by an order, so every session reaches it.
 */
export function reaches(own: Pick<BaseSession, 'orderId'>, other: Pick<BaseSession, 'orderId'>): boolean {
  return own.orderId === undefined || other.orderId !== undefined
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

/** What a nonce is asked for with. A proof must be of the account that is named, if one is. */
export interface NonceRequest extends Partial<SigningAccount> {
  /** Application name that the client expects. */
  readonly appName?: string
  /** Whether the answer has the fields of the sign-in form. For ethereum and solana; the account may be absent then. */
  readonly form?: boolean
}

/** What a wallet signs to sign in (EIP-4361, Sign-In With Solana), field by field, each as the text has it. */
export interface SignInForm {
  /** Host of the calling page, with its port if that is not the default. */
  readonly domain: string
  /** Origin of the calling page. */
  readonly uri: string
  /** Version of the form: "1". */
  readonly version: string
  /** What the signature is for, one sentence. */
  readonly statement: string
  /** Nonce of the form, 64 hex digits. */
  readonly nonce: string
  /** ISO 8601 in UTC with milliseconds. */
  readonly issuedAt: string
  /** ISO 8601 in UTC with milliseconds. */
  readonly expirationTime: string
  /** URIs, in this order. */
  readonly resources: readonly string[]
  /** Address that the request named, for ethereum with the checksum of EIP-55. */
  readonly address?: string
  /** Chain that the request named. */
  readonly chainId?: string
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
  /** Empty if `form` was asked for without a whole account. */
  readonly message: string
  /** Present if it was asked for. */
  readonly form?: SignInForm
}

/** Result of a sign-in. */
export interface SignInResult {
  readonly ok: boolean
  /** Session token, for `Authorization: Bearer`. Secret. */
  readonly token: string
  readonly session: Session
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
  /** Host that it is reached at; empty for an application on the user's device, and one that is no longer a client. */
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
