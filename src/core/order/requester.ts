import { readAddress } from '../../base/networks.ts'
import { bearerToken, cleanUserAgent, type RequestContext, withParts } from '../../base/request.ts'
import { equalInConstantTime, hashToken } from '../../base/token.ts'
import { CountersignError } from '../../shared/errors.ts'
import { parseOrigin } from '../../shared/origin.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import { networkOfAddress, networkOfRequest } from './proximity.ts'
import type { GivenRequester, OrderSettings, Requester } from './start.ts'

/**
 * The desktop that an order is started for: the caller, or the one that a backend with a start key describes. Its origin must be
 * trusted (ORIGIN_NOT_TRUSTED). START_KEY_REQUIRED if there are start keys and the call has none of them. INVALID_REQUEST if a
 * backend does not say whom the order is for, or a caller without a start key describes somebody.
 */
export function requesterOf(
  given: GivenRequester | undefined,
  request: RequestContext,
  { orderStartKeys, proximity }: Pick<OrderSettings, 'orderStartKeys' | 'proximity'>,
  origins: OriginPolicy,
): Requester {
  if (orderStartKeys === undefined) {
    if (given !== undefined)
      throw invalid('requester', 'requester is for services with start keys (orderStartKeys) only')
    const origin = origins.requireTrusted(request)
    const { ip = '', userAgent } = request
    return { origin, ip, userAgent, ...networkField(networkOfRequest(request)) }
  }
  requireStartKey(orderStartKeys, request)
  if (given === undefined) throw invalid('requester', 'requester is required, with the origin of the page')
  const { ip = '', userAgent = '' } = given
  if (proximity === 'enforce' && ip === '') {
    throw invalid('requester.ip', 'requester.ip is required, because the networks of computer and phone are compared')
  }
  const origin = origins.requireTrusted(
    withParts(request, { origin: parseOrigin(given.origin), originSource: 'field requester.origin' }),
  )
  return {
    origin,
    ip: readAddress(ip) ?? '',
    userAgent: cleanUserAgent(userAgent),
    ...networkField(networkOfAddress(ip)),
    startedWithKey: true,
  }
}

function requireStartKey(keys: readonly string[], request: RequestContext): void {
  const given = hashToken(bearerToken(request) ?? '')
  // Each is compared, so that the time does not tell which one comes close.
  const right = keys.map((key) => equalInConstantTime(hashToken(key), given))
  if (right.includes(true)) return
  throw new CountersignError(
    'START_KEY_REQUIRED',
    'Orders are started by the backend of the application, with one of orderStartKeys (COUNTERSIGN_ORDER_START_KEYS) as Authorization: Bearer',
    { metadata: { setting: 'COUNTERSIGN_ORDER_START_KEYS' } },
  )
}

function networkField(network: string | undefined): { readonly network?: string } {
  return network === undefined ? {} : { network }
}

function invalid(field: string, message: string): CountersignError {
  return new CountersignError('INVALID_REQUEST', message, { metadata: { field } })
}
