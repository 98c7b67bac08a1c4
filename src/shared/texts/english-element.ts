/** Texts of `<countersign-sign-in>` in English; `SignInTexts` says what each is for. */
export const englishTexts = {
  starting: 'One moment.',
  created: 'Scan the code with your phone.',
  claimed: 'A phone has opened the request.',
  waiting_user: 'Compare the confirmation code, then answer on the phone.',
  approved: 'Approved on the phone. One moment.',
  finalized: 'Done.',
  rejected: 'Declined on the phone.',
  cancelled: 'Cancelled.',
  expired: 'The code has expired.',
  reconnecting: 'Connection lost. Trying again …',
  failed: 'Something went wrong.',
  offline: 'Can’t reach the sign-in service. Check your connection.',
  notTrusted: 'This site is not set up for signing in here.',
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
  wrongCode: 'That is not the code on your phone. Attempts left: {tries}.',
  codesUsedUp: 'Three wrong codes: the request was cancelled. Start again.',
  tooLate: 'The code was not entered in time. Start again.',
  stopped: 'Cancelled on the phone.',
  keyLost: 'This browser’s data was cleared in the meantime. Start again.',
  expiresIn: 'Expires in {time}',
  copy: 'Copy link',
  copied: 'Link copied. Open it on your phone.',
  copyFailed: 'The link could not be copied.',
  cancel: 'Cancel',
  renew: 'Show a new code',
  thisDevice: 'Use a wallet on this device',
  otherDevice: 'Use another device',
  scanElsewhere: 'Scan the code with another device.',
  walletsFailed: 'The wallets could not be loaded. Try again.',
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
  walletFailed: 'The wallet did not sign. Check that it is unlocked, then choose it again.',
  notAccepted: 'This site does not accept that kind of wallet. Choose another one.',
  notAllowed: 'This wallet is not allowed to sign in here.',
  wrongNetwork:
    'This site does not accept contract wallets on that network. Change the network or choose another wallet.',
  late: 'That took too long. Choose the wallet again.',
  demoWallet: 'Demo wallet',
}

/** Texts of the element in another language. */
export type ElementTexts = Readonly<Record<keyof typeof englishTexts, string>> & {
  readonly wallets: Readonly<Record<keyof typeof englishDeviceTexts, string>>
}
