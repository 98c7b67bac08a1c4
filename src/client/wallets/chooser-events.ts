import type { FoundWallet, WalletApp } from './found.ts'

/** Events of the chooser, by name: each is a `CustomEvent` with this detail, and bubbles. */
export interface CountersignWalletsEvents {
  /** The user chose a wallet. The event is a part of the user gesture: call `wallet.connect()` in it. */
  'countersign:wallet': { readonly wallet: FoundWallet }
  /** The user opens the page in a wallet's app. It is not known whether the app is installed. */
  'countersign:open-in': { readonly app: WalletApp }
  /** The address for a wallet's app could not be made. */
  'countersign:link-error': { readonly app: WalletApp; readonly error: unknown }
}

/** An address to open in a wallet's app, without a fragment; or a function that makes it when the user taps. */
export type AppAddress = string | (() => string | Promise<string>)
