import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  ConnectedAppSchema,
  KnownComputerSchema,
  SessionService,
} from '../../gen/server/countersign/v1/session_service_pb.ts'
import { type AuditTrail, noAudit } from '../base/audit.ts'
import type { RequestContext } from '../base/request.ts'
import type { AccessTokens } from '../core/access-tokens.ts'
import type { KnownComputers, StoredComputer } from '../core/order/known-computers.ts'
import { type CurrentSession, type Host, reaches, type Session } from '../core/users/host.ts'
import { sessionOutOfReach } from '../core/users/refusals.ts'
import type { SessionEnds } from '../core/users/sessions.ts'
import { type WalletIdentity, walletOf } from '../core/wallet/wallet.ts'
import { CountersignError, type ErrorReason, refused } from '../shared/errors.ts'
import { type Call, type ServiceHandlers, sessionFields, setCookies } from './methods.ts'

/** Parts of {@link sessionHandlers} beside the host. */
export interface SessionParts {
  /** Without them, the calls for known computers are NOT_ENABLED, and ending a session forgets none. */
  readonly computers?: KnownComputers | undefined
  /** Wallets whose computers the user of a session sees. Default: the session's own wallet. */
  readonly walletsOf?: ((session: Session) => Promise<readonly WalletIdentity[]>) | undefined
  /** Without them, the call for an access token is NOT_ENABLED. */
  readonly accessTokens?: AccessTokens | undefined
  /** Without it, no application is connected, and none can be disconnected. */
  readonly apps?: SessionApps | undefined
  /** Refuses to disconnect an application from any other origin than the service's own. Default: nothing is refused. */
  readonly requireOwnOrigin?: ((request: RequestContext) => void) | undefined
  /** Hook for sessions that are ended with all others. Default: nothing outlives a session. */
  readonly sessionEnds?: Pick<SessionEnds, 'taken'> | undefined
  /** Audit trail of sessions that users end from another one, and of forgotten computers. Without it, none is kept. */
  readonly audit?: AuditTrail | undefined
  /** Counts a wrong token of a network, if calls have limits. Rejects with RATE_LIMITED beyond its limit. */
  readonly countWrong?: ((request: RequestContext) => Promise<void> | undefined) | undefined
}

/** The refusals of a caller who is signed out. */
const signedOut: ReadonlySet<ErrorReason> = new Set(['SESSION_REQUIRED', 'SESSION_INVALID'])

/** An application that a user has connected. Times are epoch milliseconds. */
export interface ListedApp {
  readonly clientId: string
  readonly name: string
  /** Host that it is reached at; empty for an application on the user's device, and one that is no longer a client. */
  readonly host: string
  readonly scopes: readonly string[]
  readonly connectedAt: number
  readonly lastUsedAt: number
}

/** Applications that users have connected. */
export interface SessionApps {
  listApps(userId: string): Promise<readonly ListedApp[]>
  /** Ends all that an application holds. Rejects with SESSION_NOT_FRESH if the session may not end it. */
  disconnectApp(own: Session, clientId: string, request: RequestContext): Promise<void>
}

/** SessionService on a host. */
export function sessionHandlers(host: Host, parts: SessionParts): ServiceHandlers<typeof SessionService> {
  const { computers, walletsOf = async (session) => [walletOf(session)] } = parts
  const { accessTokens, apps, requireOwnOrigin, sessionEnds, audit = noAudit, countWrong } = parts
  /** Ends another session of the same user. Resolves with whether it was live. */
  const revoke = async (own: Session, sessionId: string, { request }: Call): Promise<boolean> => {
    const { userId, id: bySessionId } = own
    const revoked = await host.revokeSession(userId, sessionId, request)
    if (revoked) audit.tell({ type: 'session.ended', by: 'user', userId, sessionId, bySessionId }, request)
    return revoked
  }
  /** The caller's session. */
  const current = async (call: Call): Promise<Session> => taken(call, await host.currentSession(call.request))
  return {
    getCurrentSession: {
      limit: 'session',
      async handle({ allowSignedOut = false }, call) {
        try {
          return { session: sessionFields(await current(call), true) }
        } catch (thrown) {
          if (!allowSignedOut || !(thrown instanceof CountersignError) || !signedOut.has(thrown.reason)) throw thrown
          if (thrown.reason === 'SESSION_REQUIRED') return {}
          await countWrong?.(call.request)
          call.pardoned = thrown
          return {}
        }
      },
    },
    signOut: {
      limit: 'session',
      async handle(_input, call) {
        setCookies(call, await host.signOut(call.request))
        return { ok: true }
      },
    },
    listSessions: {
      limit: 'session',
      async handle(_input, call) {
        const own = await current(call)
        const sessions = await host.listSessions(own.userId, call.request)
        return { sessions: sessions.map((session) => sessionFields(session, session.id === own.id)) }
      },
    },
    revokeSession: {
      limit: 'session',
      async handle({ sessionId }, call) {
        const own = await current(call)
        const session = (await host.listSessions(own.userId, call.request)).find(({ id }) => id === sessionId)
        if (session === undefined) throw refused('SESSION_NOT_FOUND')
        if (!reaches(own, session)) throw sessionOutOfReach()
        // First: if the call fails in between, a retry finds the session and ends it. The other way round, the retry
        // would not find it, and the computer would stay known.
        if (computers !== undefined) await forgetComputerOf(session, computers)
        if (!(await revoke(own, sessionId, call))) throw refused('SESSION_NOT_FOUND')
        return { ok: true }
      },
    },
    revokeOtherSessions: {
      limit: 'session',
      async handle(_input, call) {
        const own = await current(call)
        const sessions = await host.listSessions(own.userId, call.request)
        const others = sessions.filter((session) => session.id !== own.id && reaches(own, session))
        // First, as above; and after the list was read, so that no order of a listed session makes its computer known
        // later.
        if (computers !== undefined) await forgetOtherComputers(own, others, await walletsOf(own), computers)
        const revoked = await Promise.all(others.map(({ id }) => revoke(own, id, call)))
        const fits = (session: Pick<Session, 'id' | 'orderId'>) => session.id !== own.id && reaches(own, session)
        await sessionEnds?.taken({ userId: own.userId, fits })
        if (computers !== undefined) {
          audit.tell({ type: 'computer.forgotten', userId: own.userId, sessionId: own.id }, call.request)
        }
        return { ok: true, revokedCount: revoked.filter(Boolean).length }
      },
    },
    introspectSession: {
      // Backends check the sessions of all their users from one address, so a limit for each address does not fit. None
      // is needed: a token has 256 bits, and its signature is checked before the store is read.
      limit: 'unlimited',
      async handle({ token, cookie }) {
        const session = cookie === '' ? await host.introspect(token) : await host.introspect(cookie, 'cookie')
        return session === undefined ? { active: false } : { active: true, session: sessionFields(session, false) }
      },
    },
    listKnownComputers: {
      limit: 'session',
      async handle(_input, call) {
        const known = enabled(computers)
        const own = await current(call)
        const lists = await Promise.all((await walletsOf(own)).map((wallet) => known.list(wallet)))
        const newestFirst = lists.flat().sort((a, b) => b.createdAt - a.createdAt)
        return { computers: newestFirst.map((computer) => computerFields(computer, own)) }
      },
    },
    forgetKnownComputer: {
      limit: 'session',
      async handle({ id }, call) {
        const known = enabled(computers)
        const own = await current(call)
        const forgotten = await Promise.all((await walletsOf(own)).map((wallet) => known.forget(wallet, id)))
        if (!forgotten.includes(true)) {
          throw refused('COMPUTER_NOT_FOUND')
        }
        const { userId, id: sessionId } = own
        audit.tell({ type: 'computer.forgotten', computerId: id, userId, sessionId }, call.request)
        return { ok: true }
      },
    },
    listConnectedApps: {
      limit: 'session',
      async handle(_input, call) {
        const { userId } = await current(call)
        return { apps: ((await apps?.listApps(userId)) ?? []).map(appFields) }
      },
    },
    disconnectApp: {
      limit: 'session',
      async handle({ clientId }, call) {
        requireOwnOrigin?.(call.request)
        const own = await current(call)
        await apps?.disconnectApp(own, clientId, call.request)
        return { ok: true }
      },
    },
    issueAccessToken: {
      limit: 'session',
      async handle({ audience }, call) {
        if (accessTokens === undefined) {
          throw new CountersignError('NOT_ENABLED', 'This service issues no access tokens')
        }
        const { accessToken, expiresAt } = await accessTokens.issue(await current(call), audience)
        return { accessToken, expiresAt: BigInt(expiresAt) }
      },
    },
  }
}

function enabled(computers: KnownComputers | undefined): KnownComputers {
  if (computers !== undefined) return computers
  throw new CountersignError('NOT_ENABLED', 'This service does not remember computers')
}

/** Forgets the computer that a session came from, if it came from one. */
export async function forgetComputerOf(session: Session | undefined, computers: KnownComputers): Promise<void> {
  if (session?.computerId === undefined) return
  const wallet = walletOf(session)
  // The order may be making the computer known at this moment.
  if (session.orderId !== undefined) await computers.forgetOfOrder(wallet, session.computerId, session.orderId)
  else await computers.forget(wallet, session.computerId)
}

/**
 * Forgets all computers of a user's wallets and of the wallets of the sessions, except the computer of the user's own
 * session.
 */
async function forgetOtherComputers(
  own: Session,
  others: readonly Session[],
  wallets: readonly WalletIdentity[],
  computers: KnownComputers,
): Promise<void> {
  const all = [...wallets, ...[own, ...others].map(walletOf)]
  const distinct = new Map(all.map((wallet) => [JSON.stringify([wallet.adapterId, wallet.subject]), wallet]))
  await Promise.all([...distinct.values()].map((wallet) => computers.forgetOthers(wallet, own.computerId)))
}

function computerFields(computer: StoredComputer, own: Session): MessageInitShape<typeof KnownComputerSchema> {
  const { id, createdAt, lastUsedAt, ip, userAgent } = computer
  return {
    id,
    createdAt: BigInt(createdAt),
    lastUsedAt: BigInt(lastUsedAt),
    ip,
    userAgent,
    current: id === own.computerId,
  }
}

function appFields({
  connectedAt,
  lastUsedAt,
  scopes,
  ...app
}: ListedApp): MessageInitShape<typeof ConnectedAppSchema> {
  return { ...app, scopes: [...scopes], connectedAt: BigInt(connectedAt), lastUsedAt: BigInt(lastUsedAt) }
}

/** The session that a host found for a call. The cookie of an extended session is sent with the response. */
function taken(call: Call, { session, cookies }: CurrentSession): Session {
  setCookies(call, cookies)
  return session
}
