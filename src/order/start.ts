import { randomBytes, randomInt } from 'node:crypto'
import { type Challenge, challengeMessage, requirePlainLine } from '../challenge.ts'
import { CountersignError } from '../errors.ts'
import type { RequestContext } from '../request.ts'
import { hashToken, newId, newToken } from '../token.ts'
import { actionOf, type OrderKind, type OrderRecord, orderVersion } from './order.ts'

/** What a desktop asks for. The schema's rules check the lengths and forms of the texts. */
export interface StartOrder {
  readonly kind: OrderKind
  /** Id of the wallet adapter that the proof must come from. Absent: any configured adapter. */
  readonly adapterId?: string | undefined
  /** Path on the desktop's own origin to go to after finalizing. Default "/". */
  readonly returnTo?: string | undefined
  readonly displayTitle?: string | undefined
  readonly displaySummary?: string | undefined
  readonly payloadHash?: string | undefined
}

/** Settings of orders. */
export interface OrderSettings {
  /** Name in the first line of what the wallet signs. */
  readonly appName: string
  /** Lifetime of an order that is not approved, in seconds. */
  readonly orderTtlSeconds: number
  /** Whether the phone's user compares the confirmation code with the desktop's, or has to enter it. */
  readonly confirmationCode: 'compare' | 'required'
  /** An address with `{orderId}` and, in its fragment, `{claimToken}`; `{origin}` becomes {@link publicOrigin}. */
  readonly claimUrlTemplate: string
  /** The service's own origin. A function, because the listening port may be known only later. */
  readonly publicOrigin: () => string
}

/** A new order and its tokens, of which the order has hashes only. */
export interface NewOrder {
  readonly order: OrderRecord
  readonly claimToken: string
  readonly desktopToken: string
}

/**
 * Number of digits of a confirmation code. Two are quick to compare, and another order has the same ones once in a
 * hundred. A code that is entered could be guessed, so it has six: three tries succeed three times in a million.
 */
const codeDigits = { compare: 2, required: 6 } as const

/** Makes a new order for an origin, issued at `issuedAt` in epoch milliseconds. Refuses text that could forge a line of the message with INVALID_REQUEST. */
export function newOrder(
  input: StartOrder,
  origin: string,
  request: RequestContext,
  settings: OrderSettings,
  issuedAt: number,
): NewOrder {
  const { kind, adapterId, displayTitle, displaySummary, payloadHash } = input
  const returnTo = input.returnTo ?? '/'
  requirePathOnly(returnTo)
  const lines = { display_title: displayTitle, display_summary: displaySummary, payload_hash: payloadHash }
  for (const [field, text] of Object.entries(lines)) {
    if (text !== undefined) requirePlainLine(field, text)
  }
  const orderId = newId()
  const challenge: Challenge = {
    action: actionOf(kind),
    challengeId: newId(),
    nonce: randomBytes(32).toString('base64url'),
    origin,
    issuedAt,
    expiresAt: issuedAt + settings.orderTtlSeconds * 1000,
  }
  const codeRequired = settings.confirmationCode === 'required'
  const confirmationCode = newCode(codeDigits[settings.confirmationCode])
  const message = challengeMessage(settings.appName, challenge, {
    orderId,
    kind,
    displayTitle,
    displaySummary,
    payloadHash,
    // A code that the user has to enter must come from the desktop's screen, and the phone shows the message before
    // that.
    confirmationCode: codeRequired ? undefined : confirmationCode,
  })
  const claimToken = newToken('claim')
  const desktopToken = newToken('desktop')
  const order: OrderRecord = {
    v: orderVersion,
    orderId,
    kind,
    status: 'created',
    history: [{ sequence: 1, status: 'created', at: issuedAt }],
    origin,
    appName: settings.appName,
    requester: { ip: request.ip ?? '', userAgent: request.userAgent },
    returnTo,
    ...(adapterId === undefined ? {} : { adapterId }),
    ...(displayTitle === undefined ? {} : { displayTitle }),
    ...(displaySummary === undefined ? {} : { displaySummary }),
    ...(payloadHash === undefined ? {} : { payloadHash }),
    challengeId: challenge.challengeId,
    nonce: challenge.nonce,
    issuedAt,
    expiresAt: challenge.expiresAt,
    message,
    confirmationCode,
    codeRequired,
    wrongCodes: 0,
    claimTokenHash: hashToken(claimToken),
    desktopTokenHash: hashToken(desktopToken),
  }
  return { order, claimToken, desktopToken }
}

/** The address for the QR code. */
export function claimUrl(settings: OrderSettings, orderId: string, claimToken: string): string {
  const values: Readonly<Record<string, string>> = { origin: settings.publicOrigin(), orderId, claimToken }
  return settings.claimUrlTemplate.replace(
    /\{(origin|orderId|claimToken)\}/g,
    (_, name: string) => values[name] as string,
  )
}

function newCode(digits: number): string {
  return String(randomInt(10 ** digits)).padStart(digits, '0')
}

/**
 * Refuses a return_to that any reader could take for another origin: one that begins with two slashes or a backslash,
 * has control characters, which URL parsers drop, or becomes one of these when its dots are resolved or its
 * percent-encoding is undone, however often.
 */
function requirePathOnly(returnTo: string): void {
  requirePlainLine('return_to', returnTo)
  if (readings(returnTo).every(isPathOnly)) return
  throw new CountersignError(
    'INVALID_REQUEST',
    'return_to must be a path that begins with one slash, such as /welcome',
    {
      metadata: { field: 'return_to' },
    },
  )
}

/**
 * One leading slash, then neither a backslash nor a control character: such a path always stays on the origin it is on.
 */
const plainPath = /^\/(?!\/)[^\\\p{Cc}]*$/u

function isPathOnly(path: string): boolean {
  // The parser resolves the dots; what comes out is a path that others may take for the whole address.
  return plainPath.test(path) && !new URL(path, 'https://any.invalid').pathname.startsWith('//')
}

/**
 * A return_to as it stands, then its path with the percent-encoding of ASCII undone once, twice, until none is left.
 */
function readings(returnTo: string): string[] {
  const texts = [returnTo]
  let path = returnTo.replace(/[?#].*$/s, '')
  for (;;) {
    // By hand: decodeURIComponent refuses a stray % that laxer readers pass over, and the rest would go unseen.
    const decoded = path.replace(/%[0-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
    if (decoded === path) return texts
    texts.push(decoded)
    path = decoded
  }
}
