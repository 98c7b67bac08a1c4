import { CountersignError } from './errors.ts'
import {
  applyCommand,
  decideEarly,
  forgottenAt,
  type OrderCommand,
  type OrderIntent,
  type OrderRecord,
  type OrderRefusal,
  type Outcome,
} from './order.ts'
import type { OrderRecords, VersionedOrder } from './order-records.ts'

/** What is to be done to an order, and by whom. */
export type OrderChange = {
  /** Throws unless the caller may do this. Asked before anything of the order's state is told. */
  readonly admit: (order: OrderRecord) => void
} & (
  | { readonly command: OrderCommand & OrderIntent }
  | {
      readonly intent: OrderIntent
      /** Does the work that the command takes. Called only where the intent moves the order on; again after a lost race. */
      readonly complete: (order: OrderRecord) => OrderCommand | Promise<OrderCommand>
    }
)

/**
 * An order takes at most six changes in its life (four steps and two wrong codes), and each lost race is one of them: more
 * tries than that mean that the storage does not keep its contract.
 */
const maxTries = 16

/** What people are told of each reason for which an order refuses a command. */
const messages: Readonly<Record<OrderRefusal, string>> = {
  ORDER_NOT_FOUND: 'No order has this id, or it ended a while ago; start a new one',
  ORDER_TOKEN_INVALID: 'The token is not the one of this order that this call asks for',
  ORDER_EXPIRED: 'The order has expired; start a new one',
  ORDER_ALREADY_CLAIMED: 'Another phone has claimed the order',
  ORDER_NOT_APPROVED: 'The phone has not approved the order yet',
  ORDER_ALREADY_APPROVED: 'The phone has approved the order already',
  ORDER_CHALLENGE_NOT_READ: 'The phone has to read the challenge first',
  ORDER_REJECTED: 'The order was rejected on the phone',
  ORDER_CANCELLED: 'The order was cancelled on the desktop',
  ORDER_FINALIZED: 'The order is finalized, and its result was handed out',
  CONFIRMATION_CODE_REQUIRED: 'Enter the confirmation code that the desktop shows',
  CONFIRMATION_CODE_WRONG: 'The confirmation code is not the one that the desktop shows',
}

/**
 * Changes an order and returns what it has become, or throws the reason for which it cannot be. A race that another caller
 * wins is run again on what that one left.
 *
 * Whatever is told, returned or thrown, was stored first: no two callers, on whatever instances, learn different things.
 */
export async function changeOrder(records: OrderRecords, orderId: string, change: OrderChange): Promise<OrderRecord> {
  for (let tries = 0; tries < maxTries; tries++) {
    const loaded = await loadOrder(records, orderId)
    change.admit(loaded.order)
    const { order, refusal } = await decide(loaded.order, change)
    if (order !== loaded.order && !(await records.compareAndSet(order, loaded.version))) continue
    if (refusal !== undefined) throw refused(refusal)
    return order
  }
  throw new CountersignError('STORE_UNAVAILABLE', 'Others keep changing the order; try again shortly', {
    retryAfterMs: 1000,
  })
}

/** Reads an order, or throws ORDER_NOT_FOUND; also for one that is forgotten but still stored, whoever asks. */
async function loadOrder(records: OrderRecords, orderId: string): Promise<VersionedOrder> {
  const loaded = await records.load(orderId)
  if (loaded === undefined || Date.now() >= forgottenAt(loaded.order)) throw refused('ORDER_NOT_FOUND')
  return loaded
}

async function decide(order: OrderRecord, change: OrderChange): Promise<Outcome> {
  if ('command' in change) return applyCommand(order, change.command, Date.now())
  const early = decideEarly(order, change.intent, Date.now())
  if (early !== undefined) return early
  const command = await change.complete(order)
  // The work may have taken a while: what the time decides is decided anew.
  return applyCommand(order, command, Date.now())
}

/** A refusal to say to people. */
export function refused(reason: OrderRefusal): CountersignError {
  return new CountersignError(reason, messages[reason])
}
