import { CountersignError } from '../errors.ts'
import type { RequestContext } from '../request.ts'
import type { NodeRequest, NodeResponse } from './node-request.ts'

/** A request, its response, and what was read of the request once. */
export interface Exchange {
  readonly request: NodeRequest
  readonly response: NodeResponse
  /** The path of the request's target, without the query, which can hold a secret. */
  readonly path: string
  readonly context: RequestContext
}

/** Serves the requests for one path. */
export type Route = (exchange: Exchange) => void | Promise<void>

/** Refuses a request of another HTTP method than those given with METHOD_NOT_ALLOWED and the header Allow (RFC 9110, 15.5.6). */
export function requireHttpMethod(
  request: NodeRequest,
  response: NodeResponse,
  path: string,
  allowed: readonly string[],
): void {
  if (allowed.includes(request.method ?? '')) return
  const list = allowed.join(', ')
  response.setHeader('allow', list)
  throw new CountersignError('METHOD_NOT_ALLOWED', `${path} is for ${list}, not ${request.method}`, {
    metadata: { path, method: request.method ?? '', allowed: list },
  })
}
