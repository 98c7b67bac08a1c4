import type { RemoteChecks } from '../wallet/wallet.ts'
import { changeOrder } from './change.ts'
import type { OrderRecords } from './records.ts'

/** Counts in the order what RPCs are asked about it, before they are asked, so that calls at the same time are bounded too. */
export function contractChecks(records: OrderRecords, orderId: string): RemoteChecks {
  const change = async (type: 'beginContractCheck' | 'undoContractCheck'): Promise<void> => {
    // The caller was admitted.
    await changeOrder(records, orderId, { admit: () => {}, command: { type } })
  }
  return {
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
