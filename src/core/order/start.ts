import { hash, randomInt } from 'node:crypto'
import { hashToken, newId, newToken, randomText } from '../../base/token.ts'
import { given } from '../../shared/defined-fields.ts'
import { invalidField } from '../../shared/errors.ts'
import type { StartOrderOptions } from '../../shared/orders.ts'
import { orderingMarks, requirePlainLine } from '../../shared/plain-line.ts'
import { isReturnPath } from '../../shared/return-path.ts'
import { type Challenge, challengeMessage } from '../challenge-text.ts'
import { canonicalPayload } from './canonical-payload.ts'
import type { OptionalField, OrderBeginning, OrderRules } from './kinds/recipe.ts'
import { requireComputerKey } from './known-computers.ts'
import type { OrderRecord } from './order.ts'

/** Settings of orders. */
export interface OrderSettings {
  /** Name in the first line of what the wallet signs. */
  readonly appName: string
  /** Lifetime of an order that is not approved, in seconds. */
  readonly orderTtlSeconds: number
  /** The phone's user compares two digits with the desktop's, or types the phone's return code on the desktop. */
  readonly confirmationCode: 'compare' | 'return'
  /** Whether known computers need no return code. */
  readonly knownComputers: boolean
  /** Whether phones are shown if they are on the computer's network, or refused if they are not. */
  readonly proximity: 'show' | 'off' | 'enforce'
  /** If set, starting an order takes one of these keys, but for link orders and {@link ownPagesStart}. */
  readonly orderStartKeys: readonly string[] | undefined
  /**
   * Whether pages of the service's own origin start login orders without a start key, if these have no title, no
   * summary and no adapter. Default: no.
   */
  readonly ownPagesStart?: boolean
  /** An address with `{orderId}` and, in its fragment, `{claimToken}`; `{origin}` becomes {@link publicOrigin}. */
  readonly claimUrlTemplate: string
  /** The service's own origin. A function, because the listening port may be known only later. */
  readonly publicOrigin: () => string
  /** The address that continues an order in another browser. */
  readonly handOverUrl: (ticket: string) => string
}

/**
 * Makes a new order, and its tokens, of which the order has hashes only. An order that is not scanned has no claim
 * token (`''`). Refuses with INVALID_REQUEST text that could forge a line of the message, a malformed payload or
 * computer key, and fields that do not go together.
 */
export function newOrder(
  input: StartOrderOptions,
  rules: OrderRules,
  { requester: { origin, startKeyId: _startKeyId, ...requester }, own }: OrderBeginning,
  { settings, issuedAt }: { readonly settings: OrderSettings; readonly issuedAt: number },
) {
  const { kind, adapterId, computerKey, expectedAddress, returnTo = '/' } = input
  requireTogether(input, rules)
  requireReturnPath(returnTo)
  const displayTitle = oneLine('display_title', input.displayTitle)
  const displaySummary = oneLine('display_summary', input.displaySummary)
  if (input.payloadHash !== undefined) requirePlainLine('payload_hash', input.payloadHash)
  if (computerKey !== undefined) requireComputerKey(computerKey)
  const read = input.payload === undefined ? undefined : readPayload(input.payload)
  const { payload, asWritten, payloadHash = input.payloadHash } = read ?? {}
  const expectedPublicKeyHex = input.expectedPublicKeyHex?.toLowerCase()
  const orderId = newId()
  const { ttlSeconds = rules.ttlSeconds ?? settings.orderTtlSeconds } = input
  const challenge: Challenge = {
    action: rules.action,
    challengeId: newId(),
    nonce: randomText(32),
    origin,
    issuedAt,
    expiresAt: issuedAt + ttlSeconds * 1000,
  }
  const returnCodes = rules.alwaysReturnCode === true || (settings.confirmationCode === 'return' && rules.scanned)
  const confirmationCode = returnCodes || !rules.scanned ? '' : newCode()
  const { starter } = own
  const message = challengeMessage(settings.appName, challenge, {
    order: {
      orderId,
      kind,
      displayTitle,
      displaySummary,
      payloadHash,
      payload,
      confirmationCode: confirmationCode || undefined,
    },
    link: starter && { userId: starter.userId, sessionAddress: starter.address || undefined },
  })
  const claimToken = rules.scanned ? newToken('claim') : ''
  const desktopToken = newToken('desktop')
  const order: OrderRecord = {
    orderId,
    status: 'created',
    history: [{ sequence: 1, status: 'created', at: issuedAt }],
    origin,
    appName: settings.appName,
    requester,
    returnTo,
    ...given({ adapterId, displayTitle, displaySummary, payloadHash, payload }),
    ...given({ payloadAsWritten: asWritten === payload ? undefined : asWritten }),
    ...given({ expectedPublicKeyHex, expectedAddress, computerKey }),
    ...own,
    challengeId: challenge.challengeId,
    nonce: challenge.nonce,
    issuedAt,
    expiresAt: challenge.expiresAt,
    message,
    confirmationCode,
    ...(returnCodes ? { returnCodes } : {}),
    ...(rules.scanned ? { claimTokenHash: hashToken(claimToken) } : {}),
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

/** Names in the protos of the fields that not every recipe takes. */
const optionalFields = {
  displayTitle: 'display_title',
  displaySummary: 'display_summary',
  payloadHash: 'payload_hash',
  payload: 'payload',
  expectedPublicKeyHex: 'expected_public_key_hex',
  expectedAddress: 'expected_address',
  computerKey: 'computer_key',
  requester: 'requester',
  inboxUserId: 'inbox_user_id',
  ttlSeconds: 'ttl_seconds',
} satisfies Record<OptionalField, string>

/** Refuses fields that the order's recipe does not take, and fields that need or exclude each other. */
function requireTogether(input: StartOrderOptions, { takes, label }: OrderRules): void {
  for (const [name, field] of Object.entries(optionalFields) as [OptionalField, string][]) {
    if (input[name] === undefined) continue
    if (!takes.includes(name)) throw invalidField(field, `${field} is not for ${label}`)
    if (name.startsWith('expected') && input.adapterId === undefined) {
      throw invalidField('adapter_id', `${field} needs adapter_id`)
    }
  }
  if (input.payload !== undefined && input.payloadHash !== undefined) {
    throw invalidField(
      'payload_hash',
      'payload and payload_hash exclude each other: the hash of the payload is computed',
    )
  }
}

/**
 * A text of the requester without marks that order text, in which runs of white space count as one space; `undefined`
 * if nothing is left.
 */
function oneLine(field: string, given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  const text = given.replace(orderingMarks, '')
  requirePlainLine(field, text)
  return text.replace(/\s+/gu, ' ').trim() || undefined
}

/** Two digits: quick to compare, and another order has the same ones once in a hundred. */
function newCode(): string {
  return String(randomInt(100)).padStart(2, '0')
}

/** Refuses a return_to that any reader could take for another origin. */
function requireReturnPath(returnTo: string): void {
  requirePlainLine('return_to', returnTo)
  if (isReturnPath(returnTo)) return
  throw invalidField('return_to', 'return_to must be a path that begins with one slash, such as /welcome')
}

/** What a sign order is about. */
export interface Payload {
  /** Canonical form (RFC 8785). */
  readonly payload: string
  /** The same value, with its names in the order in which they were written. */
  readonly asWritten: string
  /** `sha256:` and the base64url SHA-256 of the canonical form. */
  readonly payloadHash: string
}

/** Reads a payload for a new order. Throws what {@link canonicalPayload} throws. */
export function readPayload(text: string): Payload {
  const payload = canonicalPayload(text)
  const asWritten = JSON.stringify(JSON.parse(text))
  return { payload, asWritten, payloadHash: `sha256:${hash('sha256', payload, 'base64url')}` }
}
