import type { Logger } from '../base/log.ts'
import type { NodeRequest } from '../wire/node-request.ts'

/** What Express, Connect and what is built like them add to a request. Behind a mount path, `url` lacks that path. */
interface MountedRequest {
  readonly originalUrl?: unknown
  readonly baseUrl?: unknown
}

/** The target of a request as the client sent it, whatever path the handler is mounted at. */
export function originalTarget(request: NodeRequest & MountedRequest): string {
  const { originalUrl, url = '/' } = request
  return typeof originalUrl === 'string' ? originalUrl : url
}

/** The path at which a framework has mounted the handler; empty if that is the root. */
function mountPathOf(request: NodeRequest & MountedRequest): string {
  const { baseUrl, url = '/' } = request
  if (typeof baseUrl === 'string') return baseUrl
  const target = originalTarget(request)
  return target.endsWith(url) ? target.slice(0, target.length - url.length) : ''
}

/**
 * Says once, of the first request that comes by way of a mount path, which of the service's paths are outside of it. They cannot
 * be reached unless the handler is mounted at the root as well. `places` are all paths of the service, with `*` at the end for
 * whatever follows.
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
      'countersign.handler is mounted at a path, where some paths of the service cannot be reached; mount it at the root, as app.use(countersign.handler): it passes on what is not its own',
      { mountPath: mountPath.slice(0, 200), outside: outside.join(', ') },
    )
  }
}
