import { METHODS } from 'node:http'
import type { Logger } from '../base/log.ts'
import type { OriginPolicy } from '../core/origin-policy.ts'
import { toFailure } from '../rpc/errors.ts'
import type { CallObserver, CallOutcome, CallReport, Invoker, PartLabel, RouteName } from '../rpc/invoke.ts'
import { isUnary, type Method } from '../rpc/methods.ts'
import { CountersignError, refused } from '../shared/errors.ts'
import type { WireMethod } from '../wire/contract.ts'
import { type Output, ResponseOutput, StreamOutput } from '../wire/output.ts'
import { serveRpc } from '../wire/serve-rpc.ts'
import { wireOf } from '../wire/wire.ts'
import { applyCors } from './cors.ts'
import {
  type Exchange,
  HttpCall,
  nodeExchange,
  type RequestHandler,
  type Route,
  requireHttpMethod,
  streamExchange,
  targetOf,
} from './exchange.ts'
import { addressOf, type FetchHandler, FetchOutput, fetchExchange } from './fetch.ts'
import { forwardAuth, forwardAuthPath, type PeekSession } from './forward-auth.ts'
import { mountedBody, originalTarget } from './mount.ts'
import { forwardedNotice, mountNotice, refusedPageNotice, unknownClientNotice } from './notices.ts'
import { documentPath, type OpenApiSettings } from './openapi.ts'
import type { PageFiles } from './page-files.ts'
import { createPages, type PageSettings } from './pages.ts'
import { defaultTimeouts } from './port/limits.ts'
import type { PortHandlers } from './port/port.ts'
import { type KeySetHolder, keySetPath, type OptionsSettings, publicDocuments } from './public-documents.ts'
import { refusals } from './refusals.ts'
import { type RestEndpoint, restEndpoints } from './rest/endpoints.ts'
import { serveEvents } from './rest/events.ts'
import { sendFailure, sendJson, serveRest } from './rest/serve.ts'

/** What the routes take of the settings. */
export interface AppSettings extends PageSettings, OptionsSettings, OpenApiSettings {
  /** Number of proxies in front. */
  readonly trustProxy: number
  readonly rateLimit: boolean
}

/** Parts of the application. */
export interface AppParts {
  readonly settings: AppSettings
  /** Every RPC with its handler, those of gRPC's own services included. */
  readonly methods: readonly Method[]
  readonly invoker: Invoker
  /** Receives the report of every request without an RPC: `/healthz`, pages, and refusals before an RPC is known. */
  readonly observe: CallObserver
  readonly origins: OriginPolicy
  /** Finds the session of a proxied request; `undefined` if the application keeps the sessions itself. */
  readonly peekSession: PeekSession | undefined
  /** Holder of the key set of access tokens; absent if none are issued. */
  readonly signingKeys?: KeySetHolder | undefined
  /** Routes of a further part, such as the OpenID Connect issuer; absent if there is none. */
  readonly part?: PartRoutes | undefined
  /** The built pages; `undefined` if they have not been built. */
  readonly pageFiles: PageFiles | undefined
  /** Resolves when the store answers. */
  readonly ready: () => Promise<void>
  readonly shutdownSignal: AbortSignal
  readonly log: Logger
}

/** A route of a further part, and its label in reports. */
export interface PartRoute {
  readonly label: PartLabel
  readonly serve: Route
}

/** The routes of a further part of the service, which has its own rules for foreign pages. */
export interface PartRoutes {
  /** The route of a path that is the part's; `undefined` for any other. */
  find(path: string): PartRoute | undefined
  /** Its paths that are not under the base path. */
  readonly places: readonly string[]
}

/** Entries of the service for requests. */
export interface App {
  /** Serves the service's own port. */
  readonly port: PortHandlers
  /** Serves requests of another server, and passes those that are not the service's to `next`. */
  readonly handler: RequestHandler
  /** Serves a `Request`. */
  readonly fetch: FetchHandler
}

/** Makes the application from its parts. */
export function createApp(parts: AppParts): App {
  const routing = createRouting(parts)
  const serve = exchangeServer(parts, routing.publicPaths)
  return {
    port: portHandlers(routing, serve, parts),
    handler: mountedHandler(routing, serve, parts),
    fetch: fetchHandler(routing, serve, parts),
  }
}

/** Serves a request by its route. `read` reads the request; its errors are answered too. */
type ServeExchange = (output: Output, read: () => Exchange, find: (path: string) => Route) => void

/** Makes browsers take the content type as it is. */
const noGuesses = { 'x-content-type-options': 'nosniff' } as const

function exchangeServer({ settings, origins, part, log }: AppParts, publicPaths: ReadonlySet<string>): ServeExchange {
  const askedByProxies = settings.basePath + forwardAuthPath
  const notice = forwardedNotice(settings.trustProxy, log)
  const noticeRefused = refusedPageNotice(log)
  const serve = (output: Output, read: () => Exchange, find: (path: string) => Route): void | Promise<void> => {
    const exchange = read()
    notice(exchange.context)
    output.setHeaders(noGuesses)
    // A proxy can pass on its client's preflight unchanged, and takes any 2xx for permission.
    if (exchange.path !== askedByProxies && part?.find(exchange.path) === undefined) {
      const cors = applyCors(exchange, origins, publicPaths.has(exchange.path))
      if (cors === 'refused') noticeRefused(exchange.context.origin)
      if (cors !== 'continue') return
    }
    return find(exchange.path)(exchange)
  }
  return (output, read, find) => {
    const failed = (thrown: unknown): void => {
      const failure = toFailure(thrown)
      const level = failure.httpStatus < 500 ? 'info' : 'error'
      log[level]('request failed', { reason: failure.reason, ...failure.metadata, cause: String(failure.cause) })
      sendFailure(output, failure)
    }
    try {
      serve(output, read, find)?.catch(failed)
    } catch (thrown) {
      failed(thrown)
    }
  }
}

/** Keep-alive time that the service's own port announces. */
const keepAliveSeconds = defaultTimeouts.keepAliveMs / 1000

function portHandlers({ find, notFound }: Routing, serve: ServeExchange, { settings }: AppParts): PortHandlers {
  const trustedProxies = settings.trustProxy
  const routeOf = (path: string): Route => find(path) ?? notFound
  return {
    request: (request, response) => {
      const output = new ResponseOutput(response, keepAliveSeconds)
      serve(output, () => nodeExchange({ request, trustedProxies }, output), routeOf)
    },
    stream: (stream, headers) => {
      const output = new StreamOutput(stream)
      serve(output, () => streamExchange(headers, trustedProxies, output), routeOf)
    },
  }
}

function mountedHandler(routing: Routing, serve: ServeExchange, { settings, log }: AppParts): RequestHandler {
  const trustedProxies = settings.trustProxy
  const notice = mountNotice(routing.places, log)
  return (request, response, next) => {
    notice(request)
    const target = originalTarget(request)
    const route = findMounted(routing, targetOf(target).path)
    if (route === undefined && next !== undefined) {
      next()
      return
    }
    const output = new ResponseOutput(response)
    const read = (): Exchange => nodeExchange({ request, target, body: mountedBody(request), trustedProxies }, output)
    serve(output, read, () => route ?? routing.notFound)
  }
}

function fetchHandler(routing: Routing, serve: ServeExchange, { settings, log }: AppParts): FetchHandler {
  const trustedProxies = settings.trustProxy
  const notice = settings.rateLimit ? unknownClientNotice(log) : undefined
  return async (request, client) => {
    const remoteAddress = addressOf(client)
    const url = new URL(request.url)
    const output = new FetchOutput(request)
    const read = (): Exchange => {
      const exchange = fetchExchange(request, { url, remoteAddress, trustedProxies }, output)
      notice?.(exchange.context)
      return exchange
    }
    serve(output, read, (path) => findMounted(routing, path) ?? routing.notFound)
    return await output.response
  }
}

/** Paths that belong to the application: its page at the root, and the OpenAPI document of its own API. */
const applicationPaths: ReadonlySet<string> = new Set(['/', documentPath])

function findMounted({ find }: Routing, path: string): Route | undefined {
  return applicationPaths.has(path) ? undefined : find(path)
}

/** Paths and routes of the service. */
interface Routing {
  /** The route of one of the service's own paths; `undefined` for any other. */
  readonly find: (path: string) => Route | undefined
  /** Refuses a request for an unknown path. */
  readonly notFound: Route
  /** The service's own paths when it is mounted; `*` at the end stands for any continuation. */
  readonly places: readonly string[]
  /** Paths of the documents that pages of all origins may read. */
  readonly publicPaths: ReadonlySet<string>
}

/**
 * Makes the routing table, which has all paths but those of pages. All paths under basePath are the service's own, too.
 */
function createRouting(parts: AppParts): Routing {
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
  const health = (serve: Route): Route =>
    observed('health', observe, (exchange) => {
      requireHttpMethod(exchange, ['GET', 'HEAD'])
      return serve(exchange)
    })
  add(
    '/healthz',
    health(({ output }) => sendJson(output, 200, {}, { status: 'ok' })),
  )
  add(
    '/readyz',
    health((exchange) => serveReadiness(parts, exchange)),
  )
  const documents = publicDocuments(settings, parts.signingKeys)
  for (const [path, { label, serve }] of documents) add(path, observed(label, observe, serve))
  const { peekSession } = parts
  const pages = createPages(settings, parts.log, {
    files: parts.pageFiles,
    peekSession: peekSession && ((request) => peekSession(request, true)),
    isOwn: (request) => parts.origins.isOwn(request),
  })
  const asked = forwardAuth(settings, peekSession, pages.refusal)
  add(settings.basePath + forwardAuthPath, observed('forward-auth', observe, asked))
  const notFound = observed('unknown', observe, (exchange) => {
    // If this answers, the refusal is for the log and the metrics.
    pages.answerUnknown(exchange)
    const shown = exchange.path.slice(0, 200)
    throw refused('ROUTE_NOT_FOUND', { metadata: { path: shown } })
  })
  const { basePath } = settings
  const isUnderBase = (path: string): boolean =>
    basePath !== '' && (path === basePath || path.startsWith(`${basePath}/`))
  const find = (path: string): Route | undefined => {
    const route = table.get(path)
    if (route !== undefined) return route
    const ofPart = parts.part?.find(path)
    if (ofPart !== undefined) return observed(ofPart.label, observe, ofPart.serve)
    const page = pages.find(path)
    if (page !== undefined) return observed('page', observe, page)
    return isUnderBase(path) ? notFound : undefined
  }
  const services = new Set(methods.map(({ desc }) => `/${desc.parent.typeName}/*`))
  const others = [...table.keys(), ...(parts.part?.places ?? []), ...pages.places].filter(
    (path) => !isUnderBase(path) && !applicationPaths.has(path) && !methods.some(({ name }) => path === `/${name}`),
  )
  const base = basePath === '' ? [] : [`${basePath}/*`]
  // A client may ask for a key set that is not there: no origin is to be trusted for it.
  const publicPaths = new Set([...documents.keys(), keySetPath, basePath + keySetPath])
  return { find, notFound, places: [...services, ...base, ...others], publicPaths }
}

/** An RPC at its own path. */
function rpcRoute(method: Method, { invoker, observe }: AppParts): Route {
  const served = wireMethodOf(method, invoker)
  return beginning(method.name, observe, (exchange) => {
    const { headers, authority, body, context, output } = exchange
    requireHttpMethod(exchange, ['POST'])
    const wire = wireOf(headers['content-type'])
    if (wire === undefined || (wire.protocol === 'connect' && wire.enveloped === isUnary(method))) {
      output.setHeaders({ 'accept-post': isUnary(method) ? unaryTypes : streamTypes })
      throw new UnsupportedType('No call of this RPC has this content type')
    }
    if (wire.protocol === 'grpc' && !output.takesTrailers) {
      output.setHeaders({ 'accept-post': 'application/json, application/proto, application/grpc-web' })
      throw new UnsupportedType('gRPC needs trailers, which this server cannot send: use Connect or gRPC-Web here')
    }
    if (!isAuthority(authority)) throw new CountersignError('INVALID_REQUEST', 'The Host header is malformed')
    const callOf = (timeoutMs: number | undefined): HttpCall =>
      new HttpCall({ protocol: wire.protocol, request: context, answering: output.answering, timeoutMs })
    return serveRpc(served, { wire, headers, body, output, refusals, callOf })
  })
}

/** An RPC as `wire` serves it: all its calls pass the invoker. */
function wireMethodOf(method: Method, invoker: Invoker): WireMethod<HttpCall> {
  if (isUnary(method)) {
    return { kind: 'unary', desc: method.desc, invoke: (invocation) => invoker.unary({ ...invocation, method }) }
  }
  return { kind: 'stream', desc: method.desc, invoke: (invocation) => invoker.stream({ ...invocation, method }) }
}

const grpcTypes = 'application/grpc, application/grpc+proto, application/grpc-web, application/grpc-web-text'
const unaryTypes = `application/json, application/proto, ${grpcTypes}`
const streamTypes = `application/connect+json, application/connect+proto, ${grpcTypes}`

/** Whether a Host header is just a host with an optional port (RFC 9110, 7.2). */
function isAuthority(text: string): boolean {
  return !/[\s/\\?#@]/.test(text) && URL.canParse(`http://${text}`)
}

function restRoute(path: string, endpoints: readonly RestEndpoint[], { methods, invoker, observe }: AppParts): Route {
  const byHttpMethod = new Map<string, Route>(
    endpoints.flatMap((endpoint) => {
      const method = methods.find(({ desc }) => desc === endpoint.rpc)
      if (method === undefined) throw new TypeError(`${endpoint.rpc.name} has no handler for REST`)
      const { input } = endpoint
      const serve: Route = isUnary(method)
        ? (exchange) => serveRest(method, { input, exchange, invoker })
        : (exchange) => serveEvents(method, { input, exchange, invoker })
      // HEAD is allowed where GET is (RFC 9110, 9.3.2), except for streams, which would continue unread.
      const isRead = endpoint.httpMethod === 'GET' && isUnary(method)
      return [endpoint.httpMethod, ...(isRead ? ['HEAD'] : [])].map((httpMethod) => [httpMethod, serve])
    }),
  )
  return beginning(path, observe, (exchange) => {
    requireHttpMethod(exchange, [...byHttpMethod.keys()])
    return byHttpMethod.get(exchange.method)?.(exchange)
  })
}

async function serveReadiness({ ready, shutdownSignal }: AppParts, { output }: Exchange): Promise<void> {
  if (shutdownSignal.aborted) return sendJson(output, 503, {}, { status: 'stopping' })
  await ready()
  sendJson(output, 200, {}, { status: 'ready' })
}

/**
 * A route without an RPC: its failures are answered here, and the observer gets its report when the response is over.
 */
function observed(name: RouteName, observe: CallObserver, serve: Route): Route {
  return async (exchange) => {
    const { method, output } = exchange
    const startedAt = performance.now()
    let outcome: CallOutcome = 'ok'
    output.answering.once('close', () => {
      observe(reportOf(exchange, { method: name, outcome, durationMs: performance.now() - startedAt }))
    })
    try {
      await serve(exchange)
    } catch (thrown) {
      const failure = toFailure(thrown)
      outcome = failure
      sendFailure(output, failure, statusOf(failure, method))
    }
  }
}

/** Report of a request without an RPC. Clients of HTTP/2 can send any text as the HTTP method. */
function reportOf(exchange: Exchange, end: Pick<CallReport, 'method' | 'path' | 'outcome' | 'durationMs'>): CallReport {
  const { method, context } = exchange
  return { protocol: 'http', httpMethod: METHODS.includes(method) ? method : 'other', request: context, ...end }
}

/** A refusal of a body's content type, answered with 415. */
class UnsupportedType extends CountersignError {
  constructor(message: string) {
    super('INVALID_REQUEST', message)
  }
}

/** The HTTP status of a refusal: 501 for an unknown method (RFC 9110, 15.6.2), 415 for a content type. */
function statusOf(failure: CountersignError, method: string): number {
  if (failure instanceof UnsupportedType) return 415
  return failure.reason === 'METHOD_NOT_ALLOWED' && !METHODS.includes(method) ? 501 : failure.httpStatus
}

/** A route whose calls the invoker reports. What is refused before a call begins is answered and reported here. */
function beginning(name: string, observe: CallObserver, serve: Route): Route {
  return (exchange) => {
    try {
      return serve(exchange)
    } catch (thrown) {
      const { method, path, output } = exchange
      const outcome = toFailure(thrown)
      observe(reportOf(exchange, { method: name, path, outcome, durationMs: 0 }))
      sendFailure(output, outcome, statusOf(outcome, method))
    }
  }
}
