import type { RequestContext } from '../../base/request.ts'
import type { BaseSession } from '../../shared/session.ts'
import type { ProvenIdentity } from '../wallet/wallet.ts'

/** A session as its host keeps it. */
export interface Session extends BaseSession {
  /**
   * Subject of the identity that signed in. Not shown to users. A host that does not keep it leaves it out: the public
   * key then counts as the subject or, without one, the address in lower case.
   */
  readonly subject?: string
  /** Id of the known computer that finalized its order, if one did. Not shown to users. */
  readonly computerId?: string
  /**
   * The wallet that the user's id follows from, as `{adapter_id}:{address}`, if another one signed in, unless it
   * had been moved to another user before. Not shown to users.
   */
  readonly firstWallet?: string
}

/**
 * Form of a session's credential: the token of a header or a message, or the value of the cookie. In the built-in
 * host each counts only where it belongs.
 */
export type CredentialForm = 'token' | 'cookie'

/** A new session and what the caller needs to use it. */
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
  /** Set-Cookie header values. Empty if the cookie lasts as long as a session can. */
  readonly cookies: readonly string[]
}

/** The user that sessions are made for. */
export interface HostUser {
  readonly id: string
}

/** The order that a session is made for. */
export interface OrderGrant {
  readonly orderId: string
  /**
   * 32 secret bytes that are the same at each attempt to finalize this order. The session's token is derived from them.
   */
  readonly seed: Uint8Array
  /** Id of the known computer that finalizes the order, if it is one. The session keeps it. */
  readonly computerId?: string | undefined
}

/** The session of a login order, which may not be made yet. */
export interface OrderSession {
  readonly orderId: string
  readonly userId: string
  /** What {@link Host.orderSessionId} returned. */
  readonly sessionId: string
}

/**
 * Makes and keeps users and sessions: Countersign's own store (`StandaloneHost`), or an authentication framework. It
 * gets identities that are proven, and returns its own users, tokens and cookies.
 *
 * If it fails because something it needs does not answer, it rejects with a `CountersignError` of reason
 * STORE_UNAVAILABLE, so that an outage does not look like a refusal. A `CountersignError` reaches the caller as it is.
 *
 * The service gives a host that it was passed five seconds for each method, and copies what it answers. If the host
 * rejects with any other error, takes longer, or answers with something that its type does not allow, the call fails
 * with HOST_UNAVAILABLE. Identifiers are text of 1 to 200 characters. Set-Cookie values have no line breaks or control
 * characters. A token has printable ASCII characters only, and no spaces.
 */
export interface Host {
  /**
   * Finds or makes the user of an identity. Rejects with LOGIN_REFUSED if the application does not allow it to sign in;
   * then nothing is created.
   */
  resolveUser(identity: ProvenIdentity, request: RequestContext): Promise<HostUser>

  /**
   * Creates a session. With `order`, a repeated call with the same seed, on any instance, returns the existing session
   * and does not create a second one; if that session has ended in the meantime, it rejects with ORDER_FINALIZED.
   */
  createSession(
    user: HostUser,
    identity: ProvenIdentity,
    request: RequestContext,
    order?: OrderGrant,
  ): Promise<IssuedSession>

  /**
   * The name by which {@link endOrderSession} finds the session that {@link createSession} makes for an order:
   * 1 to 200 characters, the same at each call with the same seed, on any instance. It is asked for before the session
   * is made, and kept with the order, so it must not be secret. A host that finds sessions by their order returns the
   * order's id.
   */
  orderSessionId(order: OrderGrant): string | Promise<string>

  /**
   * Ends the session of an order that is taken back, whether it exists yet or not: for the next ten minutes, longer
   * than any retry of a finalize, {@link createSession} rejects for the order with ORDER_FINALIZED, on any instance,
   * also if it had begun before. A call of {@link currentSession} in flight must not bring the session back either.
   * Resolves with true if the session was live; with false if it was never made, has expired, or was ended in another
   * way before. A repeated call within ten minutes resolves with the same. Ends no other session of the user.
   */
  endOrderSession(session: OrderSession): Promise<boolean>

  /**
   * The session of the request's bearer token or, without one, of its cookie. Extended if due. Rejects with
   * SESSION_REQUIRED if the request has neither, with SESSION_INVALID if the session is unknown, expired or revoked,
   * and with ORIGIN_NOT_TRUSTED if a cookie comes from an origin that is not trusted.
   */
  currentSession(request: RequestContext): Promise<CurrentSession>

  /** Ends the request's session, if it has one, and no other. Returns the Set-Cookie values that clear the cookie. */
  signOut(request: RequestContext): Promise<readonly string[]>

  /** The live sessions of a user, newest first. */
  listSessions(userId: string, request: RequestContext): Promise<Session[]>

  /** Ends a session of the user by its id. Resolves with false if the user has no such session. */
  revokeSession(userId: string, sessionId: string, request: RequestContext): Promise<boolean>

  /**
   * The session of a token, or `undefined` if the token is not valid. Does not extend the session. `form` is `cookie`
   * if a backend read the text from the cookie; a host whose cookie holds the token can ignore it.
   */
  introspect(token: string, form?: CredentialForm): Promise<Session | undefined>
}

/** Users who can have several wallets. `Linked` is what {@link link} resolves with. */
export interface LinkingUsers<Linked = void> {
  /**
   * Refuses a session that is too old for changing the user's wallets, with SESSION_NOT_FRESH. Sessions that an order
   * made are refused before this is asked.
   */
  requireFresh(session: Session): void

  /**
   * Adds a proven wallet to the user of a session, who can sign in with it from then on. Rejects with WALLET_TAKEN if
   * the wallet belongs to another user; of concurrent calls for two users, at most one succeeds. Does nothing if the
   * wallet is the user's already.
   */
  link(session: Session, identity: ProvenIdentity): Promise<Linked>
}

/** A wallet of a user. */
export interface HeldWallet extends ProvenIdentity {
  /** Time at which it became the user's, epoch milliseconds. */
  readonly linkedAt: number
}
