import { type AuditTrail, noAudit } from '../../base/audit.ts'
import { bearerToken, headerOf, type RequestContext } from '../../base/request.ts'
import { tokenFromBytes } from '../../base/token.ts'
import { type CountersignError, refused } from '../../shared/errors.ts'
import { given } from '../../shared/given.ts'
import { cookieValue } from '../../shared/header-text.ts'
import { sessionCookieName } from '../../shared/session-cookie.ts'
import type { Store } from '../../store/store.ts'
import { type ProvenIdentity, type WalletIdentity, walletOf } from '../wallet/wallet.ts'
import { askResolveLogin, type ResolveLogin } from './application.ts'
import type {
  CredentialForm,
  CurrentSession,
  HeldWallet,
  HostUser,
  IssuedSession,
  OrderGrant,
  OrderSession,
  Session,
  WalletHost,
} from './host.ts'
import { Membership, type PersonKey } from './people.ts'
import { notListed, proxiedOriginRequired, sessionNotListed } from './refusals.ts'
import { isOfWallet, type PastSession, type Sessions, type SessionWallet, sessionIdOf } from './sessions.ts'
import type { WalletUser } from './user-records.ts'
import { endingWith, Users } from './users.ts'

export type { ResolveLogin } from './application.ts'
export type { WalletUser } from './user-records.ts'

/** Settings of the standalone host. */
export interface StandaloneSettings {
  readonly syncAddressToUser: boolean
  readonly syncPublicKeyToUser: boolean
  readonly resolveLogin?: ResolveLogin | undefined
  /**
   * Whether people reach the service by https. The cookie is then Secure and has the prefix `__Host-` (RFC 6265bis).
   */
  readonly secureCookie: () => boolean
}

/** Parts of the standalone host in addition to its settings. */
export interface StandaloneParts extends StandaloneSettings {
  readonly store: Store
  readonly sessions: Sessions
  readonly origins: TrustedOrigins
  /** Default: everyone may sign in, and no one has groups. */
  readonly membership?: Membership
  /** Forgets the computers that are known for a wallet, when that is unlinked. Default: none are kept. */
  readonly forgetComputers?: (wallet: WalletIdentity) => Promise<void>
  /** Records sessions that end by sign-out and with their wallet. Default: nothing is recorded. */
  readonly audit?: AuditTrail | undefined
}

/** The rule for origins that the host needs: a call that a cookie authenticates has to come from a trusted one. */
interface TrustedOrigins {
  /** Throws ORIGIN_NOT_TRUSTED unless the request comes from a trusted origin. */
  requireTrusted(request: RequestContext): void
}

/** Age in ms up to which a session is enough to change the user's wallets. */
const freshMs = 10 * 60_000

/** Keeps users and sessions in the store, for applications without an authentication framework of their own. */
export class StandaloneHost implements WalletHost {
  readonly #parts: StandaloneParts
  readonly #store: Store
  readonly #users: Users
  readonly #sessions: Sessions
  readonly #origins: TrustedOrigins
  readonly #audit: AuditTrail
  readonly #membership: Membership

  constructor(parts: StandaloneParts) {
    const { store, sessions, origins, forgetComputers = async () => {}, audit = noAudit } = parts
    const { syncAddressToUser, syncPublicKeyToUser } = parts
    this.#parts = parts
    this.#store = store
    this.#users = new Users({
      store,
      synced: ({ address, publicKeyHex }) => ({
        ...(syncAddressToUser ? { address } : {}),
        ...(syncPublicKeyToUser ? { publicKeyHex } : {}),
      }),
      unlinked: endingWith({
        sessions,
        forgetComputers,
        ended: (userId, sessionId) => audit.record({ type: 'session.ended', by: 'unlink', userId, sessionId }, {}),
      }),
    })
    this.#sessions = sessions
    this.#origins = origins
    this.#audit = audit
    this.#membership = parts.membership ?? new Membership()
  }

  async resolveUser(identity: ProvenIdentity): Promise<HostUser> {
    const { resolveLogin } = this.#parts
    if (resolveLogin === undefined) {
      return await this.#users.resolve(identity, (user) => this.#requireListed({ ...identity, ...user }))
    }
    await this.requireNotBlocked(identity)
    const { id } = await askResolveLogin(resolveLogin, identity)
    this.#requireListed({ ...identity, userId: id, firstWallet: undefined })
    return { id }
  }

  /**
   * Rejects with LOGIN_REFUSED if only people of the people file may sign in, and a wallet is neither listed nor one of
   * a listed user's. Changes nothing.
   */
  async requireListed(identity: ProvenIdentity): Promise<void> {
    if (!this.#membership.isRequired) return
    const { resolveLogin } = this.#parts
    const userId =
      resolveLogin === undefined
        ? await this.#users.userIdOf(identity)
        : (await askResolveLogin(resolveLogin, identity)).id
    this.#requireListed(await this.personKey(userId, identity))
  }

  /** What the person of a user and the wallet that signs in is looked up by. */
  async personKey(userId: string, identity: ProvenIdentity): Promise<PersonKey> {
    const { adapterId, address } = identity
    const isOurs = this.#parts.resolveLogin === undefined
    const firstWallet = isOurs ? await this.#users.firstWalletOf(userId, identity) : undefined
    return { userId, adapterId, address, firstWallet }
  }

  /** Whether someone may sign in, by the list of people, and is signed in as long as a session lasts. */
  admits(key: PersonKey | PastSession): boolean {
    return this.#membership.admits(key)
  }

  #requireListed(key: PersonKey): void {
    if (!this.admits(key)) throw notListed(key)
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
    const key = await this.personKey(user.id, identity)
    this.#requireListed(key)
    const { firstWallet, ...named } = key
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
      () => this.#refusalOf(user, identity),
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

  /** Whether a wallet still belongs to a user, and no operator has blocked it. */
  async holdsWallet(userId: string, wallet: SessionWallet): Promise<boolean> {
    if (await this.#users.isBlocked(walletOf(wallet))) return false
    if (this.#parts.resolveLogin !== undefined) return true
    return (await this.walletsOf(userId)).some((each) => isOfWallet(each, wallet))
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

  /** The wallets of a user, oldest first. Empty with `resolveLogin`, and for a user who was deleted. */
  async walletsOf(userId: string): Promise<HeldWallet[]> {
    if (this.#parts.resolveLogin !== undefined || (await this.#users.find(userId)) === undefined) return []
    return await this.#users.list({ userId })
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

  /**
   * The user with this id. `undefined` if there is none, or if the application keeps its users itself (`resolveLogin`).
   */
  async findUser(userId: string): Promise<WalletUser | undefined> {
    return await this.#users.find(userId)
  }

  /** By the store's clock, in the first ten minutes. */
  requireFresh({ createdAt }: Session): void {
    if (this.#store.now() - createdAt >= freshMs) throw refused('SESSION_NOT_FRESH')
  }

  async linkWallet(
    session: Session,
    identity: ProvenIdentity,
    requireWanted?: () => Promise<void>,
  ): Promise<HeldWallet> {
    return await this.#users.link(session, identity, requireWanted)
  }

  async requireLinkable(session: PersonKey, identity: ProvenIdentity): Promise<void> {
    if (!this.admits(session)) throw sessionNotListed()
    await this.#users.requireLinkable(session, identity)
  }

  async withdrawWallet(session: Pick<Session, 'userId'>, identity: ProvenIdentity, since: number): Promise<boolean> {
    return await this.#users.withdraw(session, identity, since)
  }

  async listWallets(session: Session): Promise<HeldWallet[]> {
    return await this.#users.list(session)
  }

  async unlinkWallet(
    session: Session,
    pick: (wallets: readonly HeldWallet[]) => HeldWallet | undefined,
  ): Promise<void> {
    await this.#users.unlink(session, pick)
  }

  /** Rejects with LOGIN_REFUSED if an operator has blocked the wallet. */
  async requireNotBlocked(wallet: WalletIdentity): Promise<void> {
    if (await this.#users.isBlocked(wallet)) throw refused('LOGIN_REFUSED')
  }

  /** Why a session that was just stored must not be used; `undefined` if it may. */
  async #refusalOf(user: HostUser, identity: ProvenIdentity): Promise<CountersignError | undefined> {
    if (this.#parts.resolveLogin === undefined) return await this.#users.refusalOf(user, identity)
    return (await this.#users.isBlocked(identity)) ? refused('LOGIN_REFUSED') : undefined
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

  /** Whether a request's cookie is of the session of a token. */
  #hasCookieOf(token: string, request: RequestContext): boolean {
    const cookie = this.#cookieIn(request)
    const sessionId = cookie === undefined ? undefined : this.#sessions.idOf(cookie, 'cookie')
    return sessionId !== undefined && sessionId === this.#sessions.idOf(token, 'token')
  }

  #cookieIn(request: RequestContext): string | undefined {
    return cookieValue(headerOf(request, 'cookie'), sessionCookieName(this.#parts.secureCookie()))
  }

  /** The Set-Cookie header of a value, or of none. */
  #cookie(value: string, expiresAt: number): string {
    const secure = this.#parts.secureCookie()
    const maxAge = Math.max(0, Math.ceil((expiresAt - this.#store.now()) / 1000))
    const attributes = `Max-Age=${maxAge}; Path=/; HttpOnly;${secure ? ' Secure;' : ''} SameSite=Lax`
    return `${sessionCookieName(secure)}=${value}; ${attributes}`
  }
}

/** The text before the dot in the token of an order's session: the same at each attempt to finalize the order. */
function secretPartFor({ seed }: OrderGrant): string {
  return tokenFromBytes('session', seed)
}
