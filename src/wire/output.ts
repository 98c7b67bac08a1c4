import { type EventEmitter, once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Http2ServerResponse, ServerHttp2Stream } from 'node:http2'
import type { RequestContext } from '../base/request.ts'
import type { Call, Protocol, ResponseHeaders } from '../rpc/methods.ts'

/** A response of either HTTP version. */
export type NodeResponse = ServerResponse | Http2ServerResponse

/** Headers by their names in lower case. */
export type PlainHeaders = Readonly<Record<string, string>>

/** A complete answer. */
export interface Answer {
  readonly status: number
  /** Headers that many answers have. */
  readonly head?: PlainHeaders | undefined
  /** Headers of this answer. None has the name of one in its head. */
  readonly headers?: OutgoingHttpHeaders | undefined
  readonly body?: string | Uint8Array | undefined
  readonly trailers?: OutgoingHttpHeaders | undefined
}

/** Where an answer goes. To write to a client that has gone does nothing. */
export interface Output {
  readonly answering: Answering
  /** Whether an answer can have trailers, without which gRPC cannot be spoken. */
  readonly takesTrailers: boolean
  /** Whether an answer was begun, or sent. */
  readonly begun: boolean
  /** Sets headers of the answer, whatever that will be. What the answer itself says has precedence. */
  setHeaders(headers: PlainHeaders): void
  /** Sends a complete answer. */
  send(answer: Answer): void
  /** Begins an answer that is written in pieces. */
  begin(headers: OutgoingHttpHeaders): void
  /** Whether to write on at once; if not, wait for 'drain'. */
  write(bytes: Uint8Array | string): boolean
  /** Ends an answer that was begun. */
  end(body?: string | Uint8Array, trailers?: OutgoingHttpHeaders): void
}

/** Writes to a response object: that of HTTP/1.1, or of the server in which the service is mounted. */
export class ResponseOutput implements Output {
  readonly takesTrailers = true
  readonly answering: Answering
  // The two classes' methods differ in their other parameters, which TypeScript cannot call through a union.
  readonly #response: ServerResponse
  #headers: PlainHeaders = {}
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
    this.#headers = { ...this.#headers, ...headers }
  }

  send({ status, head, headers, body, trailers }: Answer): void {
    if (this.begun || this.#isOver) return
    const all: OutgoingHttpHeaders = { ...this.#headers, ...head, ...headers }
    if (body !== undefined && trailers === undefined) all['content-length'] = Buffer.byteLength(body)
    this.#writeHead(status, all)
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
    const isKept = this.#response.shouldKeepAlive && !this.#response.hasHeader('connection')
    if (this.#keepAliveSeconds !== undefined && isKept) headers['keep-alive'] = `timeout=${this.#keepAliveSeconds}`
    this.#response.writeHead(status, headers)
  }

  get #isOver(): boolean {
    return this.answering.closed || this.#response.writableEnded
  }
}

/** Writes to a stream of HTTP/2. */
export class StreamOutput implements Output {
  readonly takesTrailers = true
  readonly answering: ServerHttp2Stream
  #headers: PlainHeaders = {}

  constructor(stream: ServerHttp2Stream) {
    this.answering = stream
  }

  get begun(): boolean {
    return this.answering.headersSent
  }

  setHeaders(headers: PlainHeaders): void {
    this.#headers = { ...this.#headers, ...headers }
  }

  /** An answer without a body is one HEADERS frame, its trailers included ("Trailers-Only" in gRPC). */
  send({ status, head, headers, body, trailers }: Answer): void {
    if (this.begun || this.#isGone) return
    const all = { ':status': status, ...this.#headers, ...head, ...headers }
    if (body === undefined) {
      this.answering.respond({ ...all, ...trailers }, { endStream: true })
    } else if (trailers === undefined) {
      this.answering.respond({ ...all, 'content-length': Buffer.byteLength(body) })
      if (!this.#isOver) this.answering.end(body)
    } else {
      this.answering.respond(all, { waitForTrailers: true })
      this.end(body, trailers)
    }
  }

  begin(headers: OutgoingHttpHeaders): void {
    if (this.#isGone) return
    this.answering.respond({ ':status': 200, ...this.#headers, ...headers }, { waitForTrailers: true })
  }

  write(bytes: Uint8Array | string): boolean {
    return this.#isOver || this.answering.write(bytes)
  }

  end(body?: string | Uint8Array, trailers: OutgoingHttpHeaders = {}): void {
    if (this.#isOver) return
    this.answering.once('wantTrailers', () => this.answering.sendTrailers(trailers))
    this.answering.end(body)
  }

  get #isGone(): boolean {
    return this.answering.closed || this.answering.destroyed
  }

  /** Whether no more of a body can be written. Node ends the body of an answer to HEAD before there is an answer. */
  get #isOver(): boolean {
    return this.#isGone || this.answering.writableEnded
  }
}

/**
 * Writes what a stream yields as it comes, and no faster than the client reads. The answer begins with the first piece.
 * Rejects as the stream does, and if the client goes while it is waited for.
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

/** What an answer is written to, of either HTTP version. */
export interface Answering extends EventEmitter {
  /** Whether it was closed, by whomever. */
  readonly closed: boolean
}

/** What the answer of a response object is written to. */
function answeringOf(response: NodeResponse): Answering {
  return 'stream' in response ? response.stream : response
}

/**
 * A call over HTTP. Its signal is made once somebody asks for it, because most calls end before anybody could leave.
 */
export class HttpCall implements Call {
  readonly protocol: Protocol
  readonly request: RequestContext
  readonly timeoutMs: number | undefined
  readonly #answering: Answering
  #responseHeaders: ResponseHeaders | undefined
  #signal: AbortSignal | undefined

  constructor(protocol: Protocol, request: RequestContext, answering: Answering, timeoutMs?: number) {
    this.protocol = protocol
    this.request = request
    this.timeoutMs = timeoutMs
    this.#answering = answering
  }

  get responseHeaders(): ResponseHeaders {
    this.#responseHeaders ??= {}
    return this.#responseHeaders
  }

  /** The headers to send with the response; `undefined` if nobody asked for them to set one, as in most calls. */
  get ownHeaders(): OutgoingHttpHeaders | undefined {
    return this.#responseHeaders as OutgoingHttpHeaders | undefined
  }

  /**
   * Aborts when the answer is closed: it is complete, or the client has gone. Which of the two it is cannot be told:
   * node ends the streams of a connection that is lost as if they were complete.
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
