import type { AuditFacts, AuditOrder, AuditWallet } from '../../base/audit.ts'
import { pick } from '../../shared/defined-fields.ts'
import { CountersignError, reasons, refused } from '../../shared/errors.ts'
import type { RemoteChecks } from '../wallet/wallet.ts'
import { subjectOf } from './kinds/recipes.ts'
import { type OrderRecord, proofOf } from './order.ts'
import type { OrderRecords } from './records.ts'
import {
  applyCommand,
  codeTriesLeft,
  decideEarly,
  forgottenAt,
  type OrderCommand,
  type OrderIntent,
  type OrderOutcome,
} from './states.ts'

/**
 * A step of a call: a command, or an intent with the work that makes it a command. The work is done only if the intent
 * moves the order on, and again after a lost race. It returns `undefined` if it has changed the order itself: the order
 * is then read again, and the call decided on the new state.
 */
export type OrderStep = OrderCommand | (OrderIntent & { readonly work: () => Promise<OrderCommand | undefined> })

/** A change of an order that was not refused. */
export interface OrderChange<Step> {
  readonly after: OrderRecord
  /** Whether this call has changed the order. */
  readonly changed: boolean
  /** The step that was carried out. */
  readonly step: Step
}

/**
 * Each lost race means one change of the order: four steps, three wrong codes, a take-back and what became of it, and a
 * few hand-overs. If more tries than that are lost, the storage does not keep its contract.
 */
const maxTries = 32

/**
 * Changes an order by the step that `stepOn` returns, or throws the reason for which it cannot be changed. `stepOn`
 * throws unless the caller may take the step; until then nothing of the order's state is revealed. If another caller is
 * faster, it is called again with what that caller stored. `stored` is called once a change is stored, also if the step
 * is refused; it must not throw.
 *
 * Everything that is returned or thrown was stored first, so no two callers, on any instances, learn different
 * things.
 */
export async function changeOrder<Step extends OrderStep>(
  records: OrderRecords,
  orderId: string,
  stepOn: (order: OrderRecord) => Step | Promise<Step>,
  stored?: (before: OrderRecord, after: OrderRecord) => void,
): Promise<OrderChange<Step>> {
  for (let tries = 0; tries < maxTries; tries++) {
    const loaded = await records.load(orderId)
    if (loaded === undefined || records.now() >= forgottenAt(loaded.order)) throw refused('ORDER_NOT_FOUND')
    const before = loaded.order
    const step = await stepOn(before)
    const outcome = await decide(before, step, () => records.now())
    if (outcome === undefined) continue
    const { order: after, refusal } = outcome
    const changed = after !== before
    if (changed) {
      if (!(await records.compareAndSet(after, loaded.version))) continue
      if (after.status !== before.status) records.observe?.(after)
      stored?.(before, after)
    }
    if (refusal === 'RETURN_CODE_WRONG') throw wrongCode(after)
    if (refusal === 'RATE_LIMITED') throw tooManyChecks()
    if (refusal !== undefined) throw refused(refusal)
    return { after, changed, step }
  }
  throw new CountersignError(
    'STORE_UNAVAILABLE',
    'The order could not be stored, because it kept changing; try again shortly',
    { retryAfterMs: 1000 },
  )
}

/** Cancels an order unless it is over, so that it leaves the store within ten minutes, and notifies its watchers. */
export async function cancelOrder(records: OrderRecords, orderId: string): Promise<void> {
  try {
    await changeOrder(records, orderId, () => ({ type: 'cancel' }))
  } catch (error) {
    const isOver = error instanceof CountersignError && error.reason.startsWith('ORDER_')
    if (!isOver) throw error
  }
}

/** `undefined` if the work for the command has itself changed the order. */
async function decide(order: OrderRecord, step: OrderStep, now: () => number): Promise<OrderOutcome | undefined> {
  if (!('work' in step)) return applyCommand(order, step, now())
  const early = decideEarly(order, step, now())
  if (early !== undefined) return early
  const command = await step.work()
  // The work may have taken a while, so the time is read again.
  return command && applyCommand(order, command, now())
}

function wrongCode(order: OrderRecord): CountersignError {
  const triesLeft = codeTriesLeft(order)
  const after = triesLeft === 0 ? 'no try is left' : triesLeft === 1 ? '1 try left' : `${triesLeft} tries left`
  return new CountersignError('RETURN_CODE_WRONG', `${reasons.RETURN_CODE_WRONG.text}: ${after}`, {
    metadata: { tries_left: String(triesLeft) },
  })
}

function tooManyChecks(): CountersignError {
  return new CountersignError(
    'RATE_LIMITED',
    'Too many proofs of contract wallets were checked for this order; use another wallet, or start a new one',
    { metadata: { limit: 'contract-checks' } },
  )
}

/** {@link contractChecks} of one order. */
export interface ContractChecks extends RemoteChecks {
  /** Whether the order was changed for one. */
  readonly counted: boolean
}

/**
 * Counts in the order what RPCs are asked about it, before they are asked, so that calls at the same time are bounded
 * too. The caller must have been admitted to the order.
 */
export function contractChecks(records: OrderRecords, orderId: string): ContractChecks {
  let counted = false
  const change = async (command: OrderCommand): Promise<void> => {
    await changeOrder(records, orderId, () => command)
    counted = true
  }
  return {
    get counted() {
      return counted
    },
    async ask(ask) {
      await change({ type: 'beginContractCheck' })
      try {
        return await ask()
      } catch (error) {
        await change({ type: 'undoContractCheck' })
        throw error
      }
    },
  }
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
    facts.push({ type: 'order.taken_back', ...order, ...walletOf(after), ...subjectOf(after) })
  }
  if (claimedAgain(before, after)) facts.push({ type: 'order.claimed', ...order })
  const step = after.status === before.status ? undefined : statusFacts(after, order, wrongCode)
  return step === undefined ? facts : [...facts, step]
}

/** Whether another browser of the user has claimed an order of the inbox: it holds the order without a hand-over. */
function claimedAgain(before: OrderRecord, after: OrderRecord): boolean {
  if (before.status === 'created' || after.handOver !== undefined) return false
  return after.challengeTokenHash !== before.challengeTokenHash
}

/** The event of an order that has reached its status. */
function statusFacts(order: OrderRecord, named: AuditOrder, byWrongCode: boolean): AuditFacts | undefined {
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
      return { type: 'order.finalized', ...named, ...walletOf(order), ...subjectOf(order) }
    case 'created':
    case 'expired':
      // `StartOrder` reports the start itself; an expiry is no caller's act.
      return undefined
  }
}

function walletOf(order: OrderRecord): AuditWallet {
  return pick(proofOf(order), ['adapterId', 'address', 'publicKeyHex'])
}
