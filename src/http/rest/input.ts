import type { JsonObject, JsonValue } from '@bufbuild/protobuf'
import { bearerToken, headerOf } from '../../base/request.ts'
import { parseJson } from '../../rpc/read-input.ts'
import { isJson, maxBodyBytes, notJson } from '../../wire/body.ts'
import { decompressed, encodingOf } from '../../wire/compression.ts'
import type { Exchange } from '../route.ts'

/** Reads the JSON of an RPC's message from a request. */
export type ReadJson = (exchange: Exchange) => Promise<JsonValue> | JsonValue

/** Input of a POST: the body, a JSON object. An empty body counts as an empty object. */
export function jsonBody({ body, headers }: Exchange): Promise<JsonValue> {
  return body.read(maxBodyBytes, async (bytes) => {
    if (bytes.length === 0) return {}
    if (!isJson(headers)) throw notJson()
    return parseJson(body.decompressed ? bytes : await decompressed(encodingOf(headers, 'content-encoding'), bytes))
  })
}

/** Input of a GET that has none. */
export function noInput(): JsonValue {
  return {}
}

/** Input of a GET for the caller's session. */
export function sessionQuery(exchange: Exchange): JsonValue {
  return queryOf(exchange)('allowSignedOut') === 'true' ? { allowSignedOut: true } : {}
}

/**
 * Input of a GET for one order: `?orderId=`, and the token as `Authorization: Bearer`. A phone that cannot set headers
 * can send the challenge token in the query, beside the wallet that is going to sign. The desktop's token can make a session, so
 * it is never accepted in a URL.
 */
export function orderQuery(tokenField: 'challengeToken' | 'desktopToken'): ReadJson {
  return (exchange) => {
    const { context } = exchange
    const order = orderInput(tokenField, bearerToken(context), queryOf(exchange))
    return tokenField === 'desktopToken' ? withLastEventId(order, headerOf(context, 'last-event-id')) : order
  }
}

/** The parameters in a request's query, by their names. */
export function queryOf({ query }: Pick<Exchange, 'query'>): (name: string) => string | undefined {
  const parameters = new URLSearchParams(query)
  return (name) => parameters.get(name) ?? undefined
}

/** The same from a bearer token and a query, however they are read. */
export function orderInput(
  tokenField: 'challengeToken' | 'desktopToken',
  bearer: string | undefined,
  queried: (name: string) => string | undefined,
): JsonObject {
  const orderId = queried('orderId') ?? ''
  if (tokenField === 'desktopToken') return { orderId, desktopToken: bearer ?? '' }
  const wallet = walletFields.map((name) => [name, queried(name)] as const).filter(([, value]) => value !== undefined)
  return { orderId, challengeToken: bearer ?? queried('challengeToken') ?? '', ...Object.fromEntries(wallet) }
}

/** The wallet that is going to sign, in the query of a challenge. */
const walletFields = ['adapterId', 'address', 'chainId'] as const

/** The input of a watch that resumes after the last event that a client has seen. */
export function withLastEventId(order: JsonObject, lastEventId: string | undefined): JsonObject {
  return lastEventId === undefined || lastEventId === '' ? order : { ...order, afterSequence: lastEventId }
}
