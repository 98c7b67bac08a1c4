/** Finding wallets in browsers, and a component to choose one. Everything that is not listed here is private. */

export { type ChooserTexts, englishTexts } from '../../shared/texts/chooser.ts'
export { germanTexts } from '../../shared/texts/german-element.ts'
export { isPhone } from '../client/page.ts'
export type { Account, SwitchingWallet } from './account-watch.ts'
export { walletApps } from './apps.ts'
export { CountersignWallets, defineWalletChooser } from './chooser.ts'
export { type EthereumProvider, ethereumWallet } from './ethereum-wallet.ts'
export { type FindWalletsOptions, findWallets } from './find.ts'
export type { AppAddress, CountersignWalletsEvents, FoundWallet, WalletApp, WalletFinder } from './found.ts'
export {
  type HubAnswer,
  type HubApi,
  type HubApiClass,
  type HubModule,
  type HubOptions,
  type HubOutcome,
  type HubState,
  takeHubAnswer,
} from './hub.ts'
export { type StandardAccount, type StandardWallet, solanaWallet } from './solana-wallet.ts'
