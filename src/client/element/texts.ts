import type { CountersignClientError } from '../errors.ts'
import type { OrderStatus } from '../types.ts'

/** Texts of the element. Set its property `texts` to change or translate them. */
export interface SignInTexts extends Record<OrderStatus, string> {
  readonly starting: string
  readonly reconnecting: string
  readonly failed: string
  readonly offline: string
  readonly busy: string
  readonly qrLabel: string
  readonly codeLabel: string
  /** `{time}` stands for the minutes and seconds that are left. */
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
  claimed: 'A phone has opened the request.',
  waiting_user: 'Compare the confirmation code, then answer on the phone.',
  approved: 'Approved on the phone. One moment.',
  finalized: 'Done.',
  rejected: 'Declined on the phone.',
  cancelled: 'Cancelled.',
  expired: 'The code has expired.',
  reconnecting: 'The connection was lost. Trying again.',
  failed: 'That did not work.',
  offline: 'The service does not answer. Check your connection.',
  busy: 'Too many tries. Wait a moment.',
  qrLabel: 'QR code for your phone',
  codeLabel: 'Confirmation code',
  expiresIn: 'Expires in {time}',
  copy: 'Copy link',
  copied: 'Link copied. Open it on your phone.',
  copyFailed: 'The link could not be copied.',
  cancel: 'Cancel',
  renew: 'Show a new code',
}

/** The text for an error. The page gets the error itself in an event. */
export function errorText(error: CountersignClientError, texts: SignInTexts): string {
  if (error.code === 'NETWORK' || error.code === 'STORE_UNAVAILABLE') return texts.offline
  return error.code === 'RATE_LIMITED' ? texts.busy : texts.failed
}
