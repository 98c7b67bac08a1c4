import { CountersignError, reasons, refused } from '../../shared/errors.ts'
import type { RemoteChecks } from '../wallet/wallet.ts'
import {
  applyCommand,
  codeTriesLeft,
  decideEarly,
  forgottenAt,
  type OrderCommand,
  type OrderIntent,
  type OrderRecord,
  type Outcome,
} from './order.ts'
import type { OrderRecords } from './records.ts'

/** A change of an order by a caller. */
export type OrderChange = {
  /** Throws unless the caller may do this. Called before anything about the order's state is revealed. */
  readonly admit: (order: OrderRecord) => void | Promise<void>
  /** Told what the order was and is, once the change is stored. Not called if nothing changes. Must not throw. */
  readonly stored?: ((before: OrderRecord, after: OrderRecord) => void) | undefined
} & (
  | { readonly command: OrderCommand & OrderIntent }
  | {
      readonly intent: OrderIntent | ((order: OrderRecord) => OrderIntent)
      /**
       * Does the work for the command. Called only if the intent moves the order on, and again after a lost race.
       * `undefined` if the work itself has changed the order: it is then read and decided anew.
       */
      readonly complete: (order: OrderRecord) => Promise<OrderCommand | undefined>
    }
)

/**
 * Each lost race means one change of the order: four steps, three wrong codes, a take-back and what became of it, and a
 * few hand-overs. If more tries than that are lost, the storage does not keep its contract.
 */
const maxTries = 32

/**
 * Changes an order and returns the new one, or throws the reason for which it cannot be changed. If another caller is
 * faster, the change is decided again on what that one stored.
 *
 * Everything that is returned or thrown was stored first, so no two callers, on any instances, learn different
 * things.
 */
export async function changeOrder(records: OrderRecords, orderId: string, change: OrderChange): Promise<OrderRecord> {
  for (let tries = 0; tries < maxTries; tries++) {
    const loaded = await records.load(orderId)
    if (loaded === undefined || records.now() >= forgottenAt(loaded.order)) throw refused('ORDER_NOT_FOUND')
    const before = loaded.order
    await change.admit(before)
    const outcome = await decide(records, before, change)
    if (outcome === undefined) continue
    const { order, refusal } = outcome
    if (order !== before) {
      if (!(await records.compareAndSet(order, loaded.version))) continue
      if (order.status !== before.status) records.observe?.(order)
      change.stored?.(before, order)
    }
    if (refusal === 'RETURN_CODE_WRONG') throw wrongCode(order)
    if (refusal === 'RATE_LIMITED') throw tooManyChecks()
    if (refusal !== undefined) throw refused(refusal)
    return order
  }
  throw new CountersignError(
    'STORE_UNAVAILABLE',
    'The order could not be stored, because it kept changing; try again shortly',
    {
      retryAfterMs: 1000,
    },
  )
}

/** `undefined` if the work for the command has itself changed the order. */
async function decide(records: OrderRecords, order: OrderRecord, change: OrderChange): Promise<Outcome | undefined> {
  if ('command' in change) return applyCommand(order, change.command, records.now())
  const intent = typeof change.intent === 'function' ? change.intent(order) : change.intent
  const early = decideEarly(order, intent, records.now())
  if (early !== undefined) return early
  const command = await change.complete(order)
  // The work may have taken a while, so the time is read again.
  return command && applyCommand(order, command, records.now())
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
  const change = async (type: 'beginContractCheck' | 'undoContractCheck'): Promise<void> => {
    await changeOrder(records, orderId, { admit: () => {}, command: { type } })
    counted = true
  }
  return {
    get counted() {
      return counted
    },
    async ask(ask) {
      await change('beginContractCheck')
      try {
        return await ask()
      } catch (error) {
        await change('undoContractCheck')
        throw error
      }
    },
  }
}
