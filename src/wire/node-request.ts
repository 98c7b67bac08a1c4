import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type {
  IncomingHttpHeaders as Http2Headers,
  Http2ServerRequest,
  Http2ServerResponse,
  ServerHttp2Stream,
} from 'node:http2'
import type { RawHeaders, RawRequest } from '../base/request.ts'

/** A request of either HTTP version. */
export type NodeRequest = IncomingMessage | Http2ServerRequest
/** A response of either HTTP version. */
export type NodeResponse = ServerResponse | Http2ServerResponse

/**
 * Serves one request of a node:http or node:http2 server. `next` is called for a request that the handler leaves to others, as in
 * Express; without it, such a request is answered with 404.
 */
export type RequestHandler = (request: NodeRequest, response: NodeResponse, next?: () => void) => void

/** Serves a stream of a node:http2 server, whose errors are listened to already. */
export type StreamHandler = (stream: ServerHttp2Stream, headers: Http2Headers) => void

/** The Host header, or the `:authority` of HTTP/2; empty if there is neither. */
function authorityOf(request: NodeRequest): string {
  const authority = 'authority' in request ? request.authority : undefined
  return authority ?? request.headers.host ?? ''
}

/** What the domain's request context is read from. */
export function rawRequest(request: NodeRequest): RawRequest {
  return {
    headers: new NodeHeaders(request.headers),
    scheme: 'encrypted' in request.socket && request.socket.encrypted === true ? 'https' : 'http',
    authority: authorityOf(request),
    remoteAddress: request.socket.remoteAddress,
  }
}

/** The same of a stream of HTTP/2. */
export function rawStream(stream: ServerHttp2Stream, headers: Http2Headers): RawRequest {
  const socket = stream.session?.socket
  return {
    headers: new NodeHeaders(headers),
    scheme: socket !== undefined && 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http',
    authority: headers[':authority'] ?? headers.host ?? '',
    remoteAddress: socket?.remoteAddress,
  }
}

/** Headers as node:http and node:http2 have them, made into `Headers` only for those who ask. */
class NodeHeaders implements RawHeaders {
  readonly #headers: IncomingHttpHeaders

  constructor(headers: IncomingHttpHeaders) {
    this.#headers = headers
  }

  get(name: string): string | null {
    const value = this.#headers[name]
    return value === undefined ? null : String(value)
  }

  toHeaders(): Headers {
    const made = new Headers()
    for (const [name, value] of Object.entries(this.#headers)) {
      if (value !== undefined && !name.startsWith(':')) made.append(name, String(value))
    }
    return made
  }
}
