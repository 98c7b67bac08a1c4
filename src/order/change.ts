import { CountersignError } from '../errors.ts'
import {
  applyCommand,
  codeTriesLeft,
  decideEarly,
  forgottenAt,
  type OrderCommand,
  type OrderIntent,
  type OrderRecord,
  type OrderRefusal,
  type Outcome,
} from './order.ts'
import type { OrderRecords, VersionedOrder } from './records.ts'

/** A change of an order by a caller. */
export type OrderChange = {
  /** Throws unless the caller may do this. Called before anything about the order's state is told. */
  readonly admit: (order: OrderRecord) => void
  /** Told what the order was and is, once the change is stored. Not called if nothing changes. Must not throw. */
  readonly stored?: ((before: OrderRecord, after: OrderRecord) => void) | undefined
} & (
  | { readonly command: OrderCommand & OrderIntent }
  | {
      readonly intent: OrderIntent | ((order: OrderRecord) => OrderIntent)
      /**
       * Does the work for the command. Called only if the intent moves the order on, and again after a lost race. `undefined` if the
       * work itself has changed the order: it is then read and decided anew.
       */
      readonly complete: (loaded: VersionedOrder) => Promise<OrderCommand | undefined>
    }
)

/**
 * Each lost race means one change of the order: four steps, five wrong codes, a take-back and what became of it, and a few
 * hand-overs. If more tries than that are lost, the storage does not keep its contract.
 */
const maxTries = 32

/** Messages of the reasons for which an order refuses a command. */
const messages: Readonly<Record<OrderRefusal, string>> = {
  ORDER_NOT_FOUND: 'No order has this id, or it ended more than ten minutes ago; start a new one',
  ORDER_TOKEN_INVALID: 'The token is not the one of this order that this call takes',
  ORDER_EXPIRED: 'The order has expired; start a new one',
  ORDER_ALREADY_CLAIMED: 'Another phone has already claimed the order',
  ORDER_NOT_APPROVED: 'The phone has not approved the order yet',
  ORDER_ALREADY_APPROVED: 'The phone has already approved the order',
  ORDER_CHALLENGE_NOT_READ: 'The phone has not read the challenge yet; read it first',
  ORDER_REJECTED: 'The order was rejected on the phone, or by three wrong codes; start a new one',
  ORDER_CANCELLED: 'The order was cancelled on the desktop; start a new one',
  ORDER_FINALIZED: 'The order is finalized, and its result can no longer be fetched; start a new one',
  CONFIRMATION_CODE_REQUIRED: 'Enter the confirmation code that the desktop shows',
  CONFIRMATION_CODE_WRONG: 'The confirmation code is not the one that the desktop shows',
  RETURN_CODE_REQUIRED: 'Enter the code that the phone shows',
  RETURN_CODE_WRONG: 'The code is not the one that the phone shows',
  RATE_LIMITED:
    'Too many proofs of contract wallets were checked for this order; use another wallet, or start a new one',
  HANDOVER_INVALID: 'The ticket is wrong, used, replaced or more than 60 seconds old; make a new one',
}

/**
 * Changes an order and returns the new one, or throws the reason for which it cannot be changed. If another caller is
 * faster, the change is decided again on what that one stored.
 *
 * Everything that is returned or thrown was stored first, so no two callers, on whatever instances, learn different
 * things. `known` is the order as the caller last read or stored it, and spares a read. A change that is decided on it is stored only
 * if nobody else has changed the order; what would change nothing is decided again on what is read anew.
 */
export async function changeOrder(
  records: OrderRecords,
  orderId: string,
  change: OrderChange,
  known?: VersionedOrder,
): Promise<VersionedOrder> {
  let found = known
  for (let tries = 0; tries < maxTries; tries++) {
    const loaded = requireRemembered(records, found ?? (await records.load(orderId)))
    found = undefined
    change.admit(loaded.order)
    const outcome = await decide(records, loaded, change)
    if (outcome === undefined) continue
    const { order, refusal } = outcome
    let { version } = loaded
    if (order === loaded.order) {
      if (loaded === known) continue
    } else {
      if (!(await records.compareAndSet(order, version))) continue
      version++
      if (order.status !== loaded.order.status) records.observe?.(order)
      change.stored?.(loaded.order, order)
    }
    if (refusal === 'CONFIRMATION_CODE_WRONG') throw wrongCode(refusal, order.wrongCodes)
    if (refusal === 'RETURN_CODE_WRONG') throw wrongCode(refusal, order.wrongReturnCodes)
    if (refusal !== undefined) throw refused(refusal)
    return { order, version }
  }
  throw new CountersignError(
    'STORE_UNAVAILABLE',
    'The order could not be stored, because it kept changing; try again shortly',
    {
      retryAfterMs: 1000,
    },
  )
}

/** Throws ORDER_NOT_FOUND if there is no order, or if it is forgotten but still stored. */
function requireRemembered(records: OrderRecords, loaded: VersionedOrder | undefined): VersionedOrder {
  if (loaded === undefined || records.now() >= forgottenAt(loaded.order)) throw refused('ORDER_NOT_FOUND')
  return loaded
}

/** `undefined` if the work for the command has itself changed the order. */
async function decide(
  records: OrderRecords,
  loaded: VersionedOrder,
  change: OrderChange,
): Promise<Outcome | undefined> {
  const { order } = loaded
  if ('command' in change) return applyCommand(order, change.command, records.now())
  const intent = typeof change.intent === 'function' ? change.intent(order) : change.intent
  const early = decideEarly(order, intent, records.now())
  if (early !== undefined) return early
  const command = await change.complete(loaded)
  // The work may have taken a while, so the time is read again.
  return command && applyCommand(order, command, records.now())
}

function wrongCode(
  reason: 'CONFIRMATION_CODE_WRONG' | 'RETURN_CODE_WRONG',
  wrongCodes: number | undefined,
): CountersignError {
  const triesLeft = codeTriesLeft(wrongCodes)
  const after = triesLeft === 0 ? 'no try is left' : triesLeft === 1 ? '1 try left' : `${triesLeft} tries left`
  return new CountersignError(reason, `${messages[reason]}: ${after}`, {
    metadata: { tries_left: String(triesLeft) },
  })
}

/** A refusal with its message for people. `cause` is for the log. */
export function refused(reason: OrderRefusal, cause?: Error): CountersignError {
  return new CountersignError(reason, messages[reason], {
    ...(reason === 'RATE_LIMITED' ? { metadata: { limit: 'contract-checks' } } : {}),
    cause,
  })
}
