import type { RemoteChecks } from '../wallet/wallet.ts'
import { changeOrder } from './change.ts'
import type { OrderRecords, VersionedOrder } from './records.ts'

/** {@link contractChecks} of one order. */
export interface ContractChecks extends RemoteChecks {
  /** Whether the order was changed for one. */
  readonly counted: boolean
}

/**
 * Counts in the order what RPCs are asked about it, before they are asked, so that calls at the same time are bounded too. `loaded` is
 * the order as the caller, who was admitted, has read it.
 */
export function contractChecks(records: OrderRecords, loaded: VersionedOrder): ContractChecks {
  let latest = loaded
  const change = async (type: 'beginContractCheck' | 'undoContractCheck'): Promise<void> => {
    latest = await changeOrder(records, loaded.order.orderId, { admit: () => {}, command: { type } }, latest)
  }
  return {
    get counted() {
      return latest !== loaded
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
