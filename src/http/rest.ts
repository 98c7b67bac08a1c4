import type { JsonObject, JsonValue } from '@bufbuild/protobuf'
import { CountersignError } from '../errors.ts'
import type { RequestContext } from '../request.ts'
import { type FailureObserver, retryAfterSeconds, toFailure } from '../rpc/connect-errors.ts'
import type { UnaryMethod } from '../rpc/methods.ts'
import { clientGone, type NodeRequest, type NodeResponse, readBody, send } from './node-request.ts'
import { messageFromRest, restFromMessage } from './rest-json.ts'

/** A REST endpoint: an RPC under another name. */
export interface RestRoute {
  readonly httpMethod: 'GET' | 'POST'
  readonly path: string
  readonly rpc: UnaryMethod
  /** Reads the RPC's message from the request. */
  readonly input: (request: NodeRequest) => Promise<JsonValue> | JsonValue
}

/** Serves a REST endpoint. */
export async function serveRest(
  route: RestRoute,
  request: NodeRequest,
  response: NodeResponse,
  context: RequestContext,
  observe: FailureObserver,
): Promise<void> {
  const { desc, run } = route.rpc
  const headers = new Headers()
  try {
    const message = messageFromRest(desc.input, await route.input(request))
    const reply = await run(message, { request: context, responseHeaders: headers, signal: clientGone(response) })
    sendJson(response, 200, headers, restFromMessage(desc.output, reply))
  } catch (thrown) {
    sendFailure(response, toFailure(thrown), observe)
  }
}

/** Answers a failure: `{"code", "message"}` and its HTTP status. */
export function sendFailure(response: NodeResponse, failure: CountersignError, observe: FailureObserver): void {
  observe(failure)
  const headers = new Headers()
  if (failure.retryAfterMs !== undefined) headers.set('retry-after', retryAfterSeconds(failure.retryAfterMs))
  sendJson(response, failure.httpStatus, headers, { code: failure.reason, message: failure.message })
}

/** Sends JSON that no cache may keep. */
export function sendJson(response: NodeResponse, status: number, headers: Headers, json: JsonObject): void {
  headers.set('content-type', 'application/json')
  headers.set('cache-control', 'no-store')
  send(response, status, headers, JSON.stringify(json))
}

/** Input of a POST: the body, a JSON object; none at all is as good as an empty one. */
export async function jsonBody(request: NodeRequest): Promise<JsonValue> {
  const body = await readBody(request)
  if (body.length === 0) return {}
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    throw new CountersignError('INVALID_REQUEST', 'Send JSON, with the header content-type: application/json')
  }
  try {
    return JSON.parse(body.toString('utf8')) as JsonValue
  } catch {
    // The parser's message quotes the text, which can hold a token.
    throw new CountersignError('INVALID_REQUEST', 'The body is not valid JSON')
  }
}

/** Input of a GET that has none. */
export function noInput(): JsonValue {
  return {}
}

/**
 * Input of a GET for one order: `?orderId=`, and the token as `Authorization: Bearer`. A phone that cannot set headers may send
 * the challenge token in the query; the desktop's token makes sessions, and never stands in an address.
 */
export function orderQuery(tokenField: string): (request: NodeRequest) => JsonObject {
  return (request) => {
    const query = new URLSearchParams((request.url ?? '').split('?')[1])
    const bearer = /^Bearer +(\S+)\s*$/i.exec(request.headers.authorization ?? '')?.[1]
    const inQuery = tokenField === 'challengeToken' ? query.get(tokenField) : null
    return { orderId: query.get('orderId') ?? '', [tokenField]: bearer ?? inQuery ?? '' }
  }
}
