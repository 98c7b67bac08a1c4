import { type NimiqProvider, nimiqPay } from '../wallet.ts'
import type { Search } from './list.ts'

/** How often the page looks for the provider, in milliseconds. Its maker documents no event for it. */
const pollMs = 100

/** How long a page in Nimiq Pay waits for the provider, in milliseconds. */
const patienceMs = 10_000

/**
 * Finds the wallet of Nimiq Pay. The app sets `window.nimiqPay` before any script of the page runs, and the provider
 * `window.nimiq` some time later. Source: the Nimiq developer centre, Mini Apps.
 */
export const searchNimiqPay: Search = (found) => {
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
