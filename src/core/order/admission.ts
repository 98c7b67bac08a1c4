import { networkOfAddress, networkOfRequest, sameNetwork } from '../../base/networks.ts'
import { mismatchReason } from '../../base/record.ts'
import { bearerToken, cleanUserAgent, type RequestContext, readAddress, withParts } from '../../base/request.ts'
import { equalInConstantTime, hashToken, tokenMatches } from '../../base/token.ts'
import { invalidField, refused } from '../../shared/errors.ts'
import { given } from '../../shared/given.ts'
import type { DesktopOrder, PhoneOrder, StartOrderOptions } from '../../shared/orders.ts'
import { parseOrigin } from '../../shared/origin.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import type { OrderRecord } from './order.ts'
import type { OrderSettings, Requester } from './start.ts'

/** What decides who may be an order's desktop. */
interface RequesterRules {
  readonly settings: Pick<OrderSettings, 'orderStartKeys' | 'ownPagesStart' | 'proximity'>
  readonly origins: OriginPolicy
}

/**
 * The desktop that an order is started for: the caller, or the one that a backend with a start key describes. Its
 * origin must be trusted (ORIGIN_NOT_TRUSTED). START_KEY_REQUIRED if there are start keys, the call has none of them,
 * and the order is none that the service's own pages start without one. INVALID_REQUEST if a backend does not describe
 * the desktop, or a caller without a start key does, or starts an order for an inbox.
 */
export function requesterOf(input: StartOrderOptions, request: RequestContext, rules: RequesterRules): Requester {
  const { requester, inboxUserId } = input
  const { settings, origins } = rules
  const { orderStartKeys, proximity } = settings
  if (orderStartKeys === undefined) {
    for (const [field, value] of Object.entries({ requester, inbox_user_id: inboxUserId })) {
      if (value !== undefined)
        throw invalidField(field, `${field} is for services with start keys (orderStartKeys) only`)
    }
    return callingDesktop(request, origins)
  }
  const startKey = startKeyOf(orderStartKeys, request)
  if (startKey === undefined) {
    if (settings.ownPagesStart === true && isOfOwnPage(input, request, origins)) return callingDesktop(request, origins)
    throw refused('START_KEY_REQUIRED', { metadata: { setting: 'COUNTERSIGN_ORDER_START_KEYS' } })
  }
  if (requester === undefined) throw invalidField('requester', 'requester is required, with the origin of the page')
  const { ip = '', userAgent = '' } = requester
  if (proximity === 'enforce' && ip === '' && inboxUserId === undefined) {
    throw invalidField(
      'requester.ip',
      'requester.ip is required, because the networks of computer and phone are compared',
    )
  }
  const origin = origins.requireTrusted(
    withParts(request, { origin: parseOrigin(requester.origin), originSource: 'field requester.origin' }),
  )
  return {
    origin,
    ip: readAddress(ip) ?? '',
    userAgent: cleanUserAgent(userAgent),
    ...networkField(networkOfAddress(ip)),
    startedWithKey: true,
    ...given({ startedBy: startKey.name }),
    startKeyId: startKey.name ?? hashToken(startKey.key),
  }
}

/**
 * Whether it is an order that the service's own pages start: a sign-in of their origin without words of the caller, so
 * that only the backend writes what a person reads.
 */
function isOfOwnPage(input: StartOrderOptions, request: RequestContext, origins: OriginPolicy): boolean {
  const { kind, displayTitle, displaySummary, adapterId, requester, inboxUserId } = input
  const said = [displayTitle, displaySummary, adapterId, requester, inboxUserId]
  return kind === 'login' && said.every((value) => value === undefined) && origins.isOwn(request)
}

/** The caller as the desktop. Its origin must be trusted (ORIGIN_NOT_TRUSTED). */
export function callingDesktop(request: RequestContext, origins: OriginPolicy): Requester {
  const origin = origins.requireTrusted(request)
  const { ip = '', userAgent } = request
  return { origin, ip, userAgent, ...networkField(networkOfRequest(request)) }
}

/** A key that backends start orders with. */
interface StartKey {
  /** Names the backend to those who approve its orders. */
  readonly name?: string
  readonly key: string
}

/** A key with a name before it. Anything else is a key as a whole: those in base64 can end with an equals sign. */
const namedKey = /^(?<name>[A-Za-z0-9_.-]{1,32})=(?<key>.{32,})$/

/** Reads an entry of the setting. */
function readStartKey(entry: string): StartKey {
  return (namedKey.exec(entry)?.groups as StartKey | undefined) ?? { key: entry }
}

/** The start key that a call has, if any. */
function startKeyOf(entries: readonly string[], request: RequestContext): StartKey | undefined {
  const shown = hashToken(bearerToken(request) ?? '')
  // Each is compared, so that the time does not reveal which one comes close.
  return entries.map(readStartKey).filter(({ key }) => equalInConstantTime(hashToken(key), shown))[0]
}

function networkField(network: string | undefined): { readonly network?: string } {
  return network === undefined ? {} : { network }
}

/** Hashes of the tokens that a call takes. */
type Hashes = readonly (string | undefined)[]

/** Of the phone, and of the browsers that handed the order over. */
export function phoneHashes({ challengeTokenHash, formerTokenHashes = [] }: OrderRecord): Hashes {
  return [challengeTokenHash, ...formerTokenHashes]
}

/** Whether a token has one of the hashes that an order holds. If it holds none, no token has. */
export function matchesAny(token: string, hashes: Hashes): boolean {
  return hashes.some((hash) => hash !== undefined && tokenMatches(token, hash))
}

/** A token that a caller shows, and the hashes of those that the call takes. */
interface ShownToken {
  readonly token: string
  readonly hashes: Hashes
  /** The reason if it is none of them. Default: ORDER_TOKEN_INVALID. */
  readonly refusal?: 'ORDER_TOKEN_INVALID' | 'HANDOVER_INVALID'
}

/**
 * Whether a caller may do something with an order: it is an order of this service, and the caller holds the token that
 * the call takes and comes from a page that may use the order. Checked before the order's state is revealed.
 *
 * Throws ORDER_NOT_FOUND, ORDER_TOKEN_INVALID (HANDOVER_INVALID for a ticket), ORIGIN_MISMATCH or NETWORK_MISMATCH.
 */
export class Admission {
  readonly #settings: Pick<OrderSettings, 'appName' | 'proximity'>
  readonly #origins: OriginPolicy

  constructor(settings: Pick<OrderSettings, 'appName' | 'proximity'>, origins: OriginPolicy) {
    this.#settings = settings
    this.#origins = origins
  }

  /** Admits who holds the order's challenge token. */
  ofPhone({ challengeToken }: PhoneOrder, request: RequestContext): (order: OrderRecord) => void {
    return (order) => this.fromPage(order, request, { token: challengeToken, hashes: [order.challengeTokenHash] })
  }

  /** Admits who holds a token with one of these hashes. */
  fromPage(order: OrderRecord, request: RequestContext, shown: ShownToken): void {
    this.#requireHolder(order, shown)
    this.#requireOrigin(order, request)
  }

  /** Admits the user whose inbox has the order. To any other user it does not exist. */
  ofUser(order: OrderRecord, userId: string, request: RequestContext): void {
    this.#requireOfService(order)
    if (order.inboxUserId !== userId) throw refused('ORDER_NOT_FOUND')
    this.#requireOrigin(order, request)
  }

  /** Checked before anything about the order's origin is revealed. */
  #requireHolder(order: OrderRecord, { token, hashes, refusal = 'ORDER_TOKEN_INVALID' }: ShownToken): void {
    this.#requireOfService(order)
    if (!matchesAny(token, hashes)) throw refused(refusal)
  }

  #requireOfService(order: OrderRecord): void {
    const mismatch = mismatchReason(order, this.#settings.appName, this.#origins)
    if (mismatch !== undefined) throw refused('ORDER_NOT_FOUND', { cause: mismatch })
  }

  /**
   * Admits who holds the desktop's token. `prove` is what else they have to prove, before anything about the order is
   * told.
   */
  ofDesktop(
    { desktopToken }: DesktopOrder,
    request: RequestContext,
    prove: (order: OrderRecord) => void = () => {},
  ): (order: OrderRecord) => void {
    return (order) => {
      this.#requireHolder(order, { token: desktopToken, hashes: [order.desktopTokenHash] })
      prove(order)
      // Only browsers send their origin. An application's backend may call the service by another name than its pages
      // do.
      if (request.originSource === 'Origin header') this.#requireOrigin(order, request)
    }
  }

  #requireOrigin(order: OrderRecord, request: RequestContext): void {
    this.#origins.requireSameOrOwn(request, order.origin, 'order')
  }

  /** Refuses a phone that is not on the desktop's network, if that is asked for. */
  requireNearby(order: OrderRecord, request: RequestContext): void {
    // The user is signed in on an approving device of the user's own; the backend that asks has a network of its own.
    if (this.#settings.proximity !== 'enforce' || order.inboxUserId !== undefined) return
    if (sameNetwork(order.requester.network, networkOfRequest(request)) === true) return
    throw refused('NETWORK_MISMATCH')
  }
}
