import { englishTexts as list } from '../chooser.ts'
import { elementTexts, englishDeviceTexts, englishTexts } from '../english-element.ts'

/** Texts of the sign-in and of the choice of a wallet. */
export const signIn = {
  'wallet.choose': 'Choose a wallet',
  'wallet.apps': 'Continue in your wallet',
  'wallet.use': 'Continue with {wallet}',
  'wallet.other': 'Change',
  'wallet.another': 'Choose another wallet',
  'wallet.for-another': 'Use {address}. {wallet} is another wallet.',
  'wallet.looking': 'Looking for wallets …',
  'wallet.none': 'No wallet found in this browser.',
  'wallet.none.others': 'No wallet extension found. You can still use:',
  'wallet.none.kind': 'This needs a {kind} wallet. This browser has none.',
  'wallet.none.account': 'Open this page in a browser with your other wallet.',
  'wallet.list': 'Wallets',
  'wallet.elsewhere': 'opens its own site',
  'wallet.demo': 'Demo wallet',
  'wallet.demo.about': 'For trying this out, not a real one',
  'wallet.window': '{wallet} opens when you approve. Choose the address there.',
  'wallet.asked': 'Confirm in {wallet}.',

  'sign-in.title': 'Sign in',
  'sign-in.text': 'No password needed. Your wallet signs a one-time message for {host}.',
  'sign-in.wanted': 'Use the wallet {address}.',
  'sign-in.wanted.other': 'You were asked to use another wallet: {address}',
  'sign-in.done.title': 'You’re signed in',
  'sign-in.done.continue': 'Continue',
  'sign-in.done.other': 'Sign out and use another wallet',
  'sign-in.not-kept': 'This browser blocked the sign-in cookie. Allow cookies for {host} and try again.',
  'sign-in.lan': 'To try it with a phone, start with {command}',
  'sign-in.open-here': 'Open here',
  'sign-in.open-here.hint': 'In a new tab. Come back to this one afterwards.',
  'sign-in.link': 'Sign-in link',

  ...elementTexts({ ...englishTexts, wallets: { ...list, ...englishDeviceTexts } }),
} as const
