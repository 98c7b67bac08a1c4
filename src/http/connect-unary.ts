import {
  create,
  type DescMessage,
  fromBinary,
  fromJsonString,
  type MessageShape,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from '@connectrpc/connect/protocol-connect'
import { CountersignError } from '../errors.ts'
import type { RequestContext } from '../request.ts'
import { type FailureObserver, toConnectError } from '../rpc/connect-errors.ts'
import { requireValid, type UnaryMethod } from '../rpc/methods.ts'
import { clientGone, type NodeRequest, type NodeResponse, readBody, send } from './node-request.ts'

/** Longest deadline a caller can set, milliseconds; WatchOrder streams end by themselves before it. */
export const maxTimeoutMs: number = 15 * 60_000

/** What the lean path needs besides the method. */
export interface ConnectUnaryContext {
  readonly request: RequestContext
  readonly observe: FailureObserver
}

/**
 * Whether the lean path below can serve a request: a plain POST of the Connect protocol, as browsers and simple clients send
 * it. Compressed bodies and all other protocols go to connect-node.
 */
export function isPlainConnectUnary(request: NodeRequest): boolean {
  return (
    request.method === 'POST' &&
    /^application\/(json|proto)(; *charset=utf-8)?$/i.test(request.headers['content-type'] ?? '') &&
    (request.headers['content-encoding'] ?? 'identity') === 'identity'
  )
}

/**
 * Serves a unary RPC of the Connect protocol straight from node:http. It does what connect-node does for such a request, at a
 * fraction of the work: see bench/README.md.
 */
export async function serveConnectUnary(
  method: UnaryMethod,
  request: NodeRequest,
  response: NodeResponse,
  context: ConnectUnaryContext,
): Promise<void> {
  const json = /json/i.test(request.headers['content-type'] ?? '')
  const headers = new Headers()
  try {
    const run = async () => {
      const message = decode(method.desc.input, json, await readBody(request))
      requireValid(method.desc.input, message)
      const call = { request: context.request, responseHeaders: headers, signal: clientGone(response) }
      return create(method.desc.output, await method.run(message, call))
    }
    const reply = await withinDeadline(run, request.headers['connect-timeout-ms'])
    headers.set('content-type', json ? 'application/json' : 'application/proto')
    send(response, 200, headers, json ? toJsonString(method.desc.output, reply) : toBinary(method.desc.output, reply))
  } catch (thrown) {
    const error = toConnectError(thrown)
    if (error.cause instanceof CountersignError) context.observe(error.cause)
    // Nothing of a call that failed is handed out, cookies above all.
    const errorHeaders = new Headers(error.metadata)
    errorHeaders.set('content-type', 'application/json')
    send(response, codeToHttpStatus(error.code), errorHeaders, errorToJsonBytes(error, undefined))
  }
}

function decode(schema: DescMessage, json: boolean, body: Buffer): MessageShape<DescMessage> {
  try {
    return json
      ? fromJsonString(schema, body.toString('utf8'), { ignoreUnknownFields: true })
      : fromBinary(schema, body)
  } catch (cause) {
    throw new ConnectError(
      `The body does not decode: ${(cause as Error).message}`,
      Code.InvalidArgument,
      undefined,
      undefined,
      cause,
    )
  }
}

/** Runs a call and waits for its reply as long as the caller does, by its Connect-Timeout-Ms header. */
async function withinDeadline<Reply>(run: () => Promise<Reply>, header: string | string[] | undefined): Promise<Reply> {
  if (header === undefined) return await run()
  const { timeoutMs, error } = parseTimeout(String(header), maxTimeoutMs)
  // Before anything is done: what is refused must not have happened.
  if (error !== undefined) throw error
  const running = run()
  // Whatever becomes of it after the deadline, it is not to be an unhandled rejection.
  running.catch(() => {})
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new ConnectError('the operation timed out', Code.DeadlineExceeded)), timeoutMs)
  })
  return await Promise.race([running, expired]).finally(() => clearTimeout(timer))
}
