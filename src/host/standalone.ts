import { hash } from 'node:crypto'
import { parseCookie, stringifySetCookie } from 'cookie'
import { parseRecord, type StoredRecord } from '../record.ts'
import { bearerToken, headerOf, type RequestContext } from '../request.ts'
import type { Store } from '../store/store.ts'
import { tokenFromBytes } from '../token.ts'
import type { ProvenIdentity } from '../wallet/proof.ts'
import type { CurrentSession, Host, HostUser, IssuedSession, OrderGrant, OrderSession, Session } from './host.ts'
import { sessionInvalid, sessionRequired } from './refusals.ts'
import { askResolveLogin, type ResolveLogin } from './resolve-login.ts'
import { type Sessions, sessionIdOf } from './sessions.ts'

export type { ResolveLogin } from './resolve-login.ts'

/** A user that the standalone host keeps: one for each wallet identity. */
export interface WalletUser extends HostUser {
  readonly createdAt: number
  /** The wallet's address, with `syncAddressToUser`. */
  readonly address?: string
  /** The wallet's public key, lower-case hex, with `syncPublicKeyToUser`. */
  readonly publicKeyHex?: string
}

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

/** The rule for origins that the host needs: a call that a cookie authenticates has to come from a trusted one. */
interface TrustedOrigins {
  /** Throws ORIGIN_NOT_TRUSTED unless the request comes from a trusted origin. */
  requireTrusted(request: RequestContext): void
}

const cookieName = 'countersign_session'

/** What is stored of a user. */
type UserRecord = WalletUser & StoredRecord

/** Newest version of {@link UserRecord} that this release reads, and the one that it writes. */
const userVersion = 1

/** Keeps users and sessions in the store, for applications without an authentication framework of their own. */
export class StandaloneHost implements Host {
  readonly #settings: StandaloneSettings
  readonly #store: Store
  readonly #sessions: Sessions
  readonly #origins: TrustedOrigins

  constructor(settings: StandaloneSettings, store: Store, sessions: Sessions, origins: TrustedOrigins) {
    this.#settings = settings
    this.#store = store
    this.#sessions = sessions
    this.#origins = origins
  }

  async resolveUser(identity: ProvenIdentity): Promise<HostUser> {
    const { resolveLogin } = this.#settings
    if (resolveLogin === undefined) return await this.#keepUser(identity)
    const { id } = await askResolveLogin(resolveLogin, identity)
    return { id }
  }

  async createSession(
    user: HostUser,
    identity: ProvenIdentity,
    request: RequestContext,
    order?: OrderGrant,
  ): Promise<IssuedSession> {
    const { token, session } = await this.#sessions.create(
      {
        userId: user.id,
        adapterId: identity.adapterId,
        publicKeyHex: identity.publicKeyHex,
        address: identity.address,
        ...(order === undefined ? {} : { orderId: order.orderId }),
        ip: request.ip ?? '',
        userAgent: request.userAgent,
        ...(order?.computerId === undefined ? {} : { computerId: order.computerId }),
      },
      order === undefined ? undefined : secretPartFor(order),
    )
    return { token, session, cookies: [this.#cookie(token, session.expiresAt)] }
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
      throw sessionRequired()
    }
    if (credential.fromCookie) this.#origins.requireTrusted(request)
    const used = await this.#sessions.use(credential.token)
    if (used === undefined) {
      throw sessionInvalid()
    }
    const { session, extended } = used
    const cookies = extended && credential.fromCookie ? [this.#cookie(credential.token, session.expiresAt)] : []
    return { session, cookies }
  }

  async signOut(request: RequestContext): Promise<readonly string[]> {
    const credential = this.#credential(request)
    if (credential === undefined) return []
    if (credential.fromCookie) this.#origins.requireTrusted(request)
    const session = await this.#sessions.find(credential.token)
    if (session !== undefined) await this.#sessions.end(session.userId, session.id)
    // A bearer token names the session to end. The browser's cookie, which may belong to another session, is left
    // alone.
    return credential.fromCookie || this.#cookieToken(request) === credential.token ? [this.#cookie('', 0)] : []
  }

  async listSessions(userId: string): Promise<Session[]> {
    return await this.#sessions.list(userId)
  }

  async revokeSession(userId: string, sessionId: string): Promise<boolean> {
    return await this.#sessions.end(userId, sessionId)
  }

  async introspect(token: string): Promise<Session | undefined> {
    return await this.#sessions.find(token)
  }

  /**
   * The user with this id. `undefined` if there is none, or if the application keeps its users itself (`resolveLogin`).
   */
  async findUser(userId: string): Promise<WalletUser | undefined> {
    const stored = await this.#store.get(userKey(userId))
    if (stored === undefined) return undefined
    const { v: _version, ...user } = readUser(stored.value)
    return user
  }

  async #keepUser(identity: ProvenIdentity): Promise<HostUser> {
    const id = userIdOf(identity)
    const synced = {
      ...(this.#settings.syncAddressToUser ? { address: identity.address } : {}),
      ...(this.#settings.syncPublicKeyToUser ? { publicKeyHex: identity.publicKeyHex } : {}),
    }
    for (;;) {
      const stored = await this.#store.get(userKey(id))
      if (stored === undefined) {
        const user: UserRecord = { v: userVersion, id, createdAt: this.#store.now(), ...synced }
        if (await this.#store.create(userKey(id), JSON.stringify(user), 'forever')) return user
        continue
      }
      const user = readUser(stored.value)
      const updated: UserRecord = { ...user, ...synced }
      const text = JSON.stringify(updated)
      if (text === stored.value) return user
      if (await this.#store.compareAndSet(userKey(id), stored.version, text, 'forever')) return updated
    }
  }

  #credential(request: RequestContext): { token: string; fromCookie: boolean } | undefined {
    const bearer = bearerToken(request)
    if (bearer !== undefined) return { token: bearer, fromCookie: false }
    const token = this.#cookieToken(request)
    return token === undefined ? undefined : { token, fromCookie: true }
  }

  #cookieToken(request: RequestContext): string | undefined {
    return parseCookie(headerOf(request, 'cookie') ?? '')[this.#cookieName()] || undefined
  }

  #cookieName(): string {
    return this.#settings.secureCookie() ? `__Host-${cookieName}` : cookieName
  }

  #cookie(value: string, expiresAt: number): string {
    return stringifySetCookie({
      name: this.#cookieName(),
      value,
      path: '/',
      httpOnly: true,
      sameSite: 'lax',
      secure: this.#settings.secureCookie(),
      maxAge: Math.max(0, Math.floor((expiresAt - this.#store.now()) / 1000)),
    })
  }
}

/** The text before the dot in the token of an order's session: the same at each attempt to finalize the order. */
function secretPartFor({ seed }: OrderGrant): string {
  return tokenFromBytes('session', seed)
}

/** An identity determines its user's id, so that two first sign-ins at once cannot make two users. */
function userIdOf(identity: ProvenIdentity): string {
  return `usr_${hash('sha256', `${identity.adapterId}:${identity.subject}`, 'base64url').slice(0, 22)}`
}

function readUser(text: string): UserRecord {
  return parseRecord<UserRecord>('user', text, userVersion)
}

function userKey(id: string): string {
  return `user:${id}`
}
