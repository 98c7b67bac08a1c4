import type { IncomingHttpHeaders } from 'node:http'
import type { RequestContext } from '../base/request.ts'
import { CountersignError } from '../shared/errors.ts'
import type { RequestBody } from '../wire/body.ts'
import type { Output } from '../wire/output.ts'

/** A request as it arrived, of whatever server, and where its answer goes. */
export interface Exchange {
  /** The HTTP method. Clients of HTTP/2 can send any text. */
  readonly method: string
  /** The path of the request's target, without the query, which can hold a secret. */
  readonly path: string
  /** The query of the request's target, without the question mark; empty if there is none. */
  readonly query: string
  /** The Host header or the `:authority` of HTTP/2; empty if there is neither. */
  readonly authority: string
  /** The request's headers, by names in lower case. */
  readonly headers: IncomingHttpHeaders
  readonly body: RequestBody
  readonly context: RequestContext
  readonly output: Output
}

/** Serves the requests for one path. */
export type Route = (exchange: Exchange) => void | Promise<void>

/** Refuses a request of another HTTP method than those given with METHOD_NOT_ALLOWED and the header Allow (RFC 9110, 15.5.6). */
export function requireHttpMethod(
  { method, path, output }: Pick<Exchange, 'method' | 'path' | 'output'>,
  allowed: readonly string[],
): void {
  if (allowed.includes(method)) return
  const list = allowed.join(', ')
  output.setHeaders({ allow: list })
  throw new CountersignError('METHOD_NOT_ALLOWED', `${path} is for ${list}, not ${method}`, {
    metadata: { path, method, allowed: list },
  })
}
