import { getWallets } from '@wallet-standard/app'
import { cleanIcon, cleanName } from './label.ts'
import type { Search } from './list.ts'
import { isSolanaWallet, type StandardWallet, solanaWallet } from './solana-wallet.ts'

/** Finds wallets of Solana that register by Wallet Standard, and drops those that unregister. */
export const searchSolana: Search = (found) => {
  if (globalThis.window === undefined) return () => {}
  const { get, on } = getWallets()
  const removals = new Map<StandardWallet, () => void>()
  const add = (...wallets: readonly StandardWallet[]): void => {
    for (const wallet of wallets) {
      const label = removals.has(wallet) ? undefined : labelOf(wallet)
      if (label === undefined) continue
      const remove = found.add({
        id: `wallet-standard:${label.name}`,
        ...label,
        adapterId: 'solana',
        kind: 'page',
        connect: () => solanaWallet(wallet),
      })
      removals.set(wallet, remove)
    }
  }
  const stops = [
    on('register', add),
    on('unregister', (...wallets) => {
      for (const wallet of wallets) {
        removals.get(wallet)?.()
        removals.delete(wallet)
      }
    }),
  ]
  add(...get())
  return () => {
    for (const stop of stops) stop()
  }
}

/** `undefined` if it is no wallet of Solana, or none at all: any script can register anything. */
function labelOf(wallet: StandardWallet): { readonly name: string; readonly icon?: string } | undefined {
  try {
    return isSolanaWallet(wallet) ? { name: cleanName(wallet.name, 'Solana'), ...cleanIcon(wallet.icon) } : undefined
  } catch {
    return undefined
  }
}
