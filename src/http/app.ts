import type { ConnectRouter } from '@connectrpc/connect'
import { createContextValues } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { createValidateInterceptor } from '@connectrpc/validate'
import type { Settings } from '../config.ts'
import { CountersignError } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { OriginPolicy } from '../origin.ts'
import { type RequestContext, readRequest } from '../request.ts'
import type { Api } from '../rpc/api.ts'
import { errorInterceptor, type FailureObserver, toFailure } from '../rpc/connect-errors.ts'
import { requestKey } from '../rpc/connect-routes.ts'
import { registerHealth } from '../rpc/health.ts'
import { validator } from '../rpc/methods.ts'
import { isPlainConnectUnary, maxTimeoutMs, serveConnectUnary } from './connect-unary.ts'
import { applyCors } from './cors.ts'
import { serveEvents } from './events.ts'
import { maxBodyBytes, type NodeRequest, type NodeResponse, pathOf, rawRequest } from './node-request.ts'
import { createPages } from './pages.ts'
import { type RestRoute, sendFailure, sendJson, serveRest } from './rest.ts'
import { restRoutes } from './rest-routes.ts'

/** Serves one request. */
export type RequestHandler = (request: NodeRequest, response: NodeResponse) => void

/** What the request handler is made of. */
export interface AppParts {
  readonly settings: Settings
  readonly api: Api
  readonly routes: (router: ConnectRouter) => void
  readonly origins: OriginPolicy
  /** Resolves when the store answers. */
  readonly ready: () => Promise<void>
  readonly shutdownSignal: AbortSignal
  readonly log: Logger
}

/** Routes requests to health checks, RPCs, REST and pages, with CORS in front of all. */
export function createRequestHandler(parts: AppParts): RequestHandler {
  const { settings, origins, log } = parts
  const rpcs = new Map(
    parts.api.methods.map((method) => [`/${method.desc.parent.typeName}/${method.desc.name}`, method]),
  )
  const rest = restTable(restRoutes(settings, parts.api.methods))
  const eventsPath = `${settings.basePath}/cross-device/events`
  const servePage = createPages(settings, log)
  const contexts = new WeakMap<NodeRequest, RequestContext>()
  const failed = failureLog(log)

  const connect = connectNodeAdapter({
    routes: (router) => {
      parts.routes(router)
      const services = [...new Set(parts.api.methods.map(({ desc }) => desc.parent.typeName))]
      registerHealth(router, { services, ready: parts.ready, shutdown: parts.shutdownSignal })
    },
    readMaxBytes: maxBodyBytes,
    // No shutdownSignal: it would cut watches off before they can ask their watchers to come back.
    maxTimeoutMs,
    interceptors: [errorInterceptor((failure) => failed(failure)), createValidateInterceptor({ validator })],
    contextValues: (request) => createContextValues().set(requestKey, contexts.get(request)),
    fallback: (request, response) => sendFailure(response as NodeResponse, notFound(pathOf(request)), failed),
  })

  const serve = async (request: NodeRequest, response: NodeResponse): Promise<void> => {
    const path = pathOf(request)
    const raw = rawRequest(request)
    const context = readRequest(raw, settings.trustedProxies)
    const observe: FailureObserver = (failure) => failed(failure, request, path, context)
    response.setHeader('x-content-type-options', 'nosniff')
    if (applyCors(request, response, (origin) => origins.isTrusted(origin)) === 'preflight') return
    if (path === '/healthz') return sendJson(response, 200, new Headers(), { status: 'ok' })
    if (path === '/readyz') return await serveReadiness(parts, response, observe)

    const rpc = rpcs.get(path)
    if (rpc !== undefined && isPlainConnectUnary(request)) {
      return await serveConnectUnary(rpc, request, response, { request: context, observe })
    }
    if (path === eventsPath) {
      if (request.method !== 'GET') return refuseMethod(request, response, path, ['GET'], observe)
      return await serveEvents(parts.api.watchOrder, request, response, context, observe)
    }
    const routes = rest.get(path)
    if (routes !== undefined) {
      const route = routes.find(({ httpMethod }) => httpMethod === request.method)
      if (route !== undefined) return await serveRest(route, request, response, context, observe)
      const allowed = routes.map(({ httpMethod }) => httpMethod)
      return refuseMethod(request, response, path, allowed, observe)
    }
    if (servePage(request, response, path, observe)) return
    // connect-node makes a URL of it, and takes one that is none for its own fault.
    if (!URL.canParse(`http://${raw.authority}`)) {
      return sendFailure(response, new CountersignError('INVALID_REQUEST', 'The Host header is malformed'), observe)
    }
    contexts.set(request, context)
    connect(request, response)
  }

  return (request, response) => {
    serve(request, response).catch((thrown: unknown) => sendFailure(response, toFailure(thrown), failed))
  }
}

function refuseMethod(
  request: NodeRequest,
  response: NodeResponse,
  path: string,
  allowed: readonly string[],
  observe: FailureObserver,
): void {
  const list = allowed.join(', ')
  response.setHeader('allow', list)
  const failure = new CountersignError('METHOD_NOT_ALLOWED', `${path} is for ${list}, not ${request.method}`)
  sendFailure(response, failure, observe)
}

async function serveReadiness(parts: AppParts, response: NodeResponse, observe: FailureObserver): Promise<void> {
  if (parts.shutdownSignal.aborted) return sendJson(response, 503, new Headers(), { status: 'stopping' })
  try {
    await parts.ready()
    sendJson(response, 200, new Headers(), { status: 'ready' })
  } catch (thrown) {
    sendFailure(response, toFailure(thrown), observe)
  }
}

function restTable(routes: readonly RestRoute[]): ReadonlyMap<string, RestRoute[]> {
  const table = new Map<string, RestRoute[]>()
  for (const route of routes) table.set(route.path, [...(table.get(route.path) ?? []), route])
  return table
}

function notFound(path: string): CountersignError {
  return new CountersignError('ROUTE_NOT_FOUND', `There is nothing at ${path.slice(0, 200)}`)
}

/** Reasons whose messages help the operator and quote no input but an origin. */
const tellingReasons: ReadonlySet<string> = new Set(['ORIGIN_NOT_TRUSTED', 'ORIGIN_MISMATCH', 'STORE_UNAVAILABLE'])

function failureLog(
  log: Logger,
): (failure: CountersignError, request?: NodeRequest, path?: string, context?: RequestContext) => void {
  return (failure, request, path, context) => {
    const { reason, message, httpStatus } = failure
    const fields = {
      reason,
      ...(tellingReasons.has(reason) || httpStatus === 500 ? { message } : {}),
      ...(request === undefined ? {} : { method: request.method, path: path?.slice(0, 200), ip: context?.ip }),
    }
    if (httpStatus === 500) log.error('request failed', { ...fields, cause: describe(failure.cause) })
    else if (httpStatus === 503) log.warn('store unavailable', { ...fields, cause: messageOf(failure.cause) })
    else log.info('request refused', fields)
  }
}

function describe(cause: unknown): string | undefined {
  return cause instanceof Error ? (cause.stack ?? cause.message) : cause === undefined ? undefined : String(cause)
}

function messageOf(cause: unknown): string | undefined {
  return cause instanceof Error ? cause.message : undefined
}
