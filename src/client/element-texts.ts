import type { CountersignClientError } from './errors.ts'
import type { OrderStatus } from './types.ts'

/** What the element says; set its `texts` property to say it in another language. */
export interface SignInTexts extends Record<OrderStatus, string> {
  readonly starting: string
  readonly reconnecting: string
  readonly failed: string
  readonly offline: string
  readonly busy: string
  readonly qrLabel: string
  readonly codeLabel: string
  /** `{time}` is filled in, as minutes and seconds. */
  readonly expiresIn: string
  readonly copy: string
  readonly copied: string
  readonly copyFailed: string
  readonly cancel: string
  readonly renew: string
}

export const englishTexts: SignInTexts = {
  starting: 'One moment.',
  created: 'Scan the code with your phone.',
  claimed: 'A phone has the request.',
  waiting_user: 'Compare the confirmation code, then answer on the phone.',
  approved: 'Approved on the phone. One moment.',
  finalized: 'Done.',
  rejected: 'Declined on the phone.',
  cancelled: 'Cancelled.',
  expired: 'The code has expired.',
  reconnecting: 'The connection was lost. Trying again.',
  failed: 'That did not work.',
  offline: 'The service does not answer. Check the connection.',
  busy: 'Too many tries. Wait a moment.',
  qrLabel: 'QR code for your phone',
  codeLabel: 'Confirmation code',
  expiresIn: 'Expires in {time}',
  copy: 'Copy link',
  copied: 'The link is copied. Open it on the phone.',
  copyFailed: 'The link could not be copied.',
  cancel: 'Cancel',
  renew: 'Show a new code',
}

/** What people are told of an error; what it is exactly goes to the page in an event. */
export function errorText(error: CountersignClientError, texts: SignInTexts): string {
  if (error.code === 'NETWORK' || error.code === 'STORE_UNAVAILABLE') return texts.offline
  return error.code === 'RATE_LIMITED' ? texts.busy : texts.failed
}
