import { answers } from './answers.ts'
import { askApplication } from './application-step.ts'
import type { Host } from './host.ts'

/**
 * A session host of the application's own, so that the service can rely on it: each step answers within five seconds with what
 * the contract says, or rejects with HOST_UNAVAILABLE, and the log has the cause.
 */
export function guardedHost(host: Host): Host {
  return {
    resolveUser: (identity, request) =>
      askApplication('sessionHost.resolveUser()', () => host.resolveUser(identity, request), answers.user),
    createSession: (user, identity, request, order) =>
      askApplication(
        'sessionHost.createSession()',
        () => host.createSession(user, identity, request, order),
        answers.issuedSession,
      ),
    orderSessionId: (order) =>
      askApplication('sessionHost.orderSessionId()', () => host.orderSessionId(order), answers.id),
    endOrderSession: (session) =>
      askApplication('sessionHost.endOrderSession()', () => host.endOrderSession(session), answers.yesOrNo),
    currentSession: (request) =>
      askApplication('sessionHost.currentSession()', () => host.currentSession(request), answers.currentSession),
    signOut: (request) => askApplication('sessionHost.signOut()', () => host.signOut(request), answers.cookies),
    listSessions: (userId, request) =>
      askApplication('sessionHost.listSessions()', () => host.listSessions(userId, request), answers.sessions),
    revokeSession: (userId, sessionId, request) =>
      askApplication(
        'sessionHost.revokeSession()',
        () => host.revokeSession(userId, sessionId, request),
        answers.yesOrNo,
      ),
    introspect: (token) => askApplication('sessionHost.introspect()', () => host.introspect(token), answers.session),
  }
}
