import { type AuditTrail, noAudit } from '../../base/audit.ts'
import { bearerToken, headerOf, type RequestContext } from '../../base/request.ts'
import { tokenFromBytes } from '../../base/token.ts'
import { given } from '../../shared/defined-fields.ts'
import { CountersignError, refused } from '../../shared/errors.ts'
import { cookieValue, sessionCookieName, setCookie } from '../../shared/header-text.ts'
import type { Store } from '../../store/store.ts'
import type { ProvenIdentity, WalletIdentity } from '../wallet/wallet.ts'
import type {
  CredentialForm,
  CurrentSession,
  HeldWallet,
  Host,
  HostUser,
  IssuedSession,
  OrderGrant,
  OrderSession,
  Session,
} from './host.ts'
import { Membership, type PersonKey, sessionNotListed } from './people.ts'
import { type PastSession, type Sessions, type SessionWallet, sessionIdOf } from './sessions.ts'

/** The users that sign in: those of the store, or an application's (`resolveLogin`). */
export interface SignInUsers {
  /**
   * Finds or makes the user of a proven wallet. Rejects with LOGIN_REFUSED, before anything is written, if the wallet
   * is blocked or the user may not sign in.
   */
  resolve(identity: ProvenIdentity): Promise<HostUser>

  /**
   * Rejects with LOGIN_REFUSED if only people of the people file may sign in, and a wallet is neither listed nor one of
   * a listed user's. Changes nothing.
   */
  requireListed(identity: ProvenIdentity): Promise<void>

  /** What a user and the wallet that signs in are looked up by. LOGIN_REFUSED if that person may not sign in. */
  admit(userId: string, identity: ProvenIdentity): Promise<PersonKey>

  /**
   * Why a user must not have a session by a wallet; `undefined` if the user may. Asked after a session of the wallet is
   * stored: a call that unlinks, blocks or moves the wallet, or deletes the user, either finds that session, or has
   * changed before what is read here.
   */
  refusalOf(user: HostUser, wallet: WalletIdentity): Promise<CountersignError | undefined>

  /** Whether a wallet still belongs to a user, as far as that is known, and no operator has blocked it. */
  holds(userId: string, wallet: SessionWallet): Promise<boolean>

  /** The wallets of a user, oldest first. Empty with `resolveLogin`, and for a user who was deleted. */
  walletsOf(userId: string): Promise<HeldWallet[]>
}

/** Parts of the standalone host. */
export interface StandaloneParts {
  readonly store: Pick<Store, 'now'>
  readonly users: Pick<SignInUsers, 'resolve' | 'admit' | 'refusalOf'>
  readonly sessions: Sessions
  readonly origins: TrustedOrigins
  /** Default: everyone may sign in. */
  readonly membership?: Membership
  /** Records sessions that end by sign-out. Default: nothing is recorded. */
  readonly audit?: AuditTrail | undefined
  /**
   * Whether people reach the service by https. The cookie is then Secure and has the prefix `__Host-` (RFC 6265bis).
   */
  readonly secureCookie: () => boolean
}

/** The rule for origins that the host needs: a call that a cookie authenticates has to come from a trusted one. */
interface TrustedOrigins {
  /** Throws ORIGIN_NOT_TRUSTED unless the request comes from a trusted origin. */
  requireTrusted(request: RequestContext): void
}

/** Keeps sessions in the store, for applications without an authentication framework of their own. */
export class StandaloneHost implements Host {
  readonly #parts: StandaloneParts
  readonly #sessions: Sessions
  readonly #origins: TrustedOrigins
  readonly #audit: AuditTrail
  readonly #membership: Membership

  constructor(parts: StandaloneParts) {
    const { sessions, origins, membership = new Membership(), audit = noAudit } = parts
    this.#parts = parts
    this.#sessions = sessions
    this.#origins = origins
    this.#membership = membership
    this.#audit = audit
  }

  async resolveUser(identity: ProvenIdentity): Promise<HostUser> {
    return await this.#parts.users.resolve(identity)
  }

  /** Whether the user of a session may be signed in, by the list of people. */
  admits(session: PastSession): boolean {
    return this.#membership.admits(session)
  }

  /** A session if it counts: not while its user may not sign in. */
  #counting(session: Session | undefined): Session | undefined {
    return session !== undefined && this.admits(session) ? session : undefined
  }

  /** The live session of a credential, extended if due; `counts` is false while its user may not sign in. */
  async #use(text: string, form: CredentialForm) {
    const used = await this.#sessions.use(text, form, (session) => this.admits(session))
    return used && { ...used, counts: this.admits(used.session) }
  }

  async createSession(
    user: HostUser,
    identity: ProvenIdentity,
    request: RequestContext,
    order?: OrderGrant,
  ): Promise<IssuedSession> {
    const { users } = this.#parts
    const { firstWallet, ...named } = await users.admit(user.id, identity)
    const { token, cookie, session } = await this.#sessions.create(
      {
        ...named,
        subject: identity.subject,
        publicKeyHex: identity.publicKeyHex,
        ip: request.ip ?? '',
        userAgent: request.userAgent,
        ...given({ firstWallet, orderId: order?.orderId, computerId: order?.computerId }),
      },
      order === undefined ? undefined : secretPartFor(order),
      () => users.refusalOf(user, identity),
    )
    return { token, session, cookies: [this.#cookie(cookie, this.#sessions.lastEndOf(session))] }
  }

  orderSessionId(order: OrderGrant): string {
    return sessionIdOf(secretPartFor(order))
  }

  async endOrderSession({ userId, sessionId }: OrderSession): Promise<boolean> {
    return await this.#sessions.takeBack(userId, sessionId)
  }

  async currentSession(request: RequestContext): Promise<CurrentSession> {
    const credential = this.#credential(request)
    if (credential === undefined) {
      throw refused('SESSION_REQUIRED')
    }
    if (credential.form === 'cookie') this.#origins.requireTrusted(request)
    const used = await this.#use(credential.text, credential.form)
    if (used === undefined) throw refused('SESSION_INVALID')
    if (!used.counts) throw sessionNotListed()
    // The cookie lasts as long as a session can: when it ends is decided here alone.
    return { session: used.session, cookies: [] }
  }

  /**
   * The session of a request that a proxy asks about before it passes it on, by its bearer token or, without one, by
   * its cookie. Changes nothing, and extends nothing: see {@link extendSession}. `reads` is whether the proxy was asked
   * for a GET or HEAD.
   *
   * A cookie counts if the Origin header names a trusted origin. Without that header it counts for GET and HEAD only:
   * browsers send it with everything else. Rejects with ORIGIN_NOT_TRUSTED otherwise, with SESSION_REQUIRED if the
   * request has neither token nor cookie, and with SESSION_INVALID if the session is unknown, expired or revoked.
   */
  async peekSession(request: RequestContext, reads: boolean): Promise<Session> {
    const credential = this.#credential(request)
    if (credential === undefined) throw refused('SESSION_REQUIRED')
    if (credential.form === 'cookie') this.#requireProxiedOrigin(request, reads)
    const session = await this.#sessions.find(credential.text, credential.form)
    if (session === undefined) throw refused('SESSION_INVALID')
    if (!this.admits(session)) throw sessionNotListed()
    return session
  }

  /**
   * The live session of a request's cookie, extended if due, or `undefined`. For addresses to which applications send
   * their users' browsers: a bearer token does not count, and no origin is asked, because a navigation has none.
   */
  async browserSession(request: RequestContext): Promise<Session | undefined> {
    const cookie = this.#cookieIn(request)
    const used = cookie === undefined ? undefined : await this.#use(cookie, 'cookie')
    return used?.counts === true ? used.session : undefined
  }

  /**
   * Extends a session, if due and if its user may sign in, because an application or a proxy has just used it for its
   * user, without the answer that a browser gets.
   */
  async extendSession(session: Session): Promise<void> {
    if (this.admits(session)) await this.#sessions.extend(session)
  }

  /** The live session with this id, or `undefined`. Changes nothing. */
  async findSession(id: string): Promise<Session | undefined> {
    return this.#counting(await this.#sessions.read(id))
  }

  /** Whether the session with this id lives, also while its user may not sign in. */
  async hasSession(id: string): Promise<boolean> {
    return (await this.#sessions.read(id)) !== undefined
  }

  /** Ends a session that an application's sign-out ends. */
  async endSession(userId: string, sessionId: string): Promise<void> {
    if (!(await this.#sessions.end(userId, sessionId))) return
    this.#audit.record({ type: 'session.ended', by: 'sign-out', userId, sessionId }, {})
  }

  /** Set-Cookie value that clears the session's cookie. */
  get clearedCookie(): string {
    return this.#cookie('', 0)
  }

  async signOut(request: RequestContext): Promise<readonly string[]> {
    const credential = this.#credential(request)
    if (credential === undefined) return []
    if (credential.form === 'cookie') this.#origins.requireTrusted(request)
    const session = await this.#sessions.find(credential.text, credential.form)
    if (session !== undefined && (await this.#sessions.end(session.userId, session.id))) {
      const ended = { userId: session.userId, sessionId: session.id }
      this.#audit.record({ type: 'session.ended', by: 'sign-out', ...ended }, request)
    }
    // A bearer token names the session to end. The browser's cookie, which may belong to another session, is left
    // alone.
    return credential.form === 'cookie' || this.#hasCookieOf(credential.text, request) ? [this.#cookie('', 0)] : []
  }

  async listSessions(userId: string): Promise<Session[]> {
    return await this.#sessions.list(userId)
  }

  async revokeSession(userId: string, sessionId: string): Promise<boolean> {
    return await this.#sessions.revoke(userId, sessionId)
  }

  async introspect(token: string, form: CredentialForm = 'token'): Promise<Session | undefined> {
    return this.#counting(await this.#sessions.find(token, form))
  }

  #requireProxiedOrigin(request: RequestContext, reads: boolean): void {
    // The host that the request was sent to says nothing here: it is the proxy's own way to this service.
    if (headerOf(request, 'origin') !== undefined) this.#origins.requireTrusted(request)
    else if (!reads) throw proxiedOriginRequired()
  }

  #credential(request: RequestContext): { text: string; form: CredentialForm } | undefined {
    const bearer = bearerToken(request)
    if (bearer !== undefined) return { text: bearer, form: 'token' }
    const cookie = this.#cookieIn(request)
    return cookie === undefined ? undefined : { text: cookie, form: 'cookie' }
  }

  /** Whether a request's cookie and a token belong to the same session. */
  #hasCookieOf(token: string, request: RequestContext): boolean {
    const cookie = this.#cookieIn(request)
    const sessionId = cookie === undefined ? undefined : this.#sessions.idOf(cookie, 'cookie')
    return sessionId !== undefined && sessionId === this.#sessions.idOf(token, 'token')
  }

  #cookieIn(request: RequestContext): string | undefined {
    return cookieValue(headerOf(request, 'cookie'), sessionCookieName(this.#parts.secureCookie()))
  }

  /** The Set-Cookie header for a value; an empty value clears the cookie. */
  #cookie(value: string, expiresAt: number): string {
    const maxAge = Math.max(0, Math.ceil((expiresAt - this.#parts.store.now()) / 1000))
    return setCookie(sessionCookieName(this.#parts.secureCookie()), value, maxAge)
  }
}

/** The text before the dot in the token of an order's session: the same at each attempt to finalize the order. */
function secretPartFor({ seed }: OrderGrant): string {
  return tokenFromBytes('session', seed)
}

/** The refusal of a cookie with which another page could have made a browser change something. */
function proxiedOriginRequired(): CountersignError {
  return new CountersignError(
    'ORIGIN_NOT_TRUSTED',
    'With the session cookie and without an Origin header, only GET and HEAD pass, and the proxy has to say so ' +
      'in X-Forwarded-Method or X-Original-Method; send the session token as Authorization: Bearer, or correct ' +
      'the headers that the proxy sends',
    { metadata: { origin: '', origin_source: 'Origin header' } },
  )
}
