import { CountersignError } from './errors.ts'

/** What a signature is for. */
export type ChallengeAction = 'auth.login' | 'order.approve'

/** What every challenge says. Times are epoch milliseconds. */
export interface Challenge {
  readonly action: ChallengeAction
  readonly challengeId: string
  readonly nonce: string
  readonly origin: string
  readonly issuedAt: number
  readonly expiresAt: number
}

/** What an order's challenge says besides. */
export interface OrderLines {
  readonly orderId: string
  readonly kind: 'login' | 'sign'
  readonly displayTitle?: string | undefined
  readonly displaySummary?: string | undefined
  /** Left out where the phone's user has to enter it: the message would give it away. */
  readonly confirmationCode?: string | undefined
  readonly payloadHash?: string | undefined
}

/**
 * Line breaks and other control characters (Cc, Zl, Zp), lone surrogates (Cs) and the characters that change the direction
 * of text (Unicode TR9): with one of them a value could forge a line, or look like another value.
 */
const forbidden = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u

/** Whether a text may stand in a challenge. */
export function isPlainLine(text: string): boolean {
  return !forbidden.test(text)
}

/** Refuses a caller's text that may not stand in a challenge, with INVALID_REQUEST. `field` is its name for the message. */
export function requirePlainLine(field: string, text: string): void {
  if (isPlainLine(text)) return
  throw new CountersignError(
    'INVALID_REQUEST',
    `${field} must be one line of text without control or text-direction characters`,
  )
}

/**
 * The text that the wallet signs. It is stored as it is and verified as it is: nothing that a client sends takes part in it
 * again.
 */
export function challengeMessage(appName: string, challenge: Challenge, order?: OrderLines): string {
  const lines = [
    `${appName} requests ${order === undefined ? 'authentication' : 'approval'}`,
    `Action: ${challenge.action}`,
    `Origin: ${challenge.origin}`,
    `Challenge ID: ${challenge.challengeId}`,
    `Nonce: ${challenge.nonce}`,
    `Issued At: ${new Date(challenge.issuedAt).toISOString()}`,
    `Expires At: ${new Date(challenge.expiresAt).toISOString()}`,
  ]
  if (order !== undefined) {
    lines.push(`Order ID: ${order.orderId}`, `Kind: ${order.kind}`)
    if (order.displayTitle !== undefined) lines.push(`Title: ${order.displayTitle}`)
    if (order.displaySummary !== undefined) lines.push(`Summary: ${order.displaySummary}`)
    if (order.confirmationCode !== undefined) lines.push(`Code: ${order.confirmationCode}`)
    if (order.payloadHash !== undefined) lines.push(`Payload Hash: ${order.payloadHash}`)
  }
  // Every caller's value was checked when it came in; this is the last line of defence, and a mistake of ours if it holds.
  for (const line of lines) {
    if (!isPlainLine(line)) throw new TypeError('a value of the challenge would break its line')
  }
  return lines.join('\n')
}
