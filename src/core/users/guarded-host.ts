import type { Tracing } from '../../base/tracing.ts'
import { answers } from './answers.ts'
import { askApplication } from './application-step.ts'
import type { Host } from './host.ts'

/**
 * A session host of the application's own, so that the service can rely on it: each step answers within five seconds with what
 * the contract says, or rejects with HOST_UNAVAILABLE, and the log has the cause. Without tracing, nothing is traced.
 */
export function guardedHost(host: Host, tracing?: Tracing): Host {
  const ask: typeof askApplication = (what, step, read) =>
    tracing === undefined
      ? askApplication(what, step, read)
      : tracing.step({ kind: 'application', name: what.replace('()', '') }, () => askApplication(what, step, read))
  return {
    resolveUser: (identity, request) =>
      ask('sessionHost.resolveUser()', () => host.resolveUser(identity, request), answers.user),
    createSession: (user, identity, request, order) =>
      ask(
        'sessionHost.createSession()',
        () => host.createSession(user, identity, request, order),
        answers.issuedSession,
      ),
    orderSessionId: (order) => ask('sessionHost.orderSessionId()', () => host.orderSessionId(order), answers.id),
    endOrderSession: (session) =>
      ask('sessionHost.endOrderSession()', () => host.endOrderSession(session), answers.yesOrNo),
    currentSession: (request) =>
      ask('sessionHost.currentSession()', () => host.currentSession(request), answers.currentSession),
    signOut: (request) => ask('sessionHost.signOut()', () => host.signOut(request), answers.cookies),
    listSessions: (userId, request) =>
      ask('sessionHost.listSessions()', () => host.listSessions(userId, request), answers.sessions),
    revokeSession: (userId, sessionId, request) =>
      ask('sessionHost.revokeSession()', () => host.revokeSession(userId, sessionId, request), answers.yesOrNo),
    introspect: (token) => ask('sessionHost.introspect()', () => host.introspect(token), answers.session),
  }
}
