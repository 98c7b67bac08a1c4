import type { IncomingHttpHeaders } from 'node:http'
import { isBytes } from '../shared/hex.ts'
import { type RequestBody, streamBody } from '../wire/body.ts'
import { wireOf } from '../wire/wire.ts'
import type { NodeRequest } from './exchange.ts'
import { alreadyRead, isForm, isJson, nestedForm, notJson, refusals } from './refusals.ts'

/** Fields that Express, Connect and similar frameworks add to a request. Behind a mount path, `url` lacks that path. */
export interface MountedRequest {
  readonly originalUrl?: unknown
  readonly baseUrl?: unknown
}

/** The target of a request as the client sent it, with the mount path. */
export function originalTarget(request: NodeRequest & MountedRequest): string {
  const { originalUrl, url = '/' } = request
  return typeof originalUrl === 'string' ? originalUrl : url
}

/** Fields in which body parsers of Express, Connect, Next.js and cloud functions leave a body. */
interface ParsedRequest {
  readonly body?: unknown
  readonly rawBody?: unknown
}

/** The body of a request from a framework, which may have read it. */
export function mountedBody(request: NodeRequest): RequestBody {
  // Parsers also set `body` on requests that they leave unread, so it shows nothing.
  const { readableDidRead, readableEnded, destroyed } = request
  if (!readableDidRead && !readableEnded && !destroyed)
    return streamBody({ stream: request, headers: request.headers, refusals })
  // Other code has read it: it is restored from what that left.
  return {
    decompressed: true,
    drop: () => void request.resume(),
    async read(maxBytes) {
      const bytes = leftOf(request)
      if (bytes.length > maxBytes) throw refusals.bodyTooLarge()
      return bytes
    },
  }
}

function leftOf({ headers, body, rawBody, readableDidRead, readableEnded }: NodeRequest & ParsedRequest): Buffer {
  if (readableEnded && !readableDidRead) return Buffer.alloc(0)
  const left = bytesOf(rawBody, headers) ?? bytesOf(body, headers)
  if (left !== undefined) return left
  if (isJson(headers) && body !== undefined) return Buffer.from(JSON.stringify(body))
  if (isForm(headers) && typeof body === 'object' && body !== null) return Buffer.from(formOf(body).toString())
  // An unread form has the same refusal.
  if (!isJson(headers) && wireOf(headers['content-type']) === undefined) throw notJson()
  throw readableDidRead ? alreadyRead() : refusals.endedEarly()
}

/** The bytes that a parser left, as bytes or as text that stands for them. */
function bytesOf(left: unknown, headers: IncomingHttpHeaders): Buffer | undefined {
  if (isBytes(left)) return Buffer.from(left.buffer, left.byteOffset, left.byteLength)
  return typeof left === 'string' && isText(headers) ? Buffer.from(left) : undefined
}

/** The form that a parser left as an object of texts and lists of texts. */
function formOf(body: object): URLSearchParams {
  const fields = Object.entries(body).flatMap(([name, value]) => [value].flat().map((each) => [name, each]))
  if (fields.some(([, value]) => typeof value !== 'string')) throw nestedForm()
  return new URLSearchParams(fields)
}

/** Whether a body is text, by its content type. Reading other bytes as text changes them. */
function isText(headers: IncomingHttpHeaders): boolean {
  return isJson(headers) || isForm(headers) || wireOf(headers['content-type'])?.base64 === true
}
