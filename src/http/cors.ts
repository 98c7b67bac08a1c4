import type { ServerResponse } from 'node:http'
import { cors } from '@connectrpc/connect'
import { parseOrigin } from '../origin.ts'
import type { NodeRequest, NodeResponse } from './node-request.ts'

/** How long a browser may remember a preflight's answer, seconds: 2 hours, the most that Chrome honours. */
const maxAgeSeconds = 7200

const allowedMethods = cors.allowedMethods.join(', ')
const allowedHeaders = [...cors.allowedHeaders, 'Authorization', 'Last-Event-ID'].join(', ')
const exposedHeaders = [...cors.exposedHeaders, 'Set-Auth-Token', 'Retry-After'].join(', ')

/**
 * Lets the pages of trusted origins call the service, with cookies, and read its answers (the Fetch standard's CORS protocol).
 * Call it before anything else writes to the response.
 *
 * `isTrusted` gets the canonical form of the Origin header; one that is missing or malformed is not trusted. Returns
 * `'preflight'` when the request was only a browser's question, which has then been answered in full: 204, without permissions
 * for origins that are not trusted. Any other request is to be served, whatever its origin: a browser keeps the answer from a
 * page without permission to read it, and calls that change something check the origin by themselves.
 */
export function applyCors(
  request: NodeRequest,
  response: NodeResponse,
  isTrusted: (origin: string) => boolean,
): 'preflight' | 'continue' {
  const { headers, method } = request
  const origin = headers.origin === undefined ? undefined : parseOrigin(headers.origin)
  const isPreflight =
    method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined
  // Also where there is nothing to allow: a cache must not hand one origin's answer to another.
  response.setHeader('vary', 'Origin')
  if (origin !== undefined && isTrusted(origin)) {
    response.setHeader('access-control-allow-origin', origin)
    response.setHeader('access-control-allow-credentials', 'true')
    if (isPreflight) {
      response.setHeader('access-control-allow-methods', allowedMethods)
      response.setHeader('access-control-allow-headers', allowedHeaders)
      response.setHeader('access-control-max-age', String(maxAgeSeconds))
    } else {
      response.setHeader('access-control-expose-headers', exposedHeaders)
    }
  }
  if (!isPreflight) return 'continue'
  response.statusCode = 204
  // The two classes' end() differ in what they return, which TypeScript cannot call through a union.
  ;(response as ServerResponse).end()
  return 'preflight'
}
