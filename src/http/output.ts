import { once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import { type Answering, answeringOf } from './http-call.ts'
import { KnownHead, type PlainHeaders, writeKnownHead } from './known-head.ts'
import type { NodeResponse } from './node-request.ts'

/** A complete answer. */
export interface Answer {
  readonly status: number
  /** Headers that many answers have: an object that does not change, and is kept. */
  readonly head?: PlainHeaders | undefined
  /** Headers of this answer. None has the name of one in its head. */
  readonly headers?: OutgoingHttpHeaders | undefined
  readonly body?: string | Uint8Array | undefined
  readonly trailers?: OutgoingHttpHeaders | undefined
}

/** Where an answer goes. To write to a client that has gone does nothing. */
export interface Output {
  readonly answering: Answering
  /** Whether an answer was begun, or sent. */
  readonly begun: boolean
  /** Sends a complete answer. */
  send(answer: Answer): void
  /** Begins an answer that is written in pieces. */
  begin(headers: OutgoingHttpHeaders): void
  /** Whether to write on at once; if not, wait for 'drain'. */
  write(bytes: Uint8Array | string): boolean
  /** Ends an answer that was begun. */
  end(body?: string | Uint8Array, trailers?: OutgoingHttpHeaders): void
}

/** Where the answer of an {@link Output} goes that can be given headers before anybody knows what it will be. */
export interface ResponseLike extends Output {
  /** Whether an answer can have trailers, without which gRPC cannot be spoken. */
  readonly takesTrailers: boolean
  /**
   * Sets headers of the answer, whatever that will be. What the answer itself says has precedence. The object is kept and must not
   * change any more.
   */
  setHeaders(headers: PlainHeaders): void
}

const noHeaders: PlainHeaders = {}

/**
 * Joins headers with others that have precedence, once for each two objects: a service has a handful of either, and answers to pages
 * and to backends, over several protocols, come in turns.
 */
class JoinedHeaders {
  readonly #known = new WeakMap<PlainHeaders, WeakMap<PlainHeaders, KnownHead>>()

  of(first: PlainHeaders, second: PlainHeaders): KnownHead {
    const seconds = this.#known.get(first) ?? new WeakMap<PlainHeaders, KnownHead>()
    const known = seconds.get(second)
    if (known !== undefined) return known
    const both = new KnownHead({ ...first, ...second })
    this.#known.set(first, seconds.set(second, both))
    return both
  }
}

const joinedHeaders = new JoinedHeaders()

/** Writes to a response object. */
export class ResponseOutput implements ResponseLike {
  readonly takesTrailers = true
  readonly answering: Answering
  // The two classes' methods differ in their other parameters, which TypeScript cannot call through a union.
  readonly #response: ServerResponse
  /** Kept here until the answer begins: a response takes headers faster all at once. */
  #headers = noHeaders
  readonly #keepAliveSeconds: number | undefined

  /** With `keepAliveSeconds`, an answer of HTTP/1.1 says for how long its connection is kept for the next request. */
  constructor(response: NodeResponse, keepAliveSeconds?: number) {
    this.answering = answeringOf(response)
    this.#response = response as ServerResponse
    this.#keepAliveSeconds = keepAliveSeconds
  }

  get begun(): boolean {
    return this.#response.headersSent
  }

  setHeaders(headers: PlainHeaders): void {
    this.#headers = this.#headers === noHeaders ? headers : joinedHeaders.of(this.#headers, headers).headers
  }

  send({ status, head, headers, body, trailers }: Answer): void {
    if (this.begun || this.#isOver) return
    const own: OutgoingHttpHeaders = { ...headers }
    if (body !== undefined && trailers === undefined) own['content-length'] = Buffer.byteLength(body)
    const isUsual = status === 200 && head !== undefined && body !== undefined
    if (!isUsual || !this.#wroteKnownHead(joinedHeaders.of(this.#headers, head), own)) {
      this.#writeHead(status, { ...this.#headers, ...head, ...own })
    }
    this.end(body, trailers)
  }

  begin(headers: OutgoingHttpHeaders): void {
    if (!this.#isOver) this.#writeHead(200, { ...this.#headers, ...headers })
  }

  write(bytes: Uint8Array | string): boolean {
    return this.#isOver || this.#response.write(bytes)
  }

  end(body?: string | Uint8Array, trailers?: OutgoingHttpHeaders): void {
    if (this.#isOver) return
    if (trailers !== undefined) this.#response.addTrailers(trailers)
    this.#response.end(body)
  }

  #writeHead(status: number, headers: OutgoingHttpHeaders): void {
    if (this.#keepAliveSeconds !== undefined && this.#isKept)
      headers['keep-alive'] = `timeout=${this.#keepAliveSeconds}`
    this.#response.writeHead(status, headers)
  }

  /** Only on the service's own port: nobody but us sets headers there, and then only to say that the connection closes. */
  #wroteKnownHead(head: KnownHead, own: OutgoingHttpHeaders): boolean {
    if (this.#keepAliveSeconds === undefined || !this.#isKept) return false
    return writeKnownHead(this.#response, `keep-alive: timeout=${this.#keepAliveSeconds}\r\n${head.lines}`, own)
  }

  /** Whether the connection stays for the next request, as far as is known now. Answers of HTTP/2 say nothing of that. */
  get #isKept(): boolean {
    return this.#response.shouldKeepAlive && !this.#response.hasHeader('connection')
  }

  get #isOver(): boolean {
    return this.answering.closed || this.#response.writableEnded
  }
}

/** Writes to a stream of HTTP/2, without a response object. */
export class StreamOutput implements Output {
  readonly answering: ServerHttp2Stream

  constructor(stream: ServerHttp2Stream) {
    this.answering = stream
  }

  get begun(): boolean {
    return this.answering.headersSent
  }

  /** An answer without a body is one HEADERS frame, its trailers included ("Trailers-Only" in gRPC). */
  send({ status, head, headers, body, trailers }: Answer): void {
    if (this.begun || this.#isOver) return
    if (body === undefined) {
      this.answering.respond({ ':status': status, ...head, ...headers, ...trailers }, { endStream: true })
    } else {
      this.#respond(status, { ...head, ...headers })
      this.end(body, trailers)
    }
  }

  begin(headers: OutgoingHttpHeaders): void {
    if (!this.#isOver) this.#respond(200, headers)
  }

  write(bytes: Uint8Array | string): boolean {
    return this.#isOver || this.answering.write(bytes)
  }

  end(body?: string | Uint8Array, trailers: OutgoingHttpHeaders = {}): void {
    if (this.#isOver) return
    this.answering.once('wantTrailers', () => this.answering.sendTrailers(trailers))
    this.answering.end(body)
  }

  #respond(status: number, headers: OutgoingHttpHeaders): void {
    this.answering.respond({ ':status': status, ...headers }, { waitForTrailers: true })
  }

  get #isOver(): boolean {
    return this.answering.closed || this.answering.destroyed || this.answering.writableEnded
  }
}

/**
 * Writes what a stream yields as it comes, and no faster than the client reads. The answer begins with the first piece. Rejects
 * as the stream does, and if the client goes while it is waited for.
 */
export async function writeAll(
  pieces: AsyncIterable<Uint8Array | string>,
  output: Output,
  headers: OutgoingHttpHeaders,
  signal: AbortSignal,
): Promise<void> {
  for await (const piece of pieces) {
    if (!output.begun) output.begin(headers)
    if (!output.write(piece)) await once(output.answering, 'drain', { signal })
  }
}
