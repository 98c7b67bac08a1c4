/** Texts of the pages for the client's error codes. */

/** The end of a request, as the phone shows it. */
export interface Ending {
  /** Symbol above the title. */
  readonly seal: 'yes' | 'no' | 'time' | 'stop'
  readonly title: string
  readonly advice: string
}

export const approved: Ending = {
  seal: 'yes',
  title: 'Approved',
  advice: 'Your computer continues by itself. You can close this page.',
}

export const declined: Ending = {
  seal: 'no',
  title: 'Declined',
  advice: 'Nothing was signed. You can close this page.',
}

export const linkIncomplete: Ending = {
  seal: 'stop',
  title: 'This link is incomplete',
  advice: 'Part of it is missing. Scan the code on your computer again with your phone’s camera.',
}

const scanAgain = 'If you still want it, start again on your computer and scan the new code.'

/** Codes after which a request is over. */
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
    title: 'This request is open on another phone',
    advice:
      'It may also be open in another tab of this phone. If that was not you, cancel the request on your computer.',
  },
  ORDER_ALREADY_APPROVED: {
    seal: 'stop',
    title: 'This request was already approved',
    advice: 'If that was not you, cancel it on your computer immediately.',
  },
  ORDER_FINALIZED: {
    seal: 'yes',
    title: 'This request is complete',
    advice: 'It was approved and used on your computer.',
  },
  ORDER_TOKEN_INVALID: {
    seal: 'stop',
    title: 'This link is not valid',
    advice: 'It does not match the request. Scan the code on your computer again.',
  },
}

/** The ending for an error code, or `undefined` if the request is not over. */
export function endingOf(code: string): Ending | undefined {
  return endings[code]
}

/** The ending after the last wrong confirmation code. */
export const tooManyWrongCodes: Ending = {
  seal: 'no',
  title: 'Declined after three wrong codes',
  advice: `Nothing was signed. ${scanAgain}`,
}

const notices: Readonly<Record<string, string>> = {
  NETWORK: 'The service cannot be reached. Nothing is lost. Try again when you are back online.',
  STORE_UNAVAILABLE: 'The service is temporarily unavailable. Nothing is lost. Try again shortly.',
  SERVER_BUSY: 'The service is busy. Nothing is lost. Try again shortly.',
  HOST_UNAVAILABLE: 'The application does not answer. Try again shortly.',
  RATE_LIMITED: 'Too many requests came from your network. Wait a moment, then try again.',
  INTERNAL: 'The service had an error. Try again.',
  WALLET_DECLINED: 'You declined in your wallet. Nothing was signed.',
  WALLET_CLOSED: 'The wallet closed without an answer. Nothing was signed.',
  WALLET_FAILED: 'The wallet failed. Nothing was approved.',
  WALLET_WRONG_KEY: 'The wallet used a different key from the one requested. Nothing was approved.',
  SIGNATURE_INVALID: 'The service did not accept the wallet’s signature. Nothing was approved.',
  LOGIN_REFUSED: 'This wallet is not allowed to sign in.',
  NONCE_EXPIRED: 'That took too long. Try again.',
  NONCE_NOT_FOUND: 'That took too long. Try again.',
}

/** The notice for a failure after which the user can try again. */
export function noticeOf(code: string, message: string): string {
  // An unforeseen error keeps its own message, which may name the setting to change.
  return notices[code] ?? `That did not work: ${message} (${code})`
}
