import { requestProviders } from 'mipd'
import { CountersignClientError } from '../client/errors.ts'
import { hexOf, walletFailure } from '../client/wallet-answer.ts'
import { type Account, AccountWatch, type SwitchingWallet } from './account-watch.ts'
import { cleanIcon, cleanName, type Search } from './list.ts'

/** The part of an EIP-1193 provider that is used. */
export interface EthereumProvider {
  request(request: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>
  on?(event: string, listener: (value: unknown) => void): unknown
  removeListener?(event: string, listener: (value: unknown) => void): unknown
}

/**
 * The wallet behind a provider of EIP-1193, for the service's adapter `ethereum`. It signs with `personal_sign`
 * (EIP-191), and only with the account, on the chain, that `getAccount` last returned: if the user has switched since,
 * it fails with WALLET_WRONG_KEY.
 */
export function ethereumWallet(provider: EthereumProvider): SwitchingWallet {
  const ask = async (method: string, params?: readonly unknown[]): Promise<unknown> => {
    try {
      return await provider.request(params === undefined ? { method } : { method, params })
    } catch (thrown) {
      throw walletFailure(thrown)
    }
  }
  const accountIn = async (addresses: unknown): Promise<Account> => {
    const address = firstAddress(addresses)
    if (address === undefined) {
      throw new CountersignClientError('WALLET_FAILED', 'The wallet gave no account. Is it locked?')
    }
    const chainId = decimalChainId(await ask('eth_chainId'))
    if (chainId === undefined) throw new CountersignClientError('WALLET_FAILED', 'The wallet did not name its chain')
    return { address, chainId }
  }
  const watch = new AccountWatch((report) => {
    const onAccounts = (addresses: unknown): void => {
      const address = firstAddress(addresses)
      report((before) => (address === undefined ? undefined : { ...before, address }))
    }
    const onChain = (value: unknown): void => {
      const chainId = decimalChainId(value)
      if (chainId !== undefined) report((before) => before && { ...before, chainId })
    }
    provider.on?.('accountsChanged', onAccounts)
    provider.on?.('chainChanged', onChain)
    return () => {
      provider.removeListener?.('accountsChanged', onAccounts)
      provider.removeListener?.('chainChanged', onChain)
    }
  })
  const getAccount = (): Promise<Account> => watch.ask(async () => accountIn(await ask('eth_requestAccounts')))
  return {
    adapterId: 'ethereum',
    getAccount,
    onAccountChange: (listener) => watch.subscribe(listener),
    async sign(message) {
      const { address, chainId } = watch.asked ?? (await getAccount())
      const open = await ask('eth_accounts')
      // Locked since: the wallet asks its user to unlock it.
      const now = await accountIn(firstAddress(open) === undefined ? await ask('eth_requestAccounts') : open)
      if (now.address.toLowerCase() !== address.toLowerCase() || now.chainId !== chainId) {
        throw new CountersignClientError('WALLET_WRONG_KEY', 'The user has switched to another account or chain')
      }
      return {
        signature: await ask('personal_sign', [`0x${hexOf(new TextEncoder().encode(message))}`, address]),
        address,
      }
    },
  }
}

function firstAddress(addresses: unknown): string | undefined {
  const [first] = Array.isArray(addresses) ? (addresses as readonly unknown[]) : []
  return typeof first === 'string' && /^0x[0-9a-f]{40}$/i.test(first) ? first : undefined
}

/** A chain id of EIP-155, in decimal. EIP-1193 has them in hex; some wallets give a decimal number. */
function decimalChainId(chainId: unknown): string | undefined {
  const text = String(chainId)
  return /^(0x[0-9a-f]+|\d+)$/i.test(text) ? String(BigInt(text)) : undefined
}

/**
 * Finds wallets that announce themselves by EIP-6963. What an announcement says of the wallet is its own claim, the
 * reverse domain name included.
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

/** `undefined` if an announcement is not one: any script can dispatch the event. */
function read(detail: unknown) {
  try {
    const { provider, info } = detail as { readonly provider: EthereumProvider; readonly info: Record<string, unknown> }
    const { name, icon, rdns } = info
    return typeof provider.request === 'function' ? { provider, info: { name, icon, rdns } } : undefined
  } catch {
    return undefined
  }
}
