import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { CountersignError } from '../errors.ts'
import type { RawRequest } from '../request.ts'

/** A request of either HTTP version. */
export type NodeRequest = IncomingMessage | Http2ServerRequest
/** A response of either HTTP version. */
export type NodeResponse = ServerResponse | Http2ServerResponse

/** Largest body of a request, bytes. The largest honest one is a few kilobytes. */
export const maxBodyBytes: number = 64 * 1024

/** What the domain's request context is read from. */
export function rawRequest(request: NodeRequest): RawRequest {
  const headers = new Headers()
  for (let i = 0; i + 1 < request.rawHeaders.length; i += 2) {
    const name = request.rawHeaders[i] as string
    if (!name.startsWith(':')) headers.append(name, request.rawHeaders[i + 1] as string)
  }
  const authority = 'authority' in request ? request.authority : undefined
  return {
    headers,
    scheme: 'encrypted' in request.socket && request.socket.encrypted === true ? 'https' : 'http',
    authority: authority ?? request.headers.host ?? '',
    remoteAddress: request.socket.remoteAddress,
  }
}

/** Reads a request's body; REQUEST_TOO_LARGE as soon as it is known to be. */
export function readBody(request: NodeRequest): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const tooLarge = (): void => {
      request.removeAllListeners('data')
      // The rest is read and dropped, so that the client can finish sending and then hear the answer.
      request.resume()
      reject(new CountersignError('REQUEST_TOO_LARGE', `The body is larger than ${maxBodyBytes} bytes`))
    }
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return tooLarge()
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBodyBytes) return tooLarge()
      chunks.push(chunk)
    })
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
    const gone = (): void => {
      // A request closes after it was read as well.
      if (!request.complete) reject(new CountersignError('INVALID_REQUEST', 'The request ended before its body did'))
    }
    request.on('error', gone)
    request.on('close', gone)
  })
}

/** The path of a request's target, without the query, which can hold a secret. */
export function pathOf(request: NodeRequest): string {
  const target = request.url ?? '/'
  const end = target.search(/[?#]/)
  return end === -1 ? target : target.slice(0, end)
}

/** Sends a complete response, unless the client has gone. */
export function send(response: NodeResponse, status: number, headers: Headers, body: string | Uint8Array): void {
  if (response.headersSent || response.writableEnded) return
  for (const [name, value] of headers) if (name !== 'set-cookie') response.setHeader(name, value)
  const cookies = headers.getSetCookie()
  if (cookies.length > 0) response.setHeader('set-cookie', cookies)
  response.setHeader('content-length', Buffer.byteLength(body))
  response.statusCode = status
  // The two classes' end() differ in what they return, which TypeScript cannot call through a union.
  ;(response as ServerResponse).end(body)
}

/** A signal that aborts when the client goes before the response is complete. */
export function clientGone(response: NodeResponse): AbortSignal {
  const controller = new AbortController()
  response.on('close', () => {
    if (!response.writableFinished) controller.abort()
  })
  return controller.signal
}
