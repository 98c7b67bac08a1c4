import { loadOnDemand } from '../client/page.ts'
import { type DemoWallet, forgetDemoWallet, openDemoWallet } from '../wallets/demo-wallet.ts'
import {
  type FindWalletsOptions,
  type FoundWallet,
  type HubAnswer,
  type HubOptions,
  isPhone,
  takeHubAnswer,
  type WalletApp,
  walletApps,
} from '../wallets/index.ts'
import type { ServiceFacts } from './service-facts.ts'

/** The demo wallet, for the first of these adapters that it supports; `undefined` if the service does not offer it. */
export function offeredDemoWallet({ demoWallet }: ServiceFacts, adapterIds: readonly string[]): DemoWallet | undefined {
  if (!demoWallet) return undefined
  for (const id of adapterIds) {
    const wallet = openDemoWallet(id)
    if (wallet !== undefined) return wallet
  }
  return undefined
}

/** Deletes the demo wallet of this browser if the service does not offer it, as after a change of its settings. */
export function clearUnavailableWallet({ demoWallet }: ServiceFacts): void {
  if (!demoWallet) forgetDemoWallet()
}

/** The Nimiq Hub for this page. Its library is a file of its own, which is loaded on demand. */
export function hubFor(appName: string): HubOptions {
  return {
    load: () => loadOnDemand(() => import('@nimiq/hub-api')),
    appName,
    // Back on a page without https, the browser would not say that it comes from the Hub, and the answer would not
    // count.
    redirect: isPhone() && location.protocol === 'https:',
  }
}

/**
 * What the page looks for: wallets for these adapters, the Nimiq Hub, and the demo wallet under this name if it is
 * offered.
 */
export function wantedWallets(
  facts: ServiceFacts,
  adapterIds: readonly string[],
  names: { readonly app: string; readonly demo: string },
): FindWalletsOptions {
  const adapterId = offeredDemoWallet(facts, adapterIds)?.adapterId
  const demo = { id: 'demo', name: names.demo, kind: 'demo' } as const
  const extra =
    adapterId === undefined
      ? []
      : // Opened again each time: its user may have made another one.
        [{ ...demo, adapterId, connect: () => openDemoWallet(adapterId) as DemoWallet }]
  return { adapterIds, hub: hubFor(names.app), extra }
}

/**
 * Apps that can open a page in a browser of their own and have wallets for these adapters, those for the first adapter
 * first. None but on phones.
 */
export function appsFor(adapterIds: readonly string[]): readonly WalletApp[] {
  if (!isPhone()) return []
  const rank = (app: WalletApp): number =>
    adapterIds.indexOf(app.adapterIds.find((id) => adapterIds.includes(id)) ?? '')
  return walletApps.filter((app) => rank(app) >= 0).sort((a, b) => rank(a) - rank(b))
}

/**
 * The wallet that needs no choice: Nimiq Pay inside its app, else the only one of this browser, else the demo wallet.
 */
export function obviousWallet(wallets: readonly FoundWallet[]): FoundWallet | undefined {
  const here = wallets.filter(({ kind }) => kind === 'page')
  const nimiqPay = here.find(({ id }) => id === 'nimiq-pay')
  if (nimiqPay !== undefined || here.length > 1) return nimiqPay
  // Nimiq Pay provides its wallet some time after it has opened the page.
  return here[0] ?? ('nimiqPay' in globalThis ? undefined : wallets.find(({ kind }) => kind === 'demo'))
}

/** Whether a wallet asks its user for something before it is asked to sign, so that the user has to tap first. */
export function asksFirst({ kind, adapterId }: FoundWallet): boolean {
  return kind === 'page' && adapterId !== 'nimiq'
}

/**
 * What the Nimiq Hub answered, if the browser comes back from there. Call it before anything changes the page's
 * address. A reload gets the same answer until `forgetHubAnswer`.
 */
export async function readHubAnswer(appName: string): Promise<HubAnswer | undefined> {
  try {
    return await takeHubAnswer(hubFor(appName))
  } catch {
    // Its library did not load. The user can ask the Hub again.
    return undefined
  }
}
