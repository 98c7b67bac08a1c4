import type { Logger } from '../base/log.ts'
import { headerOf, proxyHeaderOf, type RequestContext } from '../base/request.ts'
import type { NodeRequest } from './exchange.ts'
import { type MountedRequest, originalTarget } from './mount.ts'

// Warnings that settings do not fit the requests. Clients can send such requests at will, so each is bounded.

/** Most origins that are logged as refused: any client can send one. */
const maxRefusedOrigins = 100

/**
 * Warns once for each origin that its pages cannot call the service. Browsers send nothing after a refused preflight.
 */
export function refusedPageNotice(log: Logger): (origin: string | undefined) => void {
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

/** The path at which a framework has mounted the handler; empty if that is the root. */
function mountPathOf(request: NodeRequest & MountedRequest): string {
  const { baseUrl, url = '/' } = request
  if (typeof baseUrl === 'string') return baseUrl
  const target = originalTarget(request)
  return target.endsWith(url) ? target.slice(0, target.length - url.length) : ''
}

/**
 * Warns once, at the first request through a mount path, of the service's paths outside of it. They are unreachable
 * unless the handler is also mounted at the root. `places` are all paths of the service; `*` at the end stands for any
 * continuation.
 */
export function mountNotice(places: readonly string[], log: Logger): (request: NodeRequest) => void {
  let isSaid = false
  return (request) => {
    if (isSaid) return
    const mountPath = mountPathOf(request)
    if (mountPath === '') return
    isSaid = true
    const outside = places.filter((place) => !`${place}/`.startsWith(`${mountPath}/`))
    if (outside.length === 0) return
    log.warn(
      'countersign.handler is mounted at a path, where some paths of the service cannot be reached; mount it at ' +
        'the root, as app.use(countersign.handler): it passes on what is not its own',
      { mountPath: mountPath.slice(0, 200), outside: outside.join(', ') },
    )
  }
}

/** Warns once that requests come without an address of their client, so that no rate limit counts. */
export function unknownClientNotice(log: Logger): (request: RequestContext) => void {
  let isSaid = false
  return ({ ip }) => {
    if (isSaid || ip !== undefined) return
    isSaid = true
    log.warn(
      'countersign.fetch does not know the address of its clients, so no rate limit counts; pass { ' +
        'remoteAddress }, or set trustProxy if there is a proxy in front that writes X-Forwarded-For',
    )
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
export function forwardedNotice(trustProxy: number, log: Logger): (request: RequestContext) => void {
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
