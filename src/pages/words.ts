/** What the pages tell people about the client's error codes. */

/** How a request ended, for the phone. */
export interface Ending {
  /** Which seal stands above it. */
  readonly seal: 'yes' | 'no' | 'time' | 'stop'
  readonly title: string
  readonly advice: string
}

export const approved: Ending = {
  seal: 'yes',
  title: 'Approved',
  advice: 'Go back to your computer: it goes on by itself. You can close this page.',
}

export const declined: Ending = {
  seal: 'no',
  title: 'Declined',
  advice: 'Nothing was signed, and your computer has been told. You can close this page.',
}

export const linkIncomplete: Ending = {
  seal: 'stop',
  title: 'This link is not complete',
  advice: 'A part of it is missing. Scan the code on your computer again, with your phone’s camera.',
}

const scanAgain = 'If you still want it, start again on your computer and scan the new code.'

/** The codes after which nothing more can be done with a request. */
const endings: Readonly<Record<string, Ending>> = {
  ORDER_EXPIRED: { seal: 'time', title: 'This request has expired', advice: `Nothing was signed. ${scanAgain}` },
  ORDER_NOT_FOUND: { seal: 'time', title: 'This request is over', advice: scanAgain },
  ORDER_CANCELLED: {
    seal: 'no',
    title: 'Cancelled on your computer',
    advice: `Nothing was signed. ${scanAgain}`,
  },
  ORDER_REJECTED: { seal: 'no', title: 'This request was declined', advice: `Nothing was signed. ${scanAgain}` },
  ORDER_ALREADY_CLAIMED: {
    seal: 'stop',
    title: 'Another phone has this request',
    advice:
      'Another phone, or another tab of this one, was first to review it. If that was not you, cancel it on your computer.',
  },
  ORDER_ALREADY_APPROVED: {
    seal: 'stop',
    title: 'This request was approved already',
    advice: 'If that was not you, cancel it on your computer at once.',
  },
  ORDER_FINALIZED: { seal: 'yes', title: 'This request is done', advice: 'It was approved and used on your computer.' },
  ORDER_TOKEN_INVALID: {
    seal: 'stop',
    title: 'This link is not valid',
    advice: 'It does not fit the request. Scan the code on your computer again.',
  },
}

/** The ending that an error code means, if it means one. */
export function endingOf(code: string): Ending | undefined {
  return endings[code]
}

/** A code was wrong for the last time. */
export const tooManyWrongCodes: Ending = {
  seal: 'no',
  title: 'Declined: the code was wrong three times',
  advice: `Nothing was signed. ${scanAgain}`,
}

const notices: Readonly<Record<string, string>> = {
  NETWORK: 'There is no connection to the service. Nothing is lost: try again when you are back online.',
  STORE_UNAVAILABLE: 'The service has a problem at the moment. Nothing is lost: try again shortly.',
  RATE_LIMITED: 'There were too many requests from your network. Wait a moment, then try again.',
  INTERNAL: 'The service failed. Try again.',
  WALLET_DECLINED: 'You declined in your wallet. Nothing was signed.',
  WALLET_CLOSED: 'The wallet closed without an answer. Nothing was signed.',
  WALLET_FAILED: 'The wallet failed. Nothing was approved.',
  WALLET_WRONG_KEY: 'The wallet answered with a key that does not fit. Nothing was approved.',
  SIGNATURE_INVALID: 'The service did not accept the wallet’s signature. Nothing was approved.',
  LOGIN_REFUSED: 'The service does not let this wallet sign in.',
  NONCE_EXPIRED: 'That took too long. Try again.',
  NONCE_NOT_FOUND: 'That took too long. Try again.',
}

/** A failure after which the same thing can be tried again, in a sentence. */
export function noticeOf(code: string, message: string): string {
  // What nobody foresaw keeps the words that came with it: they name the setting to change.
  return notices[code] ?? `That did not work: ${message} (${code})`
}
