import type { AuditCaller, AuditFacts, AuditWallet } from '../../base/audit.ts'
import { given } from '../../shared/given.ts'
import { codeTriesLeft, type OrderRecord, type OrderStarter, proofOf } from './order.ts'

/** That an order was started. */
export function startedFacts({ orderId, kind, requester: { startedWithKey, startedBy } }: OrderRecord): AuditFacts {
  return { type: 'order.started', orderId, kind, ...given({ startedWithKey, startedBy }) }
}

/** That an order waits in a user's inbox. */
export function addressedFacts(
  { orderId, displayTitle }: OrderRecord,
  userId: string,
  approvalUrl: string,
): AuditFacts {
  return { type: 'order.addressed', orderId, userId, ...given({ title: displayTitle }), approvalUrl }
}

/** The desktop that an order is for, as the caller who started it: an application's backend calls for it. */
export function requesterIn({ origin, requester: { ip, userAgent } }: OrderRecord): AuditCaller {
  return { ip: ip || undefined, origin, userAgent }
}

/** What happened to an order between two records of it, for the audit trail, in the order in which it happened. */
export function orderFacts(before: OrderRecord, after: OrderRecord): AuditFacts[] {
  const { orderId, kind } = after
  const order = { orderId, kind }
  const facts: AuditFacts[] = []
  if (after.handOver !== undefined && after.handOver.ticketHash !== before.handOver?.ticketHash) {
    facts.push({ type: 'order.handed_over', ...order })
  }
  if (after.handOver?.redeemedAt !== undefined && before.handOver?.redeemedAt === undefined) {
    facts.push({ type: 'order.continued', ...order })
  }
  const wrongCode = (after.wrongReturnCodes ?? 0) > (before.wrongReturnCodes ?? 0)
  if (wrongCode) facts.push({ type: 'order.code_refused', triesLeft: codeTriesLeft(after), ...order })
  if (after.takenBack !== undefined && before.takenBack === undefined) {
    facts.push({ type: 'order.taken_back', ...order, ...walletOf(after), ...sessionOf(after) })
  }
  if (claimedAgain(before, after)) facts.push({ type: 'order.claimed', ...order })
  const step = after.status === before.status ? undefined : statusFacts(after, wrongCode)
  return step === undefined ? facts : [...facts, step]
}

/** Whether another browser of the user has claimed an order of the inbox: it holds the order without a hand-over. */
function claimedAgain(before: OrderRecord, after: OrderRecord): boolean {
  if (before.status === 'created' || after.handOver !== undefined) return false
  return after.challengeTokenHash !== before.challengeTokenHash
}

/** What it means that an order has come to its status. */
function statusFacts(order: OrderRecord, byWrongCode: boolean): AuditFacts | undefined {
  const { orderId, kind } = order
  const named = { orderId, kind }
  switch (order.status) {
    case 'claimed':
      return { type: 'order.claimed', ...named }
    case 'waiting_user':
      return { type: 'order.challenge_read', ...named }
    case 'approved':
      return { type: 'order.approved', ...named, ...walletOf(order) }
    case 'rejected':
      return { type: 'order.rejected', ...named, by: byWrongCode ? 'wrong codes' : 'phone' }
    case 'cancelled':
      return { type: 'order.cancelled', ...named }
    case 'finalized':
      return { type: 'order.finalized', ...named, ...walletOf(order), ...sessionOf(order) }
    case 'created':
    case 'expired':
      // `StartOrder` reports the start itself; an expiry is no caller's act.
      return undefined
  }
}

/** That the wallet of a link order was added to its user, or taken from the user again. */
export function walletFacts(type: 'wallet.linked' | 'wallet.unlinked', order: OrderRecord): AuditFacts {
  const { userId, sessionId } = order.starter as OrderStarter
  return { type, userId, sessionId, orderId: order.orderId, ...walletOf(order) }
}

function walletOf(order: OrderRecord): AuditWallet {
  const { adapterId, address, publicKeyHex } = proofOf(order)
  return { adapterId, address, publicKeyHex }
}

/** The user and the session that an order is about: the one that it made, or the one that started it. */
function sessionOf(order: OrderRecord): { readonly userId?: string; readonly sessionId?: string } {
  const { userId = order.inboxUserId, sessionId } = order.login ?? order.starter ?? {}
  return given({ userId, sessionId })
}
