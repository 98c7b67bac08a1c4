import { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { readRequest } from '../base/request.ts'
import type { RequestBody } from '../wire/body.ts'
import type { Answer, Answering, Output } from '../wire/output.ts'
import type { Exchange } from './exchange.ts'
import { alreadyRead, refusals } from './refusals.ts'

/** The part of a client that a `Request` of the Fetch standard does not have. */
export interface FetchClient {
  /**
   * IP address of the peer, as the server knows it, for limits. Without it, the address is unknown unless a trusted
   * proxy wrote it (`trustProxy`), and no limit counts.
   */
  readonly remoteAddress?: string | undefined
}

/**
 * Serves a `Request` of the Fetch standard. Answers are not compressed. Rejects with a `TypeError` if `remoteAddress`
 * is not an IP address.
 */
export type FetchHandler = (request: Request, client?: FetchClient) => Promise<Response>

/** The client's address, as the server knows it. Checked, because it can be text from a header. */
export function addressOf(client: FetchClient | undefined): string | undefined {
  const remoteAddress: unknown = client?.remoteAddress
  if (typeof remoteAddress !== 'string') return undefined
  if (isIP(remoteAddress) === 0) throw new TypeError('remoteAddress must be an IP address, without a port')
  return remoteAddress
}

/** The target and the sender of a `Request`. */
interface FetchArrival {
  readonly url: URL
  readonly remoteAddress: string | undefined
  /** Number of proxies in front. */
  readonly trustedProxies: number
}

/** A `Request` as the routes get it. */
export function fetchExchange(request: Request, arrival: FetchArrival, output: Output): Exchange {
  const { url, remoteAddress, trustedProxies } = arrival
  const { method, headers } = request
  // Some frameworks use an address of their own in the URL, such as http://localhost:3000.
  const authority = headers.get('host') ?? url.host
  const raw = {
    // The headers of some servers are no instance of this realm's class.
    headers: { get: (name: string) => headers.get(name), toHeaders: () => new Headers(headers) },
    scheme: url.protocol === 'https:' ? 'https' : 'http',
    authority,
    remoteAddress,
  } as const
  // Answers are plain: some frameworks compress them all, and drop the header that says that one is compressed.
  const { 'accept-encoding': _, ...byName }: IncomingHttpHeaders = Object.fromEntries(headers)
  return {
    method,
    path: url.pathname,
    query: url.search.slice(1),
    authority,
    headers: byName,
    body: fetchBody(request),
    context: readRequest(raw, trustedProxies),
    output,
  }
}

/** The body of a `Request`. */
export function fetchBody(request: Request): RequestBody {
  const drop = (): void => {
    const { body } = request
    if (body !== null && !body.locked) void dropRest(body.getReader())
  }
  return {
    decompressed: false,
    drop,
    async read(maxBytes) {
      const { body, headers } = request
      if (request.bodyUsed || body?.locked === true) throw alreadyRead()
      if (body === null) return Buffer.alloc(0)
      if (Number(headers.get('content-length') ?? 0) > maxBytes) {
        drop()
        throw refusals.bodyTooLarge()
      }
      return await readStream(body, maxBytes)
    },
  }
}

async function readStream(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw refusals.endedEarly(cause)
    })
    if (done) return Buffer.concat(chunks)
    size += value.byteLength
    if (size > maxBytes) {
      // Not cancelled: a server may then cut the connection before the client has read the answer.
      void dropRest(reader)
      throw refusals.bodyTooLarge()
    }
    chunks.push(value)
  }
}

async function dropRest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  try {
    while (!(await reader.read()).done);
  } catch {
    // The client has gone.
  }
}

/** Bytes of a stream that are made before they are read: the same as in node's own streams. */
const highWaterMark = 64 * 1024

/** HTTP status of the unread answer to a client that has gone: "client closed request", as nginx logs it. */
const clientGone = 499

/** Writes a `Response` of the Fetch standard. */
export class FetchOutput implements Output {
  readonly takesTrailers = false
  readonly answering: FetchAnswering = new FetchAnswering()
  readonly #headers = new Headers()
  readonly #response: PromiseWithResolvers<Response> = Promise.withResolvers()
  #begun = false
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined
  readonly #isHead: boolean

  /** The request's signal aborts when the client leaves. */
  constructor({ method, signal }: Pick<Request, 'method' | 'signal'>) {
    this.#isHead = method === 'HEAD'
    const leave = (): void => this.#leave()
    if (signal.aborted) leave()
    else {
      signal.addEventListener('abort', leave, { once: true })
      this.answering.once('close', () => signal.removeEventListener('abort', leave))
    }
  }

  /** Resolves when the answer begins, and never rejects. */
  get response(): Promise<Response> {
    return this.#response.promise
  }

  get begun(): boolean {
    return this.#begun
  }

  setHeaders(headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(headers)) this.#headers.set(name, value)
  }

  send({ status, head, headers, body }: Answer): void {
    if (this.#begun || this.answering.closed) return
    const sized = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const sent = { ...head, ...headers, ...sized }
    this.#respond(status, sent, this.#isHead ? null : (body ?? null))
    this.answering.close()
  }

  begin(headers: OutgoingHttpHeaders): void {
    if (this.answering.closed) return
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#stream = controller
        },
        pull: () => void this.answering.emit('drain'),
        cancel: () => this.answering.close(),
      },
      { highWaterMark, size: ({ byteLength }) => byteLength },
    )
    this.#respond(200, headers, stream)
  }

  write(bytes: Uint8Array | string): boolean {
    if (this.answering.closed || this.#stream === undefined) return true
    this.#stream.enqueue(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
    return (this.#stream.desiredSize ?? 0) > 0
  }

  end(body?: string | Uint8Array): void {
    if (this.answering.closed) return
    if (body !== undefined) this.write(body)
    this.#stream?.close()
    this.answering.close()
  }

  #respond(status: number, headers: OutgoingHttpHeaders, body: ReadableStream | Uint8Array | string | null): void {
    this.#begun = true
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined) continue
      if (!Array.isArray(value)) this.#headers.set(name, String(value))
      else for (const each of value) this.#headers.append(name, each)
    }
    this.#response.resolve(new Response(body as BodyInit | null, { status, headers: this.#headers }))
  }

  #leave(): void {
    if (this.answering.closed) return
    if (this.#begun) this.#stream?.close()
    else this.#respond(clientGone, {}, null)
    this.answering.close()
  }
}

/** Emits the end of an answer, and that its reader is ready for more. */
class FetchAnswering extends EventEmitter implements Answering {
  closed = false

  close(): void {
    if (this.closed) return
    this.closed = true
    this.emit('close')
  }
}
