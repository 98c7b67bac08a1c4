import { AsyncLocalStorage } from 'node:async_hooks'
import { type IncomingMessage, type OutgoingHttpHeaders, OutgoingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { KoaContextWithOIDC } from 'oidc-provider'
import type { RequestContext } from '../base/request.ts'
import type { Session } from '../core/users/host.ts'
import type { Exchange } from '../http/exchange.ts'
import { maxFormBytes } from '../limits/limits.ts'
import type { CountersignError } from '../shared/errors.ts'

/** The exports of the library that are used. */
export type Library = Pick<typeof import('oidc-provider'), 'Provider' | 'errors' | 'interactionPolicy'>

/** State of the request that the library is serving. */
export interface RequestState {
  /** The live session of the request's cookie. Absent without one, and for the calls of backends. */
  readonly session: Session | undefined
  readonly request: RequestContext
  /** Whether no one is signed in and no one may be asked: the answer is a refusal, for which nothing is fetched. */
  readonly isAnonymous?: boolean
  /** The browser's own secrets, the oldest first. None for the calls of backends. */
  readonly browserSecrets: readonly string[]
}

/** State of the request in progress, for what the library calls without a context of ours. */
export const requestState = new AsyncLocalStorage<RequestState>()

/** An answer of the library. */
export interface LibraryAnswer {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: string | Buffer
  /** Why it is no answer of the protocol: a limit, or an outage. */
  readonly failure?: CountersignError | undefined
}

/** Puts an answer of our own in place of the library's. */
export function answerWith(
  ctx: Pick<KoaContextWithOIDC, 'status' | 'body' | 'set'>,
  { status, headers, body }: LibraryAnswer,
): void {
  ctx.status = status
  for (const [name, value] of Object.entries(headers)) ctx.set(name, String(value))
  ctx.body = body
}

/** What of a request is replaced before the library sees it. */
export interface BridgedRequest {
  /** The issuer's address: the host and scheme that the library sees, in place of the request's. */
  readonly issuer: string
  /** The Cookie header that it sees. */
  readonly cookie: string | undefined
  /** Headers that its answer may change. */
  readonly headers: Readonly<Record<string, string>>
}

/** A request handler as Koa makes it. */
export type Callback = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/**
 * Headers that do not reach the library: those of one connection, of the sender's cookies, and all that could say for
 * which host the request is. The library writes its own addresses from these headers, into documents that are cached.
 */
const withheld = new RegExp(
  '^(:.*|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|' +
    'host|cookie|content-length|forwarded|x-forwarded-.*|x-real-ip)$',
)

/**
 * Has the library answer a request that it gets in memory: it sees no socket of ours, and one path serves HTTP/1.1,
 * HTTP/2, `handler` and `fetch`.
 */
export async function askLibrary(
  callback: Callback,
  exchange: Exchange,
  { issuer, cookie, headers }: BridgedRequest,
): Promise<LibraryAnswer> {
  const body = await exchange.body.read(maxFormBytes)
  const response = new MemoryResponse()
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  await callback(requestOf(exchange, { issuer, cookie, body }), response as never)
  return response.answer
}

function requestOf(
  { method, path, query, headers, context }: Exchange,
  { issuer, cookie, body }: Pick<BridgedRequest, 'issuer' | 'cookie'> & { readonly body: Buffer },
): IncomingMessage {
  const { host, protocol } = new URL(issuer)
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !withheld.test(name)))
  const length = body.length === 0 ? {} : { 'content-length': String(body.length) }
  return Object.assign(Readable.from(body.length === 0 ? [] : [body], { objectMode: false }), {
    method,
    // The library's framework drops a `#` and what follows, which is a part of the query here.
    url: query === '' ? path : `${path}?${query.replaceAll('#', '%23')}`,
    headers: { ...kept, ...length, host, ...(cookie === undefined ? {} : { cookie }) },
    httpVersion: '1.1',
    httpVersionMajor: 1,
    httpVersionMinor: 1,
    // The library reads only these two fields of the socket.
    socket: { encrypted: protocol === 'https:', remoteAddress: context.ip },
  }) as unknown as IncomingMessage
}

/** Says why the library cannot answer, with the answer that it makes instead. */
export function reportFailure(response: ServerResponse, failure: CountersignError): void {
  if (response instanceof MemoryResponse) response.failure = failure
}

/** An answer that stays in memory. */
class MemoryResponse extends OutgoingMessage {
  statusCode = 200
  statusMessage = ''
  failure: CountersignError | undefined
  #body: string | Buffer = ''

  get answer(): LibraryAnswer {
    if (!this.finished) throw new Error('the library has not answered')
    // Koa gives an empty body a type, for which some clients take the answer for an error.
    if (this.#body.length === 0) this.removeHeader('content-type')
    const { statusCode, failure } = this
    return { status: statusCode, headers: this.getHeaders(), body: this.#body, failure }
  }

  override end(body: unknown = ''): this {
    if (this.finished) return this
    this.#body = body as string | Buffer
    this.finished = true
    this.emit('finish')
    return this
  }
}
