import type { RequestContext } from '../request.ts'

/**
 * Who the wallet proved to be: a key under an adapter's rules. The same key under another adapter is another identity.
 */
export interface ProvenIdentity {
  readonly adapterId: string
  /** 32 bytes, lower-case hex. */
  readonly publicKeyHex: string
  /** Canonical, grouped form. */
  readonly address: string
}

/** A signed-in wallet. Times are epoch milliseconds. */
export interface Session {
  /** Not secret: it grants nothing. */
  readonly id: string
  readonly userId: string
  readonly adapterId: string
  readonly publicKeyHex: string
  readonly address: string
  readonly createdAt: number
  readonly expiresAt: number
  /** The order that made this session, when one did. */
  readonly orderId?: string
  /** Empty when unknown. */
  readonly ip: string
  /** Empty when the client sent none. */
  readonly userAgent: string
}

/** A session and what the caller needs to use it. */
export interface IssuedSession {
  /** The bearer token. Secret. */
  readonly token: string
  readonly session: Session
  /** Set-Cookie header values. */
  readonly cookies: readonly string[]
}

/** The caller's own session. */
export interface CurrentSession {
  readonly session: Session
  /** Set-Cookie header values: not empty when the session's life was extended. */
  readonly cookies: readonly string[]
}

/** The user that sessions are made for. */
export interface HostUser {
  readonly id: string
}

/** The order that asks for a session. */
export interface OrderGrant {
  readonly orderId: string
  /** 32 secret bytes, the same at every attempt to finalize this order: the session's token is derived from them. */
  readonly seed: Uint8Array
}

/**
 * Who makes and keeps the sessions: Countersign itself (standalone), or an authentication framework it is plugged into. The
 * domain hands the host a proven identity; the host hands back its own artifacts.
 */
export interface Host {
  /**
   * Finds or makes the user of an identity. Rejects with LOGIN_REFUSED when the application does not let it sign in; then
   * nothing is created.
   */
  resolveUser(identity: ProvenIdentity, request: RequestContext): Promise<HostUser>

  /**
   * Creates a session. With `order`, a repeated call with the same seed returns the session that is there and creates no
   * second one, on any instance; when that session was ended meanwhile, it rejects with ORDER_FINALIZED.
   */
  createSession(
    user: HostUser,
    identity: ProvenIdentity,
    request: RequestContext,
    order?: OrderGrant,
  ): Promise<IssuedSession>

  /**
   * The session of the request's bearer token or cookie, its life extended when due. Rejects with SESSION_REQUIRED when the
   * request has neither, with SESSION_INVALID when what it has is no longer good, with ORIGIN_NOT_TRUSTED when a cookie came
   * from an origin that is not trusted.
   */
  currentSession(request: RequestContext): Promise<CurrentSession>

  /** Ends the request's session, if it has one, and no other. Returns the Set-Cookie values that clear the cookie. */
  signOut(request: RequestContext): Promise<readonly string[]>

  /** The live sessions of a user, newest first. */
  listSessions(userId: string, request: RequestContext): Promise<Session[]>

  /** Ends a session of the user by its id; false when the user has none such. */
  revokeSession(userId: string, sessionId: string, request: RequestContext): Promise<boolean>

  /** The session of a token, or `undefined` when the token is not good. Extends nothing. */
  introspect(token: string): Promise<Session | undefined>
}
