import type { ChooserTexts } from './chooser.ts'

/** Texts of `<countersign-sign-in>` in English; `SignInTexts` says what each is for. */
export const englishTexts = {
  starting: 'Making a code …',
  loading: 'One moment.',
  renewed: 'Here’s a new code. Scan it with your phone.',
  created: 'Scan the code with your phone.',
  claimed: 'A phone has opened the request.',
  waiting_user: 'Check that both codes match, then approve on your phone.',
  approved: 'Approved on the phone. One moment.',
  finalized: 'You’re signed in.',
  signed: 'Signed.',
  rejected: 'Declined on the phone.',
  cancelled: 'Cancelled.',
  expired: 'The code has expired.',
  reconnecting: 'Connection lost. Trying again …',
  failed: 'Something went wrong.',
  offline: 'Can’t reach the sign-in service. Check your connection.',
  notTrusted: 'This site isn’t set up for signing in here.',
  notFound: 'No sign-in service answers at this address.',
  busy: 'Too many attempts. Wait a moment.',
  qrLabel: 'QR code for your phone',
  codeLabel: 'Confirmation code',
  stepCamera: 'Open your phone’s camera',
  stepOpen: 'Scan the code and open the page',
  stepApprove: 'Approve with your wallet',
  localOnly: 'A phone can’t open this code: it leads to {host}, which is this computer.',
  answer: 'Continue on your phone. If it shows a code, enter it here.',
  returnCode: 'Approved. Enter the code that your phone shows.',
  returnCodeLabel: 'Code on your phone',
  submit: 'Continue',
  checking: 'Checking the code.',
  wrongCode: 'That’s not the code on your phone. {tries} attempts left.',
  lastTry: 'That’s not the code on your phone. 1 attempt left.',
  codesUsedUp: 'Three wrong codes: the request was cancelled. Start again.',
  tooLate: 'The code wasn’t entered in time. Start again.',
  stopped: 'Cancelled on the phone.',
  keyLost: 'This browser’s data was cleared in the meantime. Start again.',
  expiresIn: 'Expires in {time}',
  copy: 'Copy link',
  copied: 'Link copied. Open it on your phone.',
  copyFailed: 'The link couldn’t be copied.',
  cancel: 'Cancel',
  renew: 'Show a new code',
  tryAgain: 'Try again',
  thisDevice: 'Use a wallet on this device',
  otherDevice: 'Use another device',
  scanElsewhere: 'Scan the code with another device.',
  walletsFailed: 'The wallets couldn’t be loaded. Try again.',
}

/** English texts of the sign-in on this device, without those of the list, which has its own. */
export const englishDeviceTexts = {
  asking: 'Confirm in {wallet}.',
  verifying: 'One moment.',
  declined: 'You declined in your wallet. Choose it to try again.',
  closed: 'The wallet was closed without an answer. Choose it to try again.',
  blocked: 'Your browser blocked the wallet’s window. Allow pop-ups for this site, then choose the wallet again.',
  answerFirst: 'Your wallet already shows a request. Answer it first, then choose the wallet again.',
  switched: 'The account or network in the wallet has changed. Choose the wallet again to sign in with the new one.',
  walletFailed: 'The wallet didn’t sign. Check that it’s unlocked, then choose it again.',
  notAccepted: 'This site doesn’t accept that kind of wallet. Choose another one.',
  notAllowed: 'This wallet isn’t allowed to sign in here.',
  wrongNetwork:
    'This site doesn’t accept smart-contract wallets on that network. Change the network or choose another wallet.',
  late: 'That took too long. Choose the wallet again.',
  demoWallet: 'Demo wallet',
}

/** Texts of the element in a language, with those of its list of wallets. */
export type ElementTexts = Readonly<Record<keyof typeof englishTexts, string>> & {
  readonly wallets: ChooserTexts & Readonly<Record<keyof typeof englishDeviceTexts, string>>
}

/** Texts of the element and of its list of wallets, under the names that the pages have for them. */
export function elementTexts({ wallets, ...order }: ElementTexts) {
  // The pages have names of their own for these: `wallet.looking`, `wallet.demo`.
  const { looking, none, noneButOthers, list, elsewhere, demo, demoWallet, ...device } = wallets
  return { ...named('sign-in.order.', order), ...named('sign-in.wallet.', device) }
}

type Named<Prefix extends string, Name extends string> = Readonly<Record<`${Prefix}${Name}`, string>>

function named<Prefix extends string, Name extends string>(prefix: Prefix, texts: Readonly<Record<Name, string>>) {
  const entries = Object.entries(texts).map(([name, text]) => [prefix + name, text])
  return Object.fromEntries(entries) as Named<Prefix, Name>
}
