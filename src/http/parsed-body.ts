import type { IncomingHttpHeaders } from 'node:http'
import { alreadyRead, bodyTooLarge, endedEarly, isJson, notJson, type RequestBody, StreamBody } from '../wire/body.ts'
import type { NodeRequest } from '../wire/node-request.ts'
import { wireOf } from '../wire/wire.ts'

/** Where body parsers of Express, Connect, Next.js and cloud functions leave what they have read. */
interface ParsedRequest {
  readonly body?: unknown
  readonly rawBody?: unknown
}

/** The body of a request that was handed over by a framework, which may have read it. */
export function mountedBody(request: NodeRequest): RequestBody {
  // Parsers set `body` on requests that they leave unread as well, so what they set says nothing.
  const { readableDidRead, readableEnded, destroyed } = request
  if (!readableDidRead && !readableEnded && !destroyed) return new StreamBody(request, request.headers)
  return new ParsedBody(request)
}

/** A body that somebody has read, made again from what was left of it. */
class ParsedBody implements RequestBody {
  readonly decompressed = true
  readonly #request: NodeRequest & ParsedRequest

  constructor(request: NodeRequest) {
    this.#request = request
  }

  async read<Used>(maxBytes: number, use: (bytes: Buffer) => Used | Promise<Used>): Promise<Used> {
    return await use(this.#bytes(maxBytes))
  }

  async *chunks(maxBytes: number): AsyncGenerator<Buffer, void, undefined> {
    yield this.#bytes(maxBytes)
  }

  drop(): void {
    this.#request.resume()
  }

  #bytes(maxBytes: number): Buffer {
    const bytes = this.#left()
    if (bytes.length > maxBytes) throw bodyTooLarge()
    return bytes
  }

  #left(): Buffer {
    const { headers, body, rawBody, readableDidRead, readableEnded } = this.#request
    if (readableEnded && !readableDidRead) return Buffer.alloc(0)
    const left = bytesOf(rawBody, headers) ?? bytesOf(body, headers)
    if (left !== undefined) return left
    if (isJson(headers) && body !== undefined) return Buffer.from(JSON.stringify(body))
    // A form is refused as it is if nobody has read it.
    if (!isJson(headers) && wireOf(headers['content-type']) === undefined) throw notJson()
    throw readableDidRead ? alreadyRead() : endedEarly()
  }
}

/** The bytes of what a parser left, if it left bytes, or text that stands for them. */
function bytesOf(left: unknown, headers: IncomingHttpHeaders): Buffer | undefined {
  if (left instanceof Uint8Array) return Buffer.from(left.buffer, left.byteOffset, left.byteLength)
  return typeof left === 'string' && isText(headers) ? Buffer.from(left) : undefined
}

/** Whether a body is text, by its content type. Bytes that are none are changed by being read as text. */
function isText(headers: IncomingHttpHeaders): boolean {
  return isJson(headers) || wireOf(headers['content-type'])?.base64 === true
}
