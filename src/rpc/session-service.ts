import type { MessageInitShape } from '@bufbuild/protobuf'
import type { SessionSchema, SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { CountersignError } from '../errors.ts'
import type { Host, Session } from '../host/host.ts'
import { type Call, setCookies } from './call.ts'
import type { ServiceHandlers } from './methods.ts'

/** SessionService on a host. */
export function sessionHandlers(host: Host): ServiceHandlers<typeof SessionService> {
  /** The caller's session. If its life was extended, the new cookie goes out with the response. */
  const current = async (call: Call): Promise<Session> => {
    const { session, cookies } = await host.currentSession(call.request)
    setCookies(call, cookies)
    return session
  }
  return {
    getCurrentSession: {
      limit: 'session',
      async handle(_input, call) {
        return { session: sessionFields(await current(call), true) }
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
        if (!(await host.revokeSession(own.userId, sessionId, call.request))) {
          throw new CountersignError('SESSION_NOT_FOUND', 'You have no session with this id')
        }
        return { ok: true }
      },
    },
    revokeOtherSessions: {
      limit: 'session',
      async handle(_input, call) {
        const own = await current(call)
        const others = (await host.listSessions(own.userId, call.request)).filter(({ id }) => id !== own.id)
        const revoked = await Promise.all(others.map(({ id }) => host.revokeSession(own.userId, id, call.request)))
        return { ok: true, revokedCount: revoked.filter(Boolean).length }
      },
    },
    introspectSession: {
      // Backends ask for all their users from one address, so a limit for each address does not fit. None is needed: a
      // token has 256 bits, and its signature is checked before the store is asked.
      limit: 'unlimited',
      async handle({ token }) {
        const session = await host.introspect(token)
        return session === undefined ? { active: false } : { active: true, session: sessionFields(session, false) }
      },
    },
  }
}

/** A session as the API shows it. */
export function sessionFields(session: Session, current: boolean): MessageInitShape<typeof SessionSchema> {
  const { createdAt, expiresAt, ...rest } = session
  return { ...rest, createdAt: BigInt(createdAt), expiresAt: BigInt(expiresAt), current }
}
