import { METHODS } from 'node:http'
import type { Logger } from '../base/log.ts'
import { headerOf, proxyHeaderOf, type RequestContext } from '../base/request.ts'
import type { OriginPolicy } from '../core/origin-policy.ts'
import { toFailure } from '../rpc/errors.ts'
import type { CallObserver, CallOutcome, Invoker, PartLabel, RouteName } from '../rpc/invoke.ts'
import { isUnary, type Method } from '../rpc/methods.ts'
import { CountersignError, refused } from '../shared/errors.ts'
import { serviceOptionsPath } from '../shared/rest-paths.ts'
import type { WireMethod } from '../wire/contract.ts'
import { type Output, ResponseOutput, StreamOutput } from '../wire/output.ts'
import { serveRpc } from '../wire/serve-rpc.ts'
import { wireOf } from '../wire/wire.ts'
import { applyCors, letAnyPageRead } from './cors.ts'
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
import { mountedBody, mountNotice, originalTarget } from './mount.ts'
import { documentPath, type OpenApiSettings, openApiRoutes } from './openapi.ts'
import { type OptionsSettings, optionsRoute } from './options.ts'
import type { PageFiles } from './page-files.ts'
import { createPages, type PageSettings } from './pages.ts'
import { defaultTimeouts } from './port/limits.ts'
import type { PortHandlers } from './port/port.ts'
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
  const notice = forwardedNotice(parts.settings, parts.log)
  const serve = exchangeServer(parts, notice)
  return {
    port: portHandlers(routing, serve, parts),
    handler: mountedHandler(routing, serve, parts),
    fetch: fetchHandler(routing, serve, parts),
  }
}

/** Serves a request by its route. `read` reads the request; its errors are answered too. */
type ServeExchange = (output: Output, read: () => Exchange, find: (path: string) => Route) => void

/** Checks each request for signs of a wrong setting. */
type Notice = (request: RequestContext) => void

/** Makes browsers take the content type as it is. */
const noGuesses = { 'x-content-type-options': 'nosniff' } as const

function exchangeServer({ settings, origins, part, log }: AppParts, notice: Notice): ServeExchange {
  const askedByProxies = settings.basePath + forwardAuthPath
  const isTrusted = (origin: string): boolean => origins.isTrusted(origin)
  const publicPaths = publicDocuments(settings.basePath)
  const noticeRefused = refusedPageNotice(log)
  const serve = (output: Output, read: () => Exchange, find: (path: string) => Route): void | Promise<void> => {
    const exchange = read()
    notice(exchange.context)
    output.setHeaders(noGuesses)
    // A proxy can pass on its client's preflight unchanged, and takes any 2xx for permission.
    if (exchange.path !== askedByProxies && part?.find(exchange.path) === undefined) {
      const cors = applyCors(exchange, isTrusted, publicPaths.has(exchange.path))
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

/** Most origins that are logged as refused: any client can send one. */
const maxRefusedOrigins = 100

/**
 * Warns once for each origin that its pages cannot call the service. Browsers send nothing after a refused preflight.
 */
function refusedPageNotice(log: Logger): (origin: string | undefined) => void {
  const said = new Set<string>()
  return (origin = 'malformed') => {
    if (said.has(origin) || said.size >= maxRefusedOrigins) return
    said.add(origin)
    log.warn(
      'a page of an origin that is not trusted tried to call the service; if the page is yours, add its origin ' +
        'to trustedOrigins (COUNTERSIGN_TRUSTED_ORIGINS)',
      { origin },
    )
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
  let isSaid = !settings.rateLimit
  return async (request, client) => {
    const remoteAddress = addressOf(client)
    const url = new URL(request.url)
    const output = new FetchOutput(request)
    const read = (): Exchange => {
      const exchange = fetchExchange(request, { url, remoteAddress, trustedProxies }, output)
      if (exchange.context.ip === undefined && !isSaid) {
        isSaid = true
        log.warn(
          'countersign.fetch does not know the address of its clients, so no rate limit counts; pass { ' +
            'remoteAddress }, or set trustProxy if there is a proxy in front that writes X-Forwarded-For',
        )
      }
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
  add(settings.basePath + forwardAuthPath, observed('forward-auth', observe, forwardAuth(settings, parts.peekSession)))
  for (const [path, route] of keySetRoutes(parts.signingKeys, settings.basePath))
    add(path, observed('key set', observe, route))
  for (const [path, route] of openApiRoutes(settings)) add(path, observed('openapi', observe, route))
  add(settings.basePath + serviceOptionsPath, observed('options', observe, optionsRoute(settings)))
  const { peekSession } = parts
  const pages = createPages(settings, parts.log, {
    files: parts.pageFiles,
    peekSession: peekSession && ((request) => peekSession(request, true)),
    isOwn: (request) => parts.origins.isOwn(request),
  })
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
  return { find, notFound, places: [...services, ...base, ...others] }
}

/** An RPC at its own path. */
function rpcRoute(method: Method, { invoker, observe }: AppParts): Route {
  const { name } = method
  const served = wireMethodOf(method, invoker)
  const refuseAs = (exchange: Exchange, message: string, status?: number): void => {
    refuse(exchange, { name, failure: new CountersignError('INVALID_REQUEST', message), observe, status })
  }
  return (exchange) => {
    const { headers, authority, body, context, output } = exchange
    if (refuseHttpMethod(exchange, ['POST'], { name, observe })) return
    const wire = wireOf(headers['content-type'])
    if (wire === undefined || (wire.protocol === 'connect' && wire.enveloped === isUnary(method))) {
      output.setHeaders({ 'accept-post': isUnary(method) ? unaryTypes : streamTypes })
      return refuseAs(exchange, 'No call of this RPC has this content type', 415)
    }
    if (wire.protocol === 'grpc' && !output.takesTrailers) {
      output.setHeaders({ 'accept-post': 'application/json, application/proto, application/grpc-web' })
      const message = 'gRPC needs trailers, which this server cannot send: use Connect or gRPC-Web here'
      return refuseAs(exchange, message, 415)
    }
    if (!isAuthority(authority)) return refuseAs(exchange, 'The Host header is malformed')
    const callOf = (timeoutMs: number | undefined): HttpCall =>
      new HttpCall({ protocol: wire.protocol, request: context, answering: output.answering, timeoutMs })
    return serveRpc(served, { wire, headers, body, output, refusals, callOf })
  }
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
  return (exchange) => {
    const serve = byHttpMethod.get(exchange.method)
    if (serve !== undefined) return serve(exchange)
    refuseHttpMethod(exchange, [...byHttpMethod.keys()], { name: path, observe })
  }
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
    const { method, context, output } = exchange
    const startedAt = performance.now()
    let outcome: CallOutcome = 'ok'
    output.answering.once('close', () => {
      observe({
        method: name,
        protocol: 'http',
        httpMethod: httpMethodOf(method),
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
      sendFailure(output, failure, statusOf(failure, method))
    }
  }
}

/** The HTTP method for the log; HTTP/2 clients can send any text. */
function httpMethodOf(method: string): string {
  return METHODS.includes(method) ? method : 'other'
}

/** The HTTP status of a refusal: 501 for an unknown method (RFC 9110, 15.6.2). */
function statusOf(failure: CountersignError, method: string): number {
  return failure.reason === 'METHOD_NOT_ALLOWED' && !METHODS.includes(method) ? 501 : failure.httpStatus
}

/** Why a call does not begin, and how that is answered. */
interface RefusedCall {
  readonly name: string
  readonly failure: CountersignError
  readonly observe: CallObserver
  /** Default: that of the reason. */
  readonly status?: number | undefined
}

/** Refuses a call before its RPC begins. Its path is one of the service's own. */
function refuse({ method, path, context, output }: Exchange, { name, failure, observe, status }: RefusedCall): void {
  const httpMethod = httpMethodOf(method)
  observe({ method: name, protocol: 'http', httpMethod, path, request: context, outcome: failure, durationMs: 0 })
  sendFailure(output, failure, status)
}

function refuseHttpMethod(
  exchange: Exchange,
  allowed: readonly string[],
  { name, observe }: Pick<RefusedCall, 'name' | 'observe'>,
): boolean {
  try {
    requireHttpMethod(exchange, allowed)
    return false
  } catch (thrown) {
    const failure = toFailure(thrown)
    refuse(exchange, { name, failure, observe, status: statusOf(failure, exchange.method) })
    return true
  }
}

/** Shortest time between two warnings, in ms: any client can send the headers, and none may fill the log with them. */
const forwardedNoticeEveryMs = 3_600_000

/**
 * Warns at most once an hour that a request's forwarded headers do not fit `trustProxy`: there seems to be an
 * undeclared proxy in front, or the proxies do not send the expected headers. No value of a header is logged.
 *
 * A request without any of these headers is in order behind trusted proxies, too: backends and health checks go around
 * them.
 */
function forwardedNotice({ trustProxy }: AppSettings, log: Logger): (request: RequestContext) => void {
  let quietUntil: number | undefined
  return (request) => {
    if (quietUntil !== undefined && performance.now() < quietUntil) return
    const text = trustProxy === 0 ? ignoredHeader(request) : missingAddress(request, trustProxy)
    if (text === undefined) return
    quietUntil = performance.now() + forwardedNoticeEveryMs
    log.warn(text, { ip: request.ip })
  }
}

function ignoredHeader(request: RequestContext): string | undefined {
  const name = proxyHeaderOf(request)
  if (name === undefined) return undefined
  return (
    `a request with the header ${name} came, which is ignored: if a proxy wrote it, set trustProxy ` +
    '(COUNTERSIGN_TRUST_PROXY) to the number of proxies in front, or all their clients count as one; if there is ' +
    'no proxy, a client made it up, and there is nothing to do'
  )
}

function missingAddress(request: RequestContext, trustProxy: number): string | undefined {
  if (request.behindUnknownProxy) {
    return (
      `a request with the header ${proxyHeaderOf(request)} came without an address of its client in ` +
      `X-Forwarded-For, so the proxy's address counts: let the proxy append its client's address to X-Forwarded-For`
    )
  }
  const addresses = headerOf(request, 'x-forwarded-for')?.split(',').length
  if (addresses === undefined || addresses >= trustProxy) return undefined
  return (
    'a request came with fewer addresses in X-Forwarded-For than trustProxy (COUNTERSIGN_TRUST_PROXY) says ' +
    `that there are proxies (${trustProxy}), so clients could make up their own: set it to the number of proxies ` +
    'that every request passes'
  )
}

/** Holder of the key set, which changes with the secrets. */
interface KeySetHolder {
  readonly keySet: { readonly keys: readonly object[] }
}

/** Paths of documents that pages of all origins may read. */
function publicDocuments(basePath: string): ReadonlySet<string> {
  const both = [wellKnownPath, documentPath].flatMap((path) => [path, basePath + path])
  return new Set([...both, basePath + serviceOptionsPath])
}

/** The usual path of key sets, served at the root and under the base path. */
const wellKnownPath = '/.well-known/jwks.json'

/**
 * Routes of the key set for access tokens, by path. None if the service issues no access tokens: an application that
 * mounts it can have a key set of its own.
 */
function keySetRoutes(keys: KeySetHolder | undefined, basePath: string): (readonly [path: string, Route])[] {
  if (keys === undefined) return []
  const route: Route = (exchange) => {
    requireHttpMethod(exchange, ['GET', 'HEAD'])
    // The keys are public.
    letAnyPageRead(exchange)
    const headers = { 'content-type': 'application/json', 'cache-control': `public, max-age=${keySetMaxAgeSeconds}` }
    exchange.output.send({ status: 200, headers, body: JSON.stringify(keys.keySet) })
  }
  // The same path if the base path is empty.
  return [...new Set([wellKnownPath, basePath + wellKnownPath])].map((path) => [path, route])
}

/**
 * Time for which the key set may be cached, in seconds. A new secret must be in the list of every instance for this
 * long before the first token is signed with it.
 */
const keySetMaxAgeSeconds = 300
