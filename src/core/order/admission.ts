import { mismatchReason } from '../../base/record.ts'
import type { RequestContext } from '../../base/request.ts'
import { tokenMatches } from '../../base/token.ts'
import { CountersignError } from '../../shared/errors.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import { refused } from './change.ts'
import type { OrderRecord } from './order.ts'
import { networkOfRequest, sameNetwork } from './proximity.ts'
import type { OrderSettings } from './start.ts'

/** Names an order, with the phone's token. */
export interface PhoneInput {
  readonly orderId: string
  readonly challengeToken: string
}

/** Names an order, with the desktop's token. */
export interface DesktopInput {
  readonly orderId: string
  readonly desktopToken: string
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

/**
 * Whether a caller may do something with an order: it is an order of this service, and the caller holds the token that the call takes
 * and comes from a page that may use the order. Checked before anything of the order's state is told.
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
  ofPhone({ challengeToken }: PhoneInput, request: RequestContext): (order: OrderRecord) => void {
    return (order) => this.fromPage(order, challengeToken, [order.challengeTokenHash], request)
  }

  /** Admits who holds a token with one of these hashes. */
  fromPage(
    order: OrderRecord,
    token: string,
    hashes: Hashes,
    request: RequestContext,
    refusal?: 'HANDOVER_INVALID',
  ): void {
    this.#requireHolder(order, token, hashes, refusal)
    this.#requireOrigin(order, request)
  }

  /** Checked before anything about the order's origin is told. */
  #requireHolder(
    order: OrderRecord,
    token: string,
    hashes: Hashes,
    refusal: 'ORDER_TOKEN_INVALID' | 'HANDOVER_INVALID' = 'ORDER_TOKEN_INVALID',
  ): void {
    const mismatch = mismatchReason(order, this.#settings.appName, this.#origins)
    if (mismatch !== undefined) throw refused('ORDER_NOT_FOUND', mismatch)
    if (!matchesAny(token, hashes)) throw refused(refusal)
  }

  /** Admits who holds the desktop's token. `prove` is what else they have to prove, before anything about the order is told. */
  ofDesktop(
    { desktopToken }: DesktopInput,
    request: RequestContext,
    prove: (order: OrderRecord) => void = () => {},
  ): (order: OrderRecord) => void {
    return (order) => {
      this.#requireHolder(order, desktopToken, [order.desktopTokenHash])
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
    if (this.#settings.proximity !== 'enforce') return
    if (sameNetwork(order.requester.network, networkOfRequest(request)) === true) return
    throw new CountersignError(
      'NETWORK_MISMATCH',
      'The phone is not on the network of the computer, or that cannot be told; connect both to the same network, and start again',
    )
  }
}
