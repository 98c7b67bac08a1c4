import type { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { RequestContext } from '../base/request.ts'
import type { AccessTokens } from '../core/access-tokens.ts'
import type { CurrentSession, Host, Session } from '../core/users/host.ts'
import { OwnSessions, type OwnSessionsParts } from '../core/users/own-sessions.ts'
import { isRightToken } from '../core/users/people.ts'
import { CountersignError, type ErrorReason } from '../shared/errors.ts'
import type { ConnectedApp } from '../shared/session.ts'
import { type Call, limited, type ServiceHandlers, sessionFields, setCookies, withTimes } from './methods.ts'

/** Parts of {@link sessionHandlers} in addition to the host. */
export interface SessionParts extends OwnSessionsParts {
  /** Without them, the call for an access token is NOT_ENABLED. */
  readonly accessTokens?: AccessTokens | undefined
  /** Without it, no application is connected, and none can be disconnected. */
  readonly apps?: SessionApps | undefined
  /** Refuses to disconnect an application from any other origin than the service's own. Default: nothing is refused. */
  readonly requireOwnOrigin?: ((request: RequestContext) => void) | undefined
  /** The groups of a session's user. Default: none. */
  readonly groupsOf?: ((session: Session) => readonly string[]) | undefined
  /** Counts a wrong token of a network, if calls have limits. Rejects with RATE_LIMITED beyond its limit. */
  readonly countWrong?: ((request: RequestContext) => Promise<void> | undefined) | undefined
}

/** The refusals of a caller who is signed out. */
const signedOut: ReadonlySet<ErrorReason> = new Set(['SESSION_REQUIRED', 'SESSION_INVALID'])

/** Applications that users have connected. */
export interface SessionApps {
  listApps(userId: string): Promise<readonly ConnectedApp[]>
  /** Ends all that an application holds. Rejects with SESSION_NOT_FRESH if the session may not end it. */
  disconnectApp(own: Session, clientId: string, request: RequestContext): Promise<void>
}

/** SessionService on a host. */
export function sessionHandlers(host: Host, parts: SessionParts): ServiceHandlers<typeof SessionService> {
  const { accessTokens, apps, requireOwnOrigin, groupsOf = () => [], countWrong } = parts
  const users = new OwnSessions(host, parts)
  /** The caller's session. */
  const current = async (call: Call): Promise<Session> => taken(call, await host.currentSession(call.request))
  return {
    getCurrentSession: limited('session', async ({ allowSignedOut = false }, call) => {
      try {
        const session = await current(call)
        return { session: sessionFields(session, true), groups: [...groupsOf(session)] }
      } catch (thrown) {
        if (!allowSignedOut || !(thrown instanceof CountersignError) || !signedOut.has(thrown.reason)) throw thrown
        if (thrown.reason === 'SESSION_REQUIRED') return {}
        if (!isRightToken(thrown)) await countWrong?.(call.request)
        call.pardoned = thrown
        return {}
      }
    }),
    signOut: limited('session', async (_input, call) => {
      setCookies(call, await host.signOut(call.request))
      return { ok: true }
    }),
    listSessions: limited('session', async (_input, call) => {
      const own = await current(call)
      const sessions = await host.listSessions(own.userId, call.request)
      return { sessions: sessions.map((session) => sessionFields(session, session.id === own.id)) }
    }),
    revokeSession: limited('session', async ({ sessionId }, call) => {
      await users.revoke(await current(call), sessionId, call.request)
      return { ok: true }
    }),
    revokeOtherSessions: limited('session', async (_input, call) => ({
      ok: true,
      revokedCount: await users.revokeOthers(await current(call), call.request),
    })),
    // Backends check the sessions of all their users from one address, so a limit for each address does not fit. None
    // is needed: a token has 256 bits, and its signature is checked before the store is read.
    introspectSession: limited('unlimited', async ({ token, cookie }) => {
      const session = cookie === '' ? await host.introspect(token) : await host.introspect(cookie, 'cookie')
      if (session === undefined) return { active: false }
      return { active: true, session: sessionFields(session, false), groups: [...groupsOf(session)] }
    }),
    listKnownComputers: limited('session', async (_input, call) => {
      users.requireComputers()
      const computers = await users.listComputers(await current(call))
      return { computers: computers.map((each) => withTimes(each, 'createdAt', 'lastUsedAt')) }
    }),
    forgetKnownComputer: limited('session', async ({ id }, call) => {
      users.requireComputers()
      await users.forgetComputer(await current(call), id, call.request)
      return { ok: true }
    }),
    listConnectedApps: limited('session', async (_input, call) => {
      const { userId } = await current(call)
      const connected = (await apps?.listApps(userId)) ?? []
      return {
        apps: connected.map((app) => ({ ...withTimes(app, 'connectedAt', 'lastUsedAt'), scopes: [...app.scopes] })),
      }
    }),
    disconnectApp: limited('session', async ({ clientId }, call) => {
      requireOwnOrigin?.(call.request)
      const own = await current(call)
      await apps?.disconnectApp(own, clientId, call.request)
      return { ok: true }
    }),
    issueAccessToken: limited('session', async ({ audience }, call) => {
      if (accessTokens === undefined) throw new CountersignError('NOT_ENABLED', 'This service issues no access tokens')
      return withTimes(await accessTokens.issue(await current(call), audience), 'expiresAt')
    }),
  }
}

/** The session that a host found for a call. Cookies that it sets are sent with the response. */
function taken(call: Call, { session, cookies }: CurrentSession): Session {
  setCookies(call, cookies)
  return session
}
