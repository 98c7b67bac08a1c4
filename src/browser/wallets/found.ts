import type { Wallet } from '../client/wallet.ts'

/** A wallet that a page can use. */
export interface FoundWallet {
  /** Identifier, stable while the page is open, such as `eip6963:io.metamask`. */
  readonly id: string
  /** Name as the wallet gives it, without control and text-direction characters, at most 60 characters. */
  readonly name: string
  /** Icon as a `data:` URI, for `<img>` only: it is the wallet's own. */
  readonly icon?: string
  /**
   * What else the wallet says of itself, such as `io.metamask`: it tells wallets of one name apart. It is not checked.
   */
  readonly detail?: string
  /** Adapter of the service that its signatures are for. */
  readonly adapterId: string
  /**
   * Where it is: `page`, in this browser (an extension, or the app that opened the page); `window`, at a site of its
   * own that opens in a window or takes the place of the page; `demo`, the demo wallet, which must not look like a
   * real one.
   */
  readonly kind: 'page' | 'window' | 'demo'
  /** Returns the wallet. It may ask its user; call it in a user gesture, before anything is awaited. */
  connect(): Promise<Wallet> | Wallet
}

/** Looks for wallets until it is stopped: some appear seconds after the page. */
export interface WalletFinder {
  /** Those found so far: those in the page first, in the order in which they appeared. */
  readonly wallets: readonly FoundWallet[]
  /**
   * Whether more are likely to appear soon, so that a page says that it looks rather than that there are none. The
   * search itself goes on until it is stopped.
   */
  readonly isLooking: boolean
  /** Calls `changed` whenever `wallets` or `isLooking` changed. Returns a function that ends it. */
  subscribe(changed: () => void): () => void
  stop(): void
}

/** A wallet with a browser of its own, which can open the page. */
export interface WalletApp {
  readonly id: string
  readonly name: string
  /** Icon as a `data:` URI. */
  readonly icon?: string
  /** Adapters of the service that the wallet can sign for. */
  readonly adapterIds: readonly string[]
  /** Address at which its maker offers it, for people who have no wallet. */
  readonly store?: string
  /** Link that opens an address in the wallet's browser. */
  linkTo(url: string): string
}

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
