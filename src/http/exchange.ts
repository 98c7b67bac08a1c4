import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { IncomingHttpHeaders as Http2Headers, Http2ServerRequest, ServerHttp2Stream } from 'node:http2'
import { type RawHeaders, type RawRequest, type RequestContext, readRequest } from '../base/request.ts'
import type { Call, Protocol, ResponseHeaders } from '../rpc/methods.ts'
import { type CountersignError, refused } from '../shared/errors.ts'
import { type RequestBody, streamBody } from '../wire/body.ts'
import type { Answering, NodeResponse, Output, StreamOutput } from '../wire/output.ts'
import { refusals } from './refusals.ts'

/** A request of any server, and the output for its answer. */
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

/** Refuses any other HTTP method: METHOD_NOT_ALLOWED, with the header Allow (RFC 9110, 15.5.6). */
export function requireHttpMethod(
  { method, path, output }: Pick<Exchange, 'method' | 'path' | 'output'>,
  allowed: readonly string[],
): void {
  if (allowed.includes(method)) return
  const list = allowed.join(', ')
  output.setHeaders({ allow: list })
  throw refused('METHOD_NOT_ALLOWED', { metadata: { path, method, allowed: list } })
}

/** The parts of a request's target. The query can hold a secret. */
interface Target {
  readonly path: string
  readonly query: string
  /** The authority of a target in absolute form, in whose place the Host header does not count (RFC 9112, 3.2.2). */
  readonly authority?: string | undefined
}

/** Splits a target, in any of its forms, at the question mark. A `#` is a part of it: no client sends one. */
export function targetOf(target: string): Target {
  const [, authority, tail] = /^https?:\/\/([^/?]*)(.*)$/is.exec(target) ?? []
  const origin = tail ?? target
  const end = origin.indexOf('?')
  const path = end === -1 ? origin : origin.slice(0, end)
  return { path: path === '' ? '/' : path, query: end === -1 ? '' : origin.slice(end + 1), authority }
}

/** A request of node:http or node:http2. */
interface NodeArrival {
  readonly request: NodeRequest
  /** Its target, if that is not the request's `url`. */
  readonly target?: string
  /** Its body, if that is not in the request. */
  readonly body?: RequestBody
  /** Number of proxies in front. */
  readonly trustedProxies: number
}

/** A request of node:http or node:http2 as the routes get it. */
export function nodeExchange(arrival: NodeArrival, output: Output): Exchange {
  const { request, trustedProxies } = arrival
  const { path, query, authority } = targetOf(arrival.target ?? request.url ?? '/')
  const { headers, socket } = request
  const raw = rawRequest(headers, authority ?? ('authority' in request ? request.authority : undefined), socket)
  return {
    method: request.method ?? '',
    path,
    query,
    authority: raw.authority,
    headers,
    body: arrival.body ?? streamBody({ stream: request, headers, refusals }),
    context: readRequest(raw, trustedProxies),
    output,
  }
}

/** A stream of HTTP/2 as the routes get it. */
export function streamExchange(headers: Http2Headers, trustedProxies: number, output: StreamOutput): Exchange {
  const stream = output.answering
  const raw = rawRequest(headers, headers[':authority'], stream.session?.socket)
  return {
    method: headers[':method'] ?? '',
    ...targetOf(headers[':path'] ?? '/'),
    authority: raw.authority,
    headers,
    body: streamBody({ stream, headers, refusals }),
    context: readRequest(raw, trustedProxies),
    output,
  }
}

/** A request of either HTTP version. */
export type NodeRequest = IncomingMessage | Http2ServerRequest

/**
 * Serves one request of a node:http or node:http2 server. Calls `next` for a request that is not the service's, as in
 * Express; without `next`, such a request is answered with 404.
 */
export type RequestHandler = (request: NodeRequest, response: NodeResponse, next?: () => void) => void

/** Serves a stream of a node:http2 server. The caller listens to its errors. */
export type Http2Handler = (stream: ServerHttp2Stream, headers: Http2Headers) => void

/** The source of a request's context. Without an authority of the target, that is the Host header. */
function rawRequest(
  headers: IncomingHttpHeaders,
  authority: string | undefined,
  socket: NodeRequest['socket'] | undefined,
): RawRequest {
  return {
    headers: rawHeaders(headers),
    scheme: socket !== undefined && 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http',
    authority: authority ?? headers.host ?? '',
    remoteAddress: socket?.remoteAddress,
  }
}

/** Headers of node:http and node:http2, converted to `Headers` on demand. */
export function rawHeaders(headers: IncomingHttpHeaders): RawHeaders {
  return {
    get(name) {
      const value = headers[name]
      return value === undefined ? null : String(value)
    },
    toHeaders() {
      const made = new Headers()
      for (const [name, value] of Object.entries(headers)) {
        if (value !== undefined && !name.startsWith(':')) made.append(name, String(value))
      }
      return made
    },
  }
}

/** The parts of a {@link HttpCall}. */
interface HttpCallParts extends Pick<Call, 'protocol' | 'request' | 'timeoutMs'> {
  readonly answering: Answering
}

/** A call over HTTP. Its signal is made on first use: most calls end before their client could leave. */
export class HttpCall implements Call {
  readonly protocol: Protocol
  readonly request: RequestContext
  readonly timeoutMs: number | undefined
  pardoned?: CountersignError
  readonly #answering: Answering
  #responseHeaders: ResponseHeaders | undefined
  #signal: AbortSignal | undefined

  constructor({ protocol, request, answering, timeoutMs }: HttpCallParts) {
    this.protocol = protocol
    this.request = request
    this.timeoutMs = timeoutMs
    this.#answering = answering
  }

  get responseHeaders(): ResponseHeaders {
    this.#responseHeaders ??= {}
    return this.#responseHeaders
  }

  /** The headers to send with the response; `undefined` if the call set none, as most do. */
  get ownHeaders(): OutgoingHttpHeaders | undefined {
    return this.#responseHeaders as OutgoingHttpHeaders | undefined
  }

  /**
   * Aborts when the answer is closed: it is complete, or the client has gone. The two cannot be told apart: Node.js
   * ends the streams of a lost connection as if they were complete.
   */
  get signal(): AbortSignal {
    this.#signal ??= closingOf(this.#answering)
    return this.#signal
  }
}

function closingOf(answering: Answering): AbortSignal {
  const controller = new AbortController()
  if (answering.closed) controller.abort()
  else answering.once('close', () => controller.abort())
  return controller.signal
}
