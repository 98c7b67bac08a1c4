import type { OrderKind } from '../shared/orders.ts'
import { isPlainLine } from '../shared/plain-line.ts'
import type { NonceChallenge } from '../shared/session.ts'

/** Bounds and default of the lifetime of a nonce, in a file that settings can import without a package. */
export const nonceTtl = { minSeconds: 1, maxSeconds: 3600, defaultSeconds: 300 } as const

/** What a signature is for. */
export type ChallengeAction = 'auth.login' | 'auth.link' | 'order.approve'

/** What every challenge says. Times are epoch milliseconds. */
export interface Challenge extends Omit<NonceChallenge, 'action' | 'nonceId' | 'message' | 'form'> {
  readonly action: ChallengeAction
}

/** What an order's challenge says in addition. */
export interface OrderLines {
  readonly orderId: string
  readonly kind: OrderKind
  readonly displayTitle?: string | undefined
  readonly displaySummary?: string | undefined
  /** Absent if the phone's user has to enter it, which the message would give away, and with return codes. */
  readonly confirmationCode?: string | undefined
  readonly payloadHash?: string | undefined
  /** The payload in its canonical form; the text has it as a line if it fits ({@link payloadLine}). */
  readonly payload?: string | undefined
}

/**
 * Most bytes (UTF-8) of a payload in the text. With them, a text without a summary stays below the 1,024 bytes that the
 * smallest hardware wallets sign.
 */
const maxPayloadLineBytes = 400

/** White space other than a single U+0020, which a screen shows like a single one. */
const otherSpace = /[^\S ]| {2}/u

/**
 * What the line `Payload` says of a payload in its canonical form (RFC 8785), so that a wallet shows what it signs;
 * `undefined` for a payload that the text has as a hash only: one of more than 400 bytes, or with white space that
 * looks like other white space.
 */
export function payloadLine(canonical: string): string | undefined {
  if (new TextEncoder().encode(canonical).length > maxPayloadLineBytes || otherSpace.test(canonical)) return undefined
  return canonical
}

/** What the challenge for adding a wallet to a user says in addition. */
export interface LinkLines {
  /** The user that the wallet is added to. */
  readonly userId: string
  /** Address of the wallet that the user is signed in with. Absent if the session was made without a wallet. */
  readonly sessionAddress?: string | undefined
}

/**
 * The text that the wallet signs. Proofs are verified against the stored text, never against text that a client sends.
 */
export function challengeMessage(
  appName: string,
  challenge: Challenge,
  { order, link }: { readonly order?: OrderLines; readonly link?: LinkLines | undefined } = {},
): string {
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
    const payload = order.payload === undefined ? undefined : payloadLine(order.payload)
    if (payload !== undefined) lines.push(`Payload: ${payload}`)
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
