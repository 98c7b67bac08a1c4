import type { GenericEndpointContext } from '@better-auth/core'
import { getAuthoritativeSessionFromCtx } from 'better-auth/api'
import { deleteSessionCookie, setSessionCookie } from 'better-auth/cookies'
import type { RequestContext } from '../base/request.ts'
import type {
  CurrentSession,
  Host,
  HostUser,
  IssuedSession,
  LinkingUsers,
  OrderGrant,
  OrderSession,
  Session,
} from '../core/users/host.ts'
import type { ProvenIdentity } from '../core/wallet/wallet.ts'
import { refused } from '../shared/errors.ts'
import { guarded } from './failures.ts'
import { originsOf } from './request.ts'
import { cookieOf, credentialOf, sessionOf, signedToken, unsignedToken, WalletSessions } from './sessions.ts'
import type { WalletSettings } from './settings.ts'
import { WalletUsers } from './users.ts'

/**
 * Better Auth as the host, inside one of its endpoints. Better Auth's own functions set cookies on the endpoint's
 * response, so the domain gets none.
 */
export class EndpointHost implements Host, LinkingUsers {
  readonly #ctx: GenericEndpointContext
  readonly #users: WalletUsers
  readonly #settings: WalletSettings
  readonly #sessions: WalletSessions

  constructor(ctx: GenericEndpointContext, settings: WalletSettings) {
    this.#ctx = ctx
    this.#settings = settings
    this.#users = new WalletUsers(ctx.context, settings)
    this.#sessions = new WalletSessions(ctx.context)
  }

  async resolveUser(identity: ProvenIdentity, _request: RequestContext): Promise<HostUser> {
    const { id } = await guarded(() => this.#users.resolve(identity))
    return { id }
  }

  async createSession(
    { id: userId }: HostUser,
    identity: ProvenIdentity,
    request: RequestContext,
    order?: OrderGrant,
  ): Promise<IssuedSession> {
    return await guarded(async () => {
      const user = await this.#ctx.context.internalAdapter.findUserById(userId)
      // Deleted since it was resolved.
      if (user === null) throw refused('LOGIN_REFUSED')
      const session = await this.#sessions.create({ userId, identity, request, order })
      await setSessionCookie(this.#ctx, { session, user }, false)
      return { token: signedToken(session.token, this.#ctx.context), session: sessionOf(session), cookies: [] }
    })
  }

  orderSessionId({ orderId }: OrderGrant): string {
    return orderId
  }

  async endOrderSession(session: OrderSession): Promise<boolean> {
    return await guarded(() => this.#sessions.endOfOrder(session))
  }

  /**
   * Reads and extends the session as Better Auth does, by its own rules. Its cookie cache is not used, so that a
   * session that was revoked ends at once.
   */
  async currentSession(request: RequestContext): Promise<CurrentSession> {
    const credential = credentialOf(this.#ctx, request)
    if (credential === undefined) {
      throw refused('SESSION_REQUIRED')
    }
    if (credential.fromCookie) originsOf(this.#ctx.context, this.#settings).requireTrusted(request)
    const current = await guarded(() => getAuthoritativeSessionFromCtx(this.#ctx))
    // The session found must be that of the request's own credential: an invalid bearer token does not fall back on the
    // cookie.
    if (current === null || current.session.token !== unsignedToken(credential.signed, this.#ctx.context)) {
      throw refused('SESSION_INVALID')
    }
    return { session: sessionOf(current.session), cookies: [] }
  }

  async signOut(request: RequestContext): Promise<readonly string[]> {
    const credential = credentialOf(this.#ctx, request)
    if (credential === undefined) return []
    if (credential.fromCookie) originsOf(this.#ctx.context, this.#settings).requireTrusted(request)
    const token = unsignedToken(credential.signed, this.#ctx.context)
    if (token !== undefined) await guarded(() => this.#sessions.end(token))
    // A caller that names a token means that one: the browser's cookie, which may be another session's, is left alone.
    if (credential.fromCookie || cookieOf(this.#ctx, request.headers) === credential.signed) {
      deleteSessionCookie(this.#ctx)
    }
    return []
  }

  async listSessions(userId: string): Promise<Session[]> {
    return (await guarded(() => this.#sessions.list(userId))).map(sessionOf)
  }

  async revokeSession(userId: string, sessionId: string): Promise<boolean> {
    return await guarded(async () => {
      const session = (await this.#sessions.list(userId)).find(({ id }) => id === sessionId)
      if (session !== undefined) await this.#sessions.end(session.token)
      return session !== undefined
    })
  }

  async introspect(token: string): Promise<Session | undefined> {
    const unsigned = unsignedToken(token, this.#ctx.context)
    if (unsigned === undefined) return undefined
    const session = await guarded(() => this.#sessions.find(unsigned))
    return session === undefined ? undefined : sessionOf(session)
  }

  /** By Better Auth's own rule, as its `freshSessionMiddleware` has it: `session.freshAge` in seconds, 0 for none. */
  requireFresh({ createdAt }: Session): void {
    const { freshAge } = this.#ctx.context.sessionConfig
    if (freshAge !== 0 && Date.now() - createdAt >= freshAge * 1000) throw refused('SESSION_NOT_FRESH')
  }

  async link({ userId }: Session, identity: ProvenIdentity): Promise<void> {
    await guarded(() => this.#users.link(userId, identity))
  }
}
