import { CountersignError } from '../shared/errors.ts'

/** What a signature is for. */
export type ChallengeAction = 'auth.login' | 'auth.link' | 'order.approve'

/** What every challenge says. Times are epoch milliseconds. */
export interface Challenge {
  readonly action: ChallengeAction
  readonly challengeId: string
  readonly nonce: string
  readonly origin: string
  readonly issuedAt: number
  readonly expiresAt: number
}

/** What an order's challenge says in addition. */
export interface OrderLines {
  readonly orderId: string
  readonly kind: 'login' | 'sign'
  readonly displayTitle?: string | undefined
  readonly displaySummary?: string | undefined
  /** Absent if the phone's user has to enter it, which the message would give away, and with return codes. */
  readonly confirmationCode?: string | undefined
  readonly payloadHash?: string | undefined
}

/** What the challenge for adding a wallet to a user says in addition. */
export interface LinkLines {
  /** The user that the wallet is added to. */
  readonly userId: string
  /** Address of the wallet that the user is signed in with. Absent if the session was made without a wallet. */
  readonly sessionAddress?: string | undefined
}

/**
 * What no line of a challenge has, because with it a value could forge a line, look like another value, or fill a wallet's screen:
 *
 * - line breaks and other control characters (Cc, Zl, Zp), lone surrogates (Cs) and the characters that change the direction of
 *   text (Unicode TR9);
 * - characters that show nothing: the default-ignorable ones (Unicode, DerivedCoreProperties), the blank Braille pattern and null
 *   notehead, and the marks of interlinear annotations;
 * - of the default-ignorable ones, texts need the joiners U+200C and U+200D (Persian, Indic scripts, emoji) and the variation selectors
 *   U+FE0E and U+FE0F (emoji): they count behind a letter, mark, number or symbol;
 * - more than four combining marks in a row, which reach into the lines around.
 */
const forbidden = new RegExp(
  [
    String.raw`[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]`,
    String.raw`(?![\u200C\u200D\uFE0E\uFE0F])\p{Default_Ignorable_Code_Point}`,
    String.raw`[\u2800\u{1D159}\uFFF9-\uFFFB]`,
    String.raw`(?<![\p{L}\p{M}\p{N}\p{S}])[\u200C\u200D]`,
    String.raw`(?<![\p{L}\p{N}\p{S}#*‼⁉〰])[\uFE0E\uFE0F]`,
    String.raw`\p{M}{5,}`,
  ].join('|'),
  'u',
)

const allForbidden = new RegExp(forbidden, 'gu')

/** A text without the characters that {@link isPlainLine} refuses, for texts that are shown beside a challenge. */
export function withoutForbidden(text: string): string {
  // Most texts have none, which is quicker to see than to replace.
  return isPlainLine(text) ? text : text.replace(allForbidden, '')
}

/** Whether a text can be a part of a challenge. */
export function isPlainLine(text: string): boolean {
  return !forbidden.test(text)
}

/**
 * Refuses a caller's text that cannot be a part of a challenge, with INVALID_REQUEST. `field` is its name in the
 * protos.
 */
export function requirePlainLine(field: string, text: string): void {
  if (isPlainLine(text)) return
  throw new CountersignError(
    'INVALID_REQUEST',
    `${field} must be one line of text without control, text-direction and invisible characters, or five combining marks in a row`,
    { metadata: { field } },
  )
}

/**
 * The text that the wallet signs. Proofs are verified against the stored text, never against text that a client sends.
 */
export function challengeMessage(appName: string, challenge: Challenge, added?: OrderLines | LinkLines): string {
  const order = added !== undefined && 'orderId' in added ? added : undefined
  const link = added !== undefined && 'userId' in added ? added : undefined
  const lines = [
    `${appName} requests ${order === undefined ? 'authentication' : 'approval'}`,
    `Action: ${challenge.action}`,
    `Origin: ${challenge.origin}`,
    `Challenge ID: ${challenge.challengeId}`,
    `Nonce: ${challenge.nonce}`,
    `Issued At: ${new Date(challenge.issuedAt).toISOString()}`,
    `Expires At: ${new Date(challenge.expiresAt).toISOString()}`,
  ]
  if (link !== undefined) {
    lines.push(`User: ${link.userId}`)
    if (link.sessionAddress !== undefined) lines.push(`Session Account: ${link.sessionAddress}`)
  }
  if (order !== undefined) {
    lines.push(`Order ID: ${order.orderId}`, `Kind: ${order.kind}`)
    if (order.confirmationCode !== undefined) lines.push(`Code: ${order.confirmationCode}`)
    if (order.payloadHash !== undefined) lines.push(`Payload Hash: ${order.payloadHash}`)
    // Last, because they are the requester's own words.
    if (order.displayTitle !== undefined) lines.push(`Title: ${order.displayTitle}`)
    if (order.displaySummary !== undefined) lines.push(`Summary: ${order.displaySummary}`)
  }
  // Every caller's value was checked when it came in. If this throws, such a check is missing.
  if (!isPlainLine(lines.join(''))) {
    throw new TypeError('a value of the challenge contains a character that no line of it can have')
  }
  return lines.join('\n')
}
