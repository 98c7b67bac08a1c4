import type { IncomingHttpHeaders } from 'node:http2'
import { readRequest } from '../request.ts'
import { type RequestBody, StreamBody } from './body.ts'
import { type NodeRequest, rawRequest, rawStream } from './node-request.ts'
import type { Output, StreamOutput } from './output.ts'
import type { Exchange } from './route.ts'

/** The two parts of a request's target. The query can hold a secret. */
export interface Target {
  readonly path: string
  readonly query: string
}

/** Cuts a target at the question mark. A `#` is a part of it: no client sends one. */
export function targetOf(target: string): Target {
  const end = target.indexOf('?')
  return end === -1 ? { path: target, query: '' } : { path: target.slice(0, end), query: target.slice(end + 1) }
}

/** A request of node's servers. */
interface Arrival {
  readonly request: NodeRequest
  /** Its target, if that is not the request's `url`. */
  readonly target?: string
  /** Its body, if that is not in the request. */
  readonly body?: RequestBody
  /** Number of proxies in front. */
  readonly trustedProxies: number
}

/** What the routes see of a request of node's servers. */
export function nodeExchange(arrival: Arrival, output: Output): Exchange {
  const { request, trustedProxies } = arrival
  const raw = rawRequest(request)
  const { path, query } = targetOf(arrival.target ?? request.url ?? '/')
  const { headers } = request
  return {
    method: request.method ?? '',
    path,
    query,
    authority: raw.authority,
    headers,
    body: arrival.body ?? new StreamBody(request, headers),
    context: readRequest(raw, trustedProxies),
    output,
  }
}

/** The same of a stream of HTTP/2. */
export function streamExchange(headers: IncomingHttpHeaders, trustedProxies: number, output: StreamOutput): Exchange {
  const stream = output.answering
  const raw = rawStream(stream, headers)
  return {
    method: headers[':method'] ?? '',
    ...targetOf(headers[':path'] ?? '/'),
    authority: raw.authority,
    headers,
    body: new StreamBody(stream, headers),
    context: readRequest(raw, trustedProxies),
    output,
  }
}
