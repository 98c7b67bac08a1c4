import type { WalletValues } from '../../shared/page-values.ts'
import { isPhone, loadOnDemand } from '../client/page.ts'
import { walletApps } from '../wallets/apps.ts'
import { type DemoWallet, forgetDemoWallet, openDemoWallet } from '../wallets/demo-wallet.ts'
import type { FindWalletsOptions } from '../wallets/find.ts'
import type { FoundWallet, WalletApp } from '../wallets/found.ts'
import type { HubOptions } from '../wallets/hub.ts'
import type { Page } from './open-page.ts'

/**
 * Whether the page offers the demo wallet. Never over https, even if the service says so: it may not know that a proxy
 * in front of it has a name and a certificate.
 */
function offersDemoWallet({ demoWallet }: WalletValues): boolean {
  return demoWallet && location.protocol === 'http:'
}

/** Deletes this browser's demo wallet if the page does not offer it, as after a change of the service's settings. */
export function clearUnavailableWallet(values: WalletValues): void {
  if (!offersDemoWallet(values)) forgetDemoWallet()
}

/** The Nimiq Hub for this page. Its library is a file of its own, which is loaded on demand. */
export function hubFor(appName: string): HubOptions {
  return { load: () => loadOnDemand(() => import('@nimiq/hub-api')), appName }
}

/**
 * What the page looks for: wallets for these adapters (by default all that the service accepts), the Nimiq Hub, and the
 * demo wallet if it is offered.
 */
export function wantedWallets(
  { values, words }: Page<WalletValues>,
  adapterIds: readonly string[] = values.adapterIds,
): FindWalletsOptions {
  const isSupported = (id: string): boolean => openDemoWallet(id) !== undefined
  const adapterId = offersDemoWallet(values) ? adapterIds.find(isSupported) : undefined
  const demo = { id: 'demo', name: words.say('wallet.demo'), kind: 'demo' } as const
  const extra =
    adapterId === undefined
      ? []
      : // Opened again each time: its user may have made another one.
        [{ ...demo, adapterId, connect: () => openDemoWallet(adapterId) as DemoWallet }]
  return { adapterIds, hub: hubFor(values.appName), extra }
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
