import type { IncomingHttpHeaders } from 'node:http2'
import { readRequest } from '../base/request.ts'
import { type RequestBody, StreamBody } from '../wire/body.ts'
import { type NodeRequest, rawRequest, rawStream } from '../wire/node-request.ts'
import type { Output, StreamOutput } from '../wire/output.ts'
import type { Exchange } from './route.ts'

/** The parts of a request's target. The query can hold a secret. */
export interface Target {
  readonly path: string
  readonly query: string
  /** The authority of a target in absolute form, in whose place the Host header does not count (RFC 9112, 3.2.2). */
  readonly authority?: string | undefined
}

/** Cuts a target, in whichever form, at the question mark. A `#` is a part of it: no client sends one. */
export function targetOf(target: string): Target {
  const [, authority, tail] = /^https?:\/\/([^/?]*)(.*)$/is.exec(target) ?? []
  const origin = tail ?? target
  const end = origin.indexOf('?')
  const path = end === -1 ? origin : origin.slice(0, end)
  return { path: path === '' ? '/' : path, query: end === -1 ? '' : origin.slice(end + 1), authority }
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
  const { path, query, authority } = targetOf(arrival.target ?? request.url ?? '/')
  const sent = rawRequest(request)
  const raw = authority === undefined ? sent : { ...sent, authority }
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
