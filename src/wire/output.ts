import { type EventEmitter, once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Http2ServerResponse, ServerHttp2Stream } from 'node:http2'

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

/** Destination of an answer. After the client has gone, all methods do nothing. */
export interface Output {
  readonly answering: Answering
  /** Whether an answer can have trailers, which gRPC requires. */
  readonly takesTrailers: boolean
  /** Whether an answer was begun, or sent. */
  readonly begun: boolean
  /** Sets headers of the answer, before its body is known. Headers of the answer itself have precedence. */
  setHeaders(headers: PlainHeaders): void
  /** Sends a complete answer. */
  send(answer: Answer): void
  /** Begins an answer that is written in pieces. */
  begin(headers: OutgoingHttpHeaders): void
  /** `false`: wait for 'drain' before the next piece. */
  write(bytes: Uint8Array | string): boolean
  /** Ends an answer that was begun. */
  end(body?: string | Uint8Array, trailers?: OutgoingHttpHeaders): void
}

/** Writes to a response object of HTTP/1.1, or of the server in which the service is mounted. */
export class ResponseOutput implements Output {
  readonly takesTrailers = true
  readonly answering: Answering
  // The two classes' methods differ in their other parameters, which TypeScript cannot call through a union.
  readonly #response: ServerResponse
  readonly #headers: Record<string, string> = {}
  readonly #keepAliveSeconds: number | undefined

  /** `keepAliveSeconds`: time for which a connection of HTTP/1.1 is kept, which its answers then announce. */
  constructor(response: NodeResponse, keepAliveSeconds?: number) {
    this.answering = answeringOf(response)
    this.#response = response as ServerResponse
    this.#keepAliveSeconds = keepAliveSeconds
  }

  get begun(): boolean {
    return this.#response.headersSent
  }

  setHeaders(headers: PlainHeaders): void {
    Object.assign(this.#headers, headers)
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
  readonly #headers: Record<string, string> = {}

  constructor(stream: ServerHttp2Stream) {
    this.answering = stream
  }

  get begun(): boolean {
    return this.answering.headersSent
  }

  setHeaders(headers: PlainHeaders): void {
    Object.assign(this.#headers, headers)
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

  /** Whether the body has ended. Node.js ends the body of an answer to HEAD before the answer begins. */
  get #isOver(): boolean {
    return this.#isGone || this.answering.writableEnded
  }
}

/**
 * Writes the pieces of a stream as they come, and no faster than the client reads. The answer begins with the first
 * piece. Rejects with the stream's error, and if the client leaves during a wait for 'drain'.
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

/** The stream of an answer, of either HTTP version: it emits 'drain' and 'close'. */
export interface Answering extends EventEmitter {
  /** Whether the answer has ended, or the connection is lost. */
  readonly closed: boolean
}

function answeringOf(response: NodeResponse): Answering {
  return 'stream' in response ? response.stream : response
}
