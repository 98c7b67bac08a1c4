import type { Logger } from '../base/log.ts'
import { headerOf, proxyHeaderOf, type RequestContext } from '../base/request.ts'
import type { Settings } from '../service/config.ts'

/** Least time in ms from one warning to the next: anyone can send the headers, and nobody should be able to fill the log. */
const intervalMs = 3_600_000

/**
 * Says at most once an hour that a request's forwarded headers do not fit `trustProxy`: a proxy seems to be in front of which the
 * service does not know, or the proxies do not send what is expected of them. No value of a header is logged.
 *
 * A request without any of these headers is in order even if a proxy is trusted: backends and health checks go around the proxy.
 */
export function forwardedNotice(
  { trustProxy }: Pick<Settings, 'trustProxy'>,
  log: Logger,
): (request: RequestContext) => void {
  let quietUntil: number | undefined
  return (request) => {
    if (quietUntil !== undefined && performance.now() < quietUntil) return
    const text = trustProxy === 0 ? ignoredHeader(request) : missingAddress(request, trustProxy)
    if (text === undefined) return
    quietUntil = performance.now() + intervalMs
    log.warn(text, { ip: request.ip })
  }
}

function ignoredHeader(request: RequestContext): string | undefined {
  const name = proxyHeaderOf(request)
  if (name === undefined) return undefined
  return `a request with the header ${name} came, which is ignored: if a proxy wrote it, set trustProxy (COUNTERSIGN_TRUST_PROXY) to the number of proxies in front, or all their clients count as one; if there is no proxy, a client made it up, and there is nothing to do`
}

function missingAddress(request: RequestContext, trustProxy: number): string | undefined {
  if (request.behindUnknownProxy) {
    return `a request with the header ${proxyHeaderOf(request)} came without an address of its client in X-Forwarded-For, so the proxy's address counts: let the proxy append its client's address to X-Forwarded-For`
  }
  const addresses = headerOf(request, 'x-forwarded-for')?.split(',').length
  if (addresses === undefined || addresses >= trustProxy) return undefined
  return `a request came with fewer addresses in X-Forwarded-For than trustProxy (COUNTERSIGN_TRUST_PROXY) says that there are proxies (${trustProxy}), so clients could make up their own: set it to the number of proxies that every request passes`
}
