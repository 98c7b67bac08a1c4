import type { ReasonsOf } from '../../shared/errors.ts'
import type { TextKey } from '../../shared/texts/page-texts.ts'

type EndingName = TextKey extends infer Key ? (Key extends `ending.${infer Name}.title` ? Name : never) : never

/** The end of a request, as the phone shows it: a symbol, and the name of its texts. */
export interface Ending {
  /** Symbol above the title. */
  readonly seal: 'yes' | 'no' | 'time' | 'stop'
  readonly name: EndingName
  /** Whether what helps next is on the account page. */
  readonly hasAccountLink?: boolean
}

/** Endings that follow from what the user did, or from where a request was when it ended. */
export const endings = {
  declined: { seal: 'no', name: 'declined' },
  left: { seal: 'no', name: 'left' },
  stopped: { seal: 'no', name: 'stopped' },
  sessionEnded: { seal: 'no', name: 'session-ended', hasAccountLink: true },
  sessionGone: { seal: 'no', name: 'session-gone', hasAccountLink: true },
  walletRemoved: { seal: 'no', name: 'wallet-removed' },
  walletStays: { seal: 'no', name: 'wallet-stays', hasAccountLink: true },
  tooLate: { seal: 'time', name: 'too-late', hasAccountLink: true },
  signatureGiven: { seal: 'stop', name: 'signature-given' },
  wrongReturnCodes: { seal: 'stop', name: 'wrong-return-codes' },
  codeLate: { seal: 'time', name: 'code-late' },
  notFinished: { seal: 'time', name: 'not-finished' },
  expiredSigning: { seal: 'time', name: 'expired-signing' },
  linkIncomplete: { seal: 'stop', name: 'link-incomplete' },
} as const satisfies Record<string, Ending>

/** Codes after which a request is over. */
const byCode: Readonly<Record<string, Ending>> = {
  ORDER_EXPIRED: { seal: 'time', name: 'expired' },
  ORDER_NOT_FOUND: { seal: 'time', name: 'not-found' },
  ORDER_CANCELLED: { seal: 'no', name: 'cancelled' },
  ORDER_REJECTED: { seal: 'no', name: 'rejected' },
  ORDER_ALREADY_CLAIMED: { seal: 'stop', name: 'claimed' },
  ORDER_ALREADY_APPROVED: { seal: 'stop', name: 'approved' },
  ORDER_FINALIZED: { seal: 'yes', name: 'finalized', hasAccountLink: true },
  ORDER_TOKEN_INVALID: { seal: 'stop', name: 'token-invalid' },
  HANDOVER_INVALID: { seal: 'stop', name: 'link-used' },
} satisfies Record<ReasonsOf<'ending'>, Ending>

/** The same endings of orders of an inbox, which have no computer beside the phone. */
const ofInbox: Partial<Record<EndingName, EndingName>> = {
  expired: 'inbox-expired',
  'expired-signing': 'inbox-expired-signing',
  'not-finished': 'inbox-not-finished',
  'not-found': 'inbox-over',
  cancelled: 'inbox-cancelled',
  rejected: 'inbox-rejected',
  approved: 'inbox-approved',
  finalized: 'inbox-approved',
  'too-late': 'inbox-signed',
  'signature-given': 'inbox-signed',
}

/** An ending as it is for an order of the user's inbox. */
export function endingOfInbox(ending: Ending): Ending {
  return { seal: ending.seal, name: ofInbox[ending.name] ?? ending.name }
}

/** The ending for an error code, or `undefined` if the request is not over. */
export function endingOf(code: string): Ending | undefined {
  return byCode[code]
}
