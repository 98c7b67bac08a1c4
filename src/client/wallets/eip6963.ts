import { requestProviders } from 'mipd'
import { type EthereumProvider, ethereumWallet } from './ethereum-wallet.ts'
import { cleanIcon, cleanName } from './label.ts'
import type { Search } from './list.ts'

/**
 * Finds wallets that announce themselves by EIP-6963. What an announcement says of the wallet is its own claim, the reverse
 * domain name included.
 *
 * mipd's store is not used: one announcement without `info` would keep it from taking any later one.
 */
export const searchEthereum: Search = (found) => {
  if (globalThis.window === undefined) return () => {}
  const providers = new Set<unknown>()
  const labels = new Set<string>()
  const stop = requestProviders((detail: unknown) => {
    const { provider, info } = read(detail) ?? {}
    if (provider === undefined || info === undefined || providers.has(provider)) return
    const detailText = cleanName(info.rdns, '')
    const name = cleanName(info.name, detailText || 'Ethereum')
    // Some announce themselves anew, with another uuid and another proxy object, each time they are asked.
    const label = JSON.stringify([detailText, name])
    if (labels.has(label)) return
    providers.add(provider)
    labels.add(label)
    found.add({
      id: `eip6963:${detailText || name}`,
      name,
      ...cleanIcon(info.icon),
      ...(detailText === '' ? {} : { detail: detailText }),
      adapterId: 'ethereum',
      kind: 'page',
      connect: () => ethereumWallet(provider),
    })
  })
  return () => stop?.()
}

interface Announcement {
  readonly provider: EthereumProvider
  readonly info: { readonly name: unknown; readonly icon: unknown; readonly rdns: unknown }
}

/** `undefined` if an announcement is not one: any script can dispatch the event. */
function read(detail: unknown): Announcement | undefined {
  try {
    const { provider, info } = detail as Announcement
    const { name, icon, rdns } = info
    return typeof provider.request === 'function' ? { provider, info: { name, icon, rdns } } : undefined
  } catch {
    return undefined
  }
}
