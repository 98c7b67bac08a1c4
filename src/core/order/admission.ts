import { networkOfAddress, networkOfRequest, sameNetwork } from '../../base/networks.ts'
import { mismatchReason } from '../../base/record.ts'
import { bearerToken, cleanUserAgent, type RequestContext, readAddress, withParts } from '../../base/request.ts'
import { equalInConstantTime, hashToken, tokenMatches } from '../../base/token.ts'
import { given } from '../../shared/defined-fields.ts'
import { invalidField, refused } from '../../shared/errors.ts'
import type { DesktopOrder, PhoneOrder, StartOrderOptions } from '../../shared/orders.ts'
import { parseOrigin } from '../../shared/origin.ts'
import { requireAddressee } from './kinds/inbox.ts'
import type { OrderRules, OrderTools } from './kinds/recipe.ts'
import { rulesOf } from './kinds/recipes.ts'
import type { OrderRecord, Requester } from './order.ts'
import type { OrderSettings } from './start.ts'

/** Parts of {@link Admission}. */
interface AdmissionParts extends Pick<OrderTools, 'origins' | 'limiter'> {
  readonly settings: OrderSettings
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

/** Hashes of the tokens that a call takes. */
type Hashes = readonly (string | undefined)[]

/** Of the phone, and of the browsers that handed the order over. */
export function phoneHashes({ challengeTokenHash, formerTokenHashes = [] }: OrderRecord): Hashes {
  return [challengeTokenHash, ...formerTokenHashes]
}

/** Whether a token matches one of an order's hashes; never, if the order has none. */
export function matchesAny(token: string, hashes: Hashes): boolean {
  return hashes.some((hash) => hash !== undefined && tokenMatches(token, hash))
}

/** A token that a caller shows, and the hashes of those that the call takes. */
interface ShownToken {
  readonly token: string
  readonly hashes: Hashes
  /** Reason for a token that matches none of the hashes. Default: ORDER_TOKEN_INVALID. */
  readonly refusal?: 'ORDER_TOKEN_INVALID' | 'HANDOVER_INVALID'
}

/**
 * Who may start an order, and who may do something with one: it is an order of this service, and the caller holds the
 * token that the call takes and comes from a page that may use the order. Checked before the order's state is revealed.
 *
 * Throws ORDER_NOT_FOUND, ORDER_TOKEN_INVALID (HANDOVER_INVALID for a ticket), ORIGIN_MISMATCH or NETWORK_MISMATCH.
 */
export class Admission {
  readonly #parts: AdmissionParts

  constructor(parts: AdmissionParts) {
    this.#parts = parts
  }

  /**
   * The desktop that an order is started for: the caller, or the one that a backend with a start key describes. Its
   * origin must be trusted (ORIGIN_NOT_TRUSTED). START_KEY_REQUIRED if there are start keys, the call has none of them,
   * and the service's own pages do not start such orders without one. INVALID_REQUEST if a backend does not describe
   * the desktop, or a caller without a start key does; RATE_LIMITED if own pages start too many.
   */
  async requester(input: StartOrderOptions, request: RequestContext, rules: OrderRules): Promise<Requester> {
    const { settings, limiter } = this.#parts
    if (settings.orderStartKeys === undefined) {
      if (input.requester === undefined) return this.callingDesktop(request)
      throw invalidField('requester', 'requester is for services with start keys (orderStartKeys) only')
    }
    const startKey = startKeyOf(settings.orderStartKeys, request)
    if (startKey !== undefined) return this.#describedDesktop(input, startKey, request, rules)
    if (!this.#isOfOwnPage(input, request, rules)) {
      throw refused('START_KEY_REQUIRED', { metadata: { setting: 'COUNTERSIGN_ORDER_START_KEYS' } })
    }
    const requester = this.callingDesktop(request)
    // Calls of backends with start keys are not limited; without start keys, `start-order` counted the call already.
    await limiter?.spend('start-order', request)
    return requester
  }

  #describedDesktop(
    { requester }: StartOrderOptions,
    startKey: StartKey,
    request: RequestContext,
    { scanned }: OrderRules,
  ): Requester {
    const { settings, origins } = this.#parts
    if (requester === undefined) throw invalidField('requester', 'requester is required, with the origin of the page')
    const { ip = '', userAgent = '' } = requester
    if (settings.proximity === 'enforce' && ip === '' && scanned) {
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
      ...given({ network: networkOfAddress(ip) }),
      startedWithKey: true,
      ...given({ startedBy: startKey.name }),
      startKeyId: startKey.name ?? hashToken(startKey.key),
    }
  }

  /** An order of the service's own pages has no words of the caller: only the backend writes what a person reads. */
  #isOfOwnPage(input: StartOrderOptions, request: RequestContext, { startsOnOwnPages }: OrderRules): boolean {
    const { settings, origins } = this.#parts
    const { displayTitle, displaySummary, adapterId, requester, inboxUserId } = input
    const said = [displayTitle, displaySummary, adapterId, requester, inboxUserId]
    if (settings.ownPagesStart !== true || !startsOnOwnPages) return false
    return said.every((value) => value === undefined) && origins.isOwn(request)
  }

  /** The caller as the desktop. Its origin must be trusted (ORIGIN_NOT_TRUSTED). */
  callingDesktop(request: RequestContext): Requester {
    const origin = this.#parts.origins.requireTrusted(request)
    const { ip = '', userAgent } = request
    return { origin, ip, userAgent, ...given({ network: networkOfRequest(request) }) }
  }

  /** Admits the holder of the order's challenge token. */
  ofPhone(order: OrderRecord, { challengeToken }: PhoneOrder, request: RequestContext): void {
    this.fromPage(order, request, { token: challengeToken, hashes: [order.challengeTokenHash] })
  }

  /** Admits the holder of a token with one of these hashes. */
  fromPage(order: OrderRecord, request: RequestContext, shown: ShownToken): void {
    this.#requireHolder(order, shown)
    this.#requireOrigin(order, request)
  }

  /** Admits the user whose inbox has the order. */
  ofUser(order: OrderRecord, userId: string, request: RequestContext): void {
    this.#requireOfService(order)
    requireAddressee(order, userId)
    this.#requireOrigin(order, request)
  }

  /**
   * Admits the holder of the desktop's token. `prove` is what else the holder has to prove, before anything about the
   * order is revealed.
   */
  ofDesktop(
    order: OrderRecord,
    { desktopToken }: DesktopOrder,
    request: RequestContext,
    prove: () => void = () => {},
  ): void {
    this.#requireHolder(order, { token: desktopToken, hashes: [order.desktopTokenHash] })
    prove()
    // Only browsers send their origin. An application's backend may call the service by another name than its pages do.
    if (request.originSource === 'Origin header') this.#requireOrigin(order, request)
  }

  /** Checked before anything about the order's origin is revealed. */
  #requireHolder(order: OrderRecord, { token, hashes, refusal = 'ORDER_TOKEN_INVALID' }: ShownToken): void {
    this.#requireOfService(order)
    if (!matchesAny(token, hashes)) throw refused(refusal)
  }

  #requireOfService(order: OrderRecord): void {
    const mismatch = mismatchReason(order, this.#parts.settings.appName, this.#parts.origins)
    if (mismatch !== undefined) throw refused('ORDER_NOT_FOUND', { cause: mismatch })
  }

  #requireOrigin(order: OrderRecord, request: RequestContext): void {
    this.#parts.origins.requireSameOrOwn(request, order.origin, 'order')
  }

  /** Refuses a phone that is not on the desktop's network, if the setting asks for that and the order is scanned. */
  requireNearby(order: OrderRecord, request: RequestContext): void {
    if (this.#parts.settings.proximity !== 'enforce' || !rulesOf(order).scanned) return
    if (sameNetwork(order.requester.network, networkOfRequest(request)) === true) return
    throw refused('NETWORK_MISMATCH')
  }
}
