import { type AdapterId, adapterIds as builtInIds } from '../../shared/adapters.ts'
import { type NimiqProvider, nimiqPay } from '../client/wallet.ts'
import { searchEthereum } from './ethereum-wallet.ts'
import type { FoundWallet, WalletFinder } from './found.ts'
import { type HubOptions, searchHub } from './hub.ts'
import { type Search, WalletList } from './list.ts'
import { searchSolana } from './solana-wallet.ts'
import { marks } from './wallet-logos.ts'

/** Options of {@link findWallets}. */
export interface FindWalletsOptions {
  /**
   * Adapters that the service is configured with, or the one that an order asks for: only their wallets are found.
   * Default: all.
   */
  readonly adapterIds?: readonly string[]
  /** The Nimiq Hub. Default: it is not listed. */
  readonly hub?: HubOptions
  /** Wallets that the page offers itself, such as a demo wallet. */
  readonly extra?: readonly FoundWallet[]
}

/** Time in which wallets of the browser announce themselves if they are asked, in milliseconds. Some come later. */
const usualMs = 1500

/**
 * Looks for wallets in the page: Nimiq Pay's provider, wallets of Ethereum (EIP-6963) and of Solana (Wallet Standard).
 * Asks no wallet for anything before it is connected. Without a window, it finds none.
 */
export function findWallets({ adapterIds, hub, extra = [] }: FindWalletsOptions = {}): WalletFinder {
  const list = new WalletList()
  const wants = (adapterId: string): boolean => adapterIds === undefined || adapterIds.includes(adapterId)
  const searches = {
    nimiq: [searchNimiqPay, ...(hub === undefined ? [] : [searchHub(hub)])],
    // Tools sign for it, and no wallet of a browser.
    ed25519: [],
    ethereum: [searchEthereum],
    solana: [searchSolana],
  } satisfies Record<AdapterId, readonly Search[]>
  const stopLooking = list.look()
  const timer = setTimeout(stopLooking, usualMs)
  const wanted = builtInIds.filter(wants).flatMap((id): readonly Search[] => searches[id])
  const stops = wanted.map((search) => search(list))
  for (const wallet of extra) if (wants(wallet.adapterId)) list.add(wallet)
  return {
    get wallets() {
      return list.wallets
    },
    get isLooking() {
      return list.isLooking
    },
    subscribe: (changed) => list.subscribe(changed),
    stop() {
      clearTimeout(timer)
      stopLooking()
      for (const stop of stops) stop()
    },
  }
}

/** How often the page looks for the provider, in milliseconds. Its maker documents no event for it. */
const pollMs = 100

/** How long a page in Nimiq Pay waits for the provider, in milliseconds. */
const patienceMs = 10_000

/**
 * Finds the wallet of Nimiq Pay. The app sets `window.nimiqPay` before any script of the page runs, and the provider
 * `window.nimiq` some time later. Source: the Nimiq developer centre, Mini Apps.
 */
const searchNimiqPay: Search = (found) => {
  const host = globalThis as { nimiq?: NimiqProvider; nimiqPay?: unknown }
  const stopLooking = host.nimiqPay === undefined ? () => {} : found.look()
  const startedAt = Date.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  const poll = (): void => {
    const isThere = nimiqPay(host.nimiq) !== undefined
    if (isThere) {
      found.add({
        id: 'nimiq-pay',
        name: 'Nimiq Pay',
        icon: marks['nimiq-pay'],
        adapterId: 'nimiq',
        kind: 'page',
        connect: () => nimiqPay(host.nimiq) ?? Promise.reject(new Error('Nimiq Pay is gone')),
      })
    }
    if (isThere || Date.now() - startedAt >= patienceMs) stopLooking()
    else timer = setTimeout(poll, pollMs)
  }
  poll()
  return () => {
    clearTimeout(timer)
    stopLooking()
  }
}
