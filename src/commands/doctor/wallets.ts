import { checkAdapters, walletAdapters } from '../../wallet/adapters.ts'
import { type Check, ok, problem, warning } from './check.ts'
import type { Examination } from './examination.ts'
import { messageOf } from './words.ts'

/** Whether the JSON-RPC servers answer that contract wallets are checked with. */
export const walletsCheck: Check<Examination> = {
  name: 'wallets',
  needs: [],
  limitMs: 8000,
  applies: ({ settings }) => settings.evmRpc !== undefined,
  async run({ settings }) {
    const warnings: string[] = []
    try {
      const adapters = walletAdapters(settings.adapters, settings)
      // Of the fields, only the chain is repeated: an error of the RPC can name its address, which can contain a key.
      await checkAdapters(adapters, settings, (text, fields) => {
        warnings.push(fields?.chainId === undefined ? text : `chain ${fields.chainId}: ${text}`)
      })
    } catch (error) {
      return [problem(messageOf(error), 'Correct COUNTERSIGN_EVM_RPC or COUNTERSIGN_ADAPTERS.')]
    }
    if (warnings.length === 0) return [ok('the servers of COUNTERSIGN_EVM_RPC answer for their chains')]
    return warnings.map((text) => warning(text, 'Correct COUNTERSIGN_EVM_RPC or COUNTERSIGN_ADAPTERS.'))
  },
}
