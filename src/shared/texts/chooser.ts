/** Texts of the chooser. Set its property `texts` to change or translate them. */
export interface ChooserTexts {
  /** While wallets may still appear, and none is there. */
  readonly looking: string
  /** Once there is one. */
  readonly choose: string
  /** If there is nothing to choose. */
  readonly none: string
  /** On a computer whose browser has none, above what can be used without one. */
  readonly noneButOthers: string
  /** What else to do if this browser has none, on a computer, and on a phone. */
  readonly noneOnComputer: string
  readonly noneOnPhone: string
  /** What people open who have no wallet, and what they then read above three wallets to get. */
  readonly noWallet: string
  readonly getWallet: string
  /** Name of the list, for screen readers. */
  readonly list: string
  /** For a wallet at a site of its own. */
  readonly elsewhere: string
  /** For a wallet that must not look like a real one. */
  readonly demo: string
  /** Heading of the links to wallet apps. */
  readonly apps: string
  /** `{name}` stands for the app's name. */
  readonly openIn: string
  readonly opening: string
  /** After the tap: phones do not tell whether an app has opened. */
  readonly openAgain: string
  readonly openFailed: string
}

export const englishTexts: ChooserTexts = {
  looking: 'Looking for wallets …',
  choose: 'Choose your wallet.',
  none: 'No wallet found in this browser.',
  noneButOthers: 'No wallet extension found. You can still use:',
  noneOnComputer: 'Install one for this browser and load the page again, or use a wallet on your phone.',
  noneOnPhone: 'Open this page in the browser of your wallet’s app.',
  noWallet: 'I don’t have a wallet',
  getWallet:
    'A wallet is a free app that keeps your key and signs for you: install one of these, then load this page again.',
  list: 'Wallets',
  elsewhere: 'opens its own site',
  demo: 'For trying this out, not a real one',
  apps: 'Open in your wallet’s app',
  openIn: 'Open in {name}',
  opening: 'One moment …',
  openAgain: 'If the app didn’t open, tap again. It may not be installed.',
  openFailed: 'Something went wrong. Try again.',
}
