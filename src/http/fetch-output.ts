import { EventEmitter } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import type { Answer, Output } from '../wire/output.ts'
import type { Answering } from './http-call.ts'

/** Bytes of a stream that are made before somebody reads them: as many as node's own streams hold. */
const highWaterMark = 64 * 1024

/**
 * HTTP status of the answer to a client that has gone, which nobody reads: "client closed request", as nginx logs it.
 */
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

/** Tells of an answer's end, and of its reader's being ready for more. */
class FetchAnswering extends EventEmitter implements Answering {
  closed = false

  close(): void {
    if (this.closed) return
    this.closed = true
    this.emit('close')
  }
}
