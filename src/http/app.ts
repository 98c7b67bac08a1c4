import { METHODS } from 'node:http'
import { constants } from 'node:http2'
import type { Settings } from '../config.ts'
import { CountersignError } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import { readRequest } from '../request.ts'
import { toFailure } from '../rpc/errors.ts'
import type { CallObserver, CallOutcome, Invoker } from '../rpc/invoke.ts'
import { isUnary, type Method } from '../rpc/methods.ts'
import { applyCors } from './cors.ts'
import {
  authorityOf,
  type NodeRequest,
  type NodeResponse,
  pathOf,
  type RequestHandler,
  rawRequest,
  rawStream,
  type StreamHandler,
} from './node-request.ts'
import { ResponseOutput, StreamOutput } from './output.ts'
import { createPages } from './pages.ts'
import { type RestEndpoint, restEndpoints } from './rest/endpoints.ts'
import { serveEvents } from './rest/events.ts'
import { sendFailure, sendJson, serveRest } from './rest/serve.ts'
import { type Exchange, type Route, requireHttpMethod } from './route.ts'
import { serveRpc } from './serve-rpc.ts'
import { wireOf } from './wire.ts'

/** What the request handler is made of. */
export interface AppParts {
  readonly settings: Settings
  /** Every RPC with its handler, the health check's included. */
  readonly methods: readonly Method[]
  readonly invoker: Invoker
  /** Told of every request that no RPC takes: `/healthz`, pages, and refusals before an RPC is known. */
  readonly observe: CallObserver
  readonly origins: OriginPolicy
  /** Resolves if the store answers. */
  readonly ready: () => Promise<void>
  readonly shutdownSignal: AbortSignal
  readonly log: Logger
}

/** What a port serves with. */
export interface App {
  /** Serves a request: what every request has in common, then one look at the routing table. */
  readonly serve: RequestHandler
  /** Serves the HTTP/2 streams that need no request and response objects: gRPC calls. */
  readonly takeStream: StreamHandler
}

/** Makes the application out of its parts. */
export function createApp(parts: AppParts): App {
  return { serve: requestHandler(parts), takeStream: streamHandler(parts) }
}

function requestHandler(parts: AppParts): RequestHandler {
  const { settings, origins } = parts
  const find = routingTable(parts)
  const serve = async (request: NodeRequest, response: NodeResponse): Promise<void> => {
    const context = readRequest(rawRequest(request), settings.trustProxy)
    const exchange: Exchange = { request, response, path: pathOf(request), context }
    response.setHeader('x-content-type-options', 'nosniff')
    if (applyCors(exchange, (origin) => origins.isTrusted(origin)) === 'preflight') return
    await find(exchange.path)(exchange)
  }
  return (request, response) => {
    serve(request, response).catch((thrown: unknown) => {
      const failure = toFailure(thrown)
      const level = failure.httpStatus < 500 ? 'info' : 'error'
      parts.log[level]('request failed', { reason: failure.reason, ...failure.metadata, cause: String(failure.cause) })
      sendFailure(response, failure)
    })
  }
}

function streamHandler({ settings, methods, invoker, log }: AppParts): StreamHandler {
  const byPath = new Map(methods.map((method) => [`/${method.name}`, method]))
  return (stream, headers) => {
    const method = byPath.get(headers[':path'] ?? '')
    if (method === undefined || headers[':method'] !== 'POST') return false
    const wire = wireOf(headers['content-type'])
    if (wire?.protocol !== 'grpc' || !isAuthority(headers[':authority'] ?? '')) return false
    const context = readRequest(rawStream(stream, headers), settings.trustProxy)
    const output = new StreamOutput(stream)
    serveRpc(method, { wire, headers, body: stream, context, output }, invoker).catch((cause: unknown) => {
      log.error('answer not written', { method: method.name, cause: String(cause) })
      stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    })
    return true
  }
}

/** Finds the route of a path. All paths but those of pages are in one table. */
function routingTable(parts: AppParts): (path: string) => Route {
  const { settings, methods, observe } = parts
  const table = new Map<string, Route>()
  const add = (path: string, route: Route): void => {
    if (table.has(path)) throw new TypeError(`two routes have the path ${path}; change basePath or endpointPrefix`)
    table.set(path, route)
  }
  for (const method of methods) add(`/${method.name}`, rpcRoute(method, parts))
  for (const [path, endpoints] of Map.groupBy(restEndpoints(settings), (endpoint) => endpoint.path)) {
    add(path, restRoute(path, endpoints, parts))
  }
  const health = (serve: Route): Route => observed('health', observe, serve)
  add(
    '/healthz',
    health(({ response }) => sendJson(response, 200, {}, { status: 'ok' })),
  )
  add(
    '/readyz',
    health(({ response }) => serveReadiness(parts, response)),
  )
  const pageOf = createPages(settings, parts.log)
  const notFound = observed('unknown', observe, ({ path }) => {
    const shown = path.slice(0, 200)
    throw new CountersignError('ROUTE_NOT_FOUND', `There is nothing at ${shown}`, { metadata: { path: shown } })
  })
  return (path) => {
    const route = table.get(path)
    if (route !== undefined) return route
    const page = pageOf(path)
    return page === undefined ? notFound : observed('page', observe, page)
  }
}

/** An RPC at its own path. */
function rpcRoute(method: Method, { invoker, observe }: AppParts): Route {
  return async (exchange) => {
    const { request, response, context } = exchange
    if (refuseHttpMethod(exchange, method.name, ['POST'], observe)) return
    const wire = wireOf(request.headers['content-type'])
    if (wire === undefined || (wire.protocol === 'connect' && wire.enveloped === isUnary(method))) {
      response.setHeader('accept-post', isUnary(method) ? unaryTypes : streamTypes)
      const failure = new CountersignError('INVALID_REQUEST', 'No call of this RPC has this content type')
      return refuse(exchange, method.name, failure, observe, 415)
    }
    if (!isAuthority(authorityOf(request))) {
      const failure = new CountersignError('INVALID_REQUEST', 'The Host header is malformed')
      return refuse(exchange, method.name, failure, observe)
    }
    const output = new ResponseOutput(response)
    await serveRpc(method, { wire, headers: request.headers, body: request, context, output }, invoker)
  }
}

const grpcTypes = 'application/grpc, application/grpc+proto, application/grpc-web, application/grpc-web-text'
const unaryTypes = `application/json, application/proto, ${grpcTypes}`
const streamTypes = `application/connect+json, application/connect+proto, ${grpcTypes}`

let lastAuthority = { text: '', good: false }

/**
 * Whether a Host header is a host and perhaps a port, and nothing else (RFC 9110, 7.2). Most calls have the one of the call
 * before.
 */
function isAuthority(text: string): boolean {
  if (text !== lastAuthority.text) {
    lastAuthority = { text, good: !/[\s/\\?#@]/.test(text) && URL.canParse(`http://${text}`) }
  }
  return lastAuthority.good
}

function restRoute(path: string, endpoints: readonly RestEndpoint[], { methods, invoker, observe }: AppParts): Route {
  const byHttpMethod = new Map<string, Route>(
    endpoints.map((endpoint) => {
      const method = methods.find(({ desc }) => desc === endpoint.rpc)
      if (method === undefined) throw new TypeError(`${endpoint.rpc.name} has no handler`)
      const { input } = endpoint
      const serve: Route = isUnary(method)
        ? (exchange) => serveRest(method, input, exchange, invoker)
        : (exchange) => serveEvents(method, input, exchange, invoker)
      return [endpoint.httpMethod, serve]
    }),
  )
  return async (exchange) => {
    const serve = byHttpMethod.get(exchange.request.method ?? '')
    if (serve !== undefined) return await serve(exchange)
    refuseHttpMethod(exchange, path, [...byHttpMethod.keys()], observe)
  }
}

async function serveReadiness({ ready, shutdownSignal }: AppParts, response: NodeResponse): Promise<void> {
  if (shutdownSignal.aborted) return sendJson(response, 503, {}, { status: 'stopping' })
  await ready()
  sendJson(response, 200, {}, { status: 'ready' })
}

/** A route that no RPC stands behind: its failures are answered here, and the observer is told when the response is over. */
function observed(name: string, observe: CallObserver, serve: Route): Route {
  return async (exchange) => {
    const { request, response, context } = exchange
    const startedAt = performance.now()
    let outcome: CallOutcome = 'ok'
    response.once('close', () => {
      observe({
        method: name,
        protocol: 'http',
        httpMethod: httpMethodOf(request),
        request: context,
        outcome,
        durationMs: performance.now() - startedAt,
      })
    })
    try {
      await serve(exchange)
    } catch (thrown) {
      const failure = toFailure(thrown)
      outcome = failure
      sendFailure(response, failure)
    }
  }
}

/** The HTTP method for the log. HTTP/2 clients can send any text as their method. */
function httpMethodOf(request: NodeRequest): string {
  return METHODS.includes(request.method ?? '') ? (request.method ?? '') : 'other'
}

/** Refuses a call before an RPC takes it. Its path is one of the service's own. */
function refuse(
  { request, response, path, context }: Exchange,
  name: string,
  failure: CountersignError,
  observe: CallObserver,
  status?: number,
): void {
  const httpMethod = httpMethodOf(request)
  observe({ method: name, protocol: 'http', httpMethod, path, request: context, outcome: failure, durationMs: 0 })
  sendFailure(response, failure, status)
}

function refuseHttpMethod(
  exchange: Exchange,
  name: string,
  allowed: readonly string[],
  observe: CallObserver,
): boolean {
  const { request, response, path } = exchange
  try {
    requireHttpMethod(request, response, path, allowed)
    return false
  } catch (thrown) {
    refuse(exchange, name, toFailure(thrown), observe)
    return true
  }
}
