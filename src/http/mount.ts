import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from '../base/log.ts'
import { isBytes } from '../shared/hex.ts'
import { type RequestBody, streamBody } from '../wire/body.ts'
import { wireOf } from '../wire/wire.ts'
import type { NodeRequest } from './exchange.ts'
import { alreadyRead, isForm, isJson, nestedForm, notJson, refusals } from './refusals.ts'

/** Fields that Express, Connect and similar frameworks add to a request. Behind a mount path, `url` lacks that path. */
interface MountedRequest {
  readonly originalUrl?: unknown
  readonly baseUrl?: unknown
}

/** The target of a request as the client sent it, with the mount path. */
export function originalTarget(request: NodeRequest & MountedRequest): string {
  const { originalUrl, url = '/' } = request
  return typeof originalUrl === 'string' ? originalUrl : url
}

/** The path at which a framework has mounted the handler; empty if that is the root. */
function mountPathOf(request: NodeRequest & MountedRequest): string {
  const { baseUrl, url = '/' } = request
  if (typeof baseUrl === 'string') return baseUrl
  const target = originalTarget(request)
  return target.endsWith(url) ? target.slice(0, target.length - url.length) : ''
}

/**
 * Warns once, at the first request through a mount path, of the service's paths outside of it. They are unreachable
 * unless the handler is also mounted at the root. `places` are all paths of the service; `*` at the end stands for any
 * continuation.
 */
export function mountNotice(places: readonly string[], log: Logger): (request: NodeRequest) => void {
  let isSaid = false
  return (request) => {
    if (isSaid) return
    const mountPath = mountPathOf(request)
    if (mountPath === '') return
    isSaid = true
    const outside = places.filter((place) => !`${place}/`.startsWith(`${mountPath}/`))
    if (outside.length === 0) return
    log.warn(
      'countersign.handler is mounted at a path, where some paths of the service cannot be reached; mount it at ' +
        'the root, as app.use(countersign.handler): it passes on what is not its own',
      { mountPath: mountPath.slice(0, 200), outside: outside.join(', ') },
    )
  }
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
  return parsedBody(request)
}

/** A body that other code has read, restored from what it left. */
function parsedBody(request: NodeRequest): RequestBody {
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
