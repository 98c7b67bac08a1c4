import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  GetCurrentSessionRequest,
  GetCurrentSessionResponseSchema,
  IntrospectSessionRequest,
  IntrospectSessionResponseSchema,
  ListSessionsRequest,
  ListSessionsResponseSchema,
  RevokeOtherSessionsRequest,
  RevokeOtherSessionsResponseSchema,
  RevokeSessionRequest,
  RevokeSessionResponseSchema,
  SessionSchema,
  SignOutRequest,
  SignOutResponseSchema,
} from '../../gen/countersign/v1/session_service_pb.ts'
import { CountersignError } from '../errors.ts'
import type { Host, Session } from '../host/host.ts'
import { type Call, setCookies } from './call.ts'
import type { Reply } from './methods.ts'

/** The RPCs of SessionService as plain functions: message and call in, message out. */
export interface SessionHandlers {
  getCurrentSession(message: GetCurrentSessionRequest, call: Call): Reply<typeof GetCurrentSessionResponseSchema>
  signOut(message: SignOutRequest, call: Call): Reply<typeof SignOutResponseSchema>
  listSessions(message: ListSessionsRequest, call: Call): Reply<typeof ListSessionsResponseSchema>
  revokeSession(message: RevokeSessionRequest, call: Call): Reply<typeof RevokeSessionResponseSchema>
  revokeOtherSessions(message: RevokeOtherSessionsRequest, call: Call): Reply<typeof RevokeOtherSessionsResponseSchema>
  introspectSession(message: IntrospectSessionRequest, call: Call): Reply<typeof IntrospectSessionResponseSchema>
}

/** SessionService over a host. */
export function sessionHandlers(host: Host): SessionHandlers {
  /** The caller's session; a cookie that was extended goes out with the response. */
  const current = async (call: Call): Promise<Session> => {
    const { session, cookies } = await host.currentSession(call.request)
    setCookies(call, cookies)
    return session
  }
  return {
    async getCurrentSession(_message, call) {
      return { session: sessionMessage(await current(call), true) }
    },
    async signOut(_message, call) {
      setCookies(call, await host.signOut(call.request))
      return { ok: true }
    },
    async listSessions(_message, call) {
      const own = await current(call)
      const sessions = await host.listSessions(own.userId, call.request)
      return { sessions: sessions.map((session) => sessionMessage(session, session.id === own.id)) }
    },
    async revokeSession({ sessionId }, call) {
      const own = await current(call)
      if (!(await host.revokeSession(own.userId, sessionId, call.request))) {
        throw new CountersignError('SESSION_NOT_FOUND', 'You have no session with this id')
      }
      return { ok: true }
    },
    async revokeOtherSessions(_message, call) {
      const own = await current(call)
      const others = (await host.listSessions(own.userId, call.request)).filter(({ id }) => id !== own.id)
      const revoked = await Promise.all(others.map(({ id }) => host.revokeSession(own.userId, id, call.request)))
      return { ok: true, revokedCount: revoked.filter(Boolean).length }
    },
    async introspectSession({ token }) {
      const session = await host.introspect(token)
      return session === undefined ? { active: false } : { active: true, session: sessionMessage(session, false) }
    },
  }
}

/** A session as the API shows it. */
export function sessionMessage(session: Session, current: boolean): MessageInitShape<typeof SessionSchema> {
  const { createdAt, expiresAt, ...rest } = session
  return { ...rest, createdAt: BigInt(createdAt), expiresAt: BigInt(expiresAt), current }
}
