import { randomBytes, randomInt } from 'node:crypto'
import { CountersignError } from './errors.ts'
import { type Challenge, challengeMessage, requirePlainLine } from './message.ts'
import type { OrderKind, OrderRecord } from './order.ts'
import type { RequestContext } from './request.ts'
import { hashToken, newId, newToken } from './token.ts'

/** What a desktop asks for. The lengths and forms of the texts are the schema's to check. */
export interface StartOrder {
  readonly kind: OrderKind
  /** The wallet adapter that the phone has to use. Without it, any configured one will do. */
  readonly adapterId?: string | undefined
  /** Where the desktop goes after finalizing: a path on its own origin. Default "/". */
  readonly returnTo?: string | undefined
  readonly displayTitle?: string | undefined
  readonly displaySummary?: string | undefined
  readonly payloadHash?: string | undefined
}

/** What new orders are made with. */
export interface OrderSettings {
  /** Stands in the first line of what the wallet signs. */
  readonly appName: string
  /** Life of an order that is not approved, seconds. */
  readonly orderTtlSeconds: number
  /** Whether the phone's user compares the confirmation code with the desktop's, or has to enter it. */
  readonly confirmationCode: 'compare' | 'required'
  /** An address with `{orderId}` and, in its fragment, `{claimToken}`; `{origin}` becomes {@link publicOrigin}. */
  readonly claimUrlTemplate: string
  /** The service's own origin. Asked at every start: the listening port may be known only later. */
  readonly publicOrigin: () => string
}

/** A new order, and what only its maker learns. */
export interface NewOrder {
  readonly order: OrderRecord
  readonly claimToken: string
  readonly desktopToken: string
}

/**
 * Digits of a confirmation code. Two are quick to compare, and a stranger's order shows the same ones once in a hundred.
 * One that is entered can be guessed instead: with six digits, three tries succeed three times in a million.
 */
const codeDigits = { compare: 2, required: 6 } as const

/** Makes a new order for an origin. Refuses text that could pass for something else with INVALID_REQUEST. */
export function newOrder(
  input: StartOrder,
  origin: string,
  request: RequestContext,
  settings: OrderSettings,
): NewOrder {
  const { kind, adapterId, displayTitle, displaySummary, payloadHash } = input
  const returnTo = input.returnTo ?? '/'
  requirePathOnly(returnTo)
  const shown = { displayTitle, displaySummary, payloadHash }
  for (const [field, text] of Object.entries(shown)) {
    if (text !== undefined) requirePlainLine(field, text)
  }
  const orderId = newId()
  const issuedAt = Date.now()
  const challenge: Challenge = {
    action: kind === 'login' ? 'auth.login' : 'order.approve',
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
    ...shown,
    // A code that is to be entered must come from the desktop's screen. The phone reads the message before that.
    confirmationCode: codeRequired ? undefined : confirmationCode,
  })
  const claimToken = newToken('claim')
  const desktopToken = newToken('desktop')
  const order: OrderRecord = {
    v: 1,
    orderId,
    kind,
    status: 'created',
    history: [{ sequence: 1, status: 'created', at: issuedAt }],
    origin,
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

/** The address that the QR code shows. */
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
 * Refuses a return_to that any reader could take for another origin: one that begins with two slashes or a backslash, has
 * control characters, which URL parsers drop, or becomes one of these when its dots are resolved or its percent-encoding is
 * undone, however often.
 */
function requirePathOnly(returnTo: string): void {
  requirePlainLine('return_to', returnTo)
  if (readings(returnTo).every(isPathOnly)) return
  throw new CountersignError('INVALID_REQUEST', 'return_to must be a path that begins with one slash, such as /welcome')
}

/** One leading slash, then neither a backslash nor a control character: such a path always stays on the origin it is on. */
const plainPath = /^\/(?!\/)[^\\\p{Cc}]*$/u

function isPathOnly(path: string): boolean {
  // The parser resolves the dots; what comes out is a path that others may take for the whole address.
  return plainPath.test(path) && !new URL(path, 'https://any.invalid').pathname.startsWith('//')
}

/** A return_to as it stands, then its path with the percent-encoding of ASCII undone once, twice, until none is left. */
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
