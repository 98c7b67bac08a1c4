import type { AuditEventType } from '../../../src/index.ts'

/** Every type: one that is missing is a compile error. */
export const allTypes: Record<AuditEventType, true> = {
  'sign_in.succeeded': true,
  'challenge.refused': true,
  'call.refused': true,
  'limit.hit': true,
  'order.started': true,
  'order.claimed': true,
  'order.challenge_read': true,
  'order.handed_over': true,
  'order.continued': true,
  'order.code_refused': true,
  'order.approved': true,
  'order.rejected': true,
  'order.cancelled': true,
  'order.finalized': true,
  'order.taken_back': true,
  'session.ended': true,
  'wallet.linked': true,
  'wallet.unlinked': true,
  'computer.remembered': true,
  'computer.forgotten': true,
  'app.connected': true,
  'app.disconnected': true,
  'app.token_replayed': true,
  'operator.acted': true,
}
