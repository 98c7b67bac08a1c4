import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type {
  IncomingHttpHeaders as Http2Headers,
  Http2ServerRequest,
  Http2ServerResponse,
  ServerHttp2Stream,
} from 'node:http2'
import type { Readable } from 'node:stream'
import { CountersignError } from '../errors.ts'
import type { RawHeaders, RawRequest } from '../request.ts'

/** A request of either HTTP version. */
export type NodeRequest = IncomingMessage | Http2ServerRequest
/** A response of either HTTP version. */
export type NodeResponse = ServerResponse | Http2ServerResponse

/** Serves one request of a node:http or node:http2 server. */
export type RequestHandler = (request: NodeRequest, response: NodeResponse) => void

/** Serves a stream of a node:http2 server, whose errors are listened to already, or returns false and leaves it as it is. */
export type StreamHandler = (stream: ServerHttp2Stream, headers: Http2Headers) => boolean

/** Largest body of a request, bytes. The largest honest one is a few kilobytes. */
export const maxBodyBytes: number = 64 * 1024

/** The Host header, or the `:authority` of HTTP/2; empty if there is neither. */
export function authorityOf(request: NodeRequest): string {
  const authority = 'authority' in request ? request.authority : undefined
  return authority ?? request.headers.host ?? ''
}

/** What the domain's request context is read from. */
export function rawRequest(request: NodeRequest): RawRequest {
  return {
    headers: rawHeaders(request.headers),
    scheme: 'encrypted' in request.socket && request.socket.encrypted === true ? 'https' : 'http',
    authority: authorityOf(request),
    remoteAddress: request.socket.remoteAddress,
  }
}

/** The same of a stream of HTTP/2. */
export function rawStream(stream: ServerHttp2Stream, headers: Http2Headers): RawRequest {
  const socket = stream.session?.socket
  return {
    headers: rawHeaders(headers),
    scheme: socket !== undefined && 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http',
    authority: headers[':authority'] ?? headers.host ?? '',
    remoteAddress: socket?.remoteAddress,
  }
}

/** Headers as node:http and node:http2 have them, made into `Headers` only for those who ask. */
function rawHeaders(headers: IncomingHttpHeaders): RawHeaders {
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

/** The refusal of a body that is larger than {@link maxBodyBytes}. */
export function bodyTooLarge(): CountersignError {
  return new CountersignError('REQUEST_TOO_LARGE', `The body is larger than ${maxBodyBytes} bytes`, {
    metadata: { max_bytes: String(maxBodyBytes) },
  })
}

/** Reads a request's body. REQUEST_TOO_LARGE as soon as it is known to be longer than `maxBytes`. */
export function readBody(
  body: Readable,
  headers: IncomingHttpHeaders,
  maxBytes: number = maxBodyBytes,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // What comes after the limit is read and dropped, so that the client can finish sending and then hear the answer.
    if (Number(headers['content-length'] ?? 0) > maxBytes) {
      body.resume()
      reject(bodyTooLarge())
      return
    }
    const chunks: Buffer[] = []
    let size = 0
    body.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) reject(bodyTooLarge())
      else chunks.push(chunk)
    })
    let isComplete = false
    body.on('end', () => {
      isComplete = true
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
    })
    const gone = (): void => {
      // A body closes after its end as well.
      if (!isComplete) reject(new CountersignError('INVALID_REQUEST', 'The request ended before its body did'))
    }
    body.on('error', gone)
    body.on('close', gone)
  })
}

/** The path of a request's target, without the query, which can hold a secret. A `#` is a part of it: no client sends one. */
export function pathOf(request: NodeRequest): string {
  const target = request.url ?? '/'
  const end = target.indexOf('?')
  return end === -1 ? target : target.slice(0, end)
}
