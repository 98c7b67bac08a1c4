import { on } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { CountersignError } from '../shared/errors.ts'

/** Largest body of a request, bytes. The largest honest one is a few kilobytes. */
export const maxBodyBytes: number = 64 * 1024

/** The body of a request, wherever it comes from. */
export interface RequestBody {
  /** Reads it. REQUEST_TOO_LARGE as soon as it is known to be longer than `maxBytes`. */
  read(maxBytes: number): Promise<Buffer>
  /**
   * Reads it as it comes, where that is possible, and otherwise as a whole. Ends with the body, and when the signal
   * aborts. REQUEST_TOO_LARGE as {@link read}.
   */
  chunks(maxBytes: number, signal: AbortSignal): AsyncIterable<Buffer>
  /** Reads what is left and drops it, so that the client can finish sending and then hear the answer. */
  drop(): void
  /** Whether it is decompressed already, although the header Content-Encoding still names the compression. */
  readonly decompressed: boolean
}

/** The refusal of a body that is larger than {@link maxBodyBytes}. */
export function bodyTooLarge(): CountersignError {
  return new CountersignError('REQUEST_TOO_LARGE', `The body is larger than ${maxBodyBytes} bytes`, {
    metadata: { max_bytes: String(maxBodyBytes) },
  })
}

/** The refusal of a body that cannot be read as its headers say. `how` completes "The body …". */
export function malformedBody(how: string, cause?: unknown): CountersignError {
  return new CountersignError('INVALID_REQUEST', `The body ${how}`, { cause })
}

/** A body that arrives in a stream of node's. */
export class StreamBody implements RequestBody {
  readonly decompressed = false
  readonly #stream: Readable
  readonly #headers: IncomingHttpHeaders

  constructor(stream: Readable, headers: IncomingHttpHeaders) {
    this.#stream = stream
    this.#headers = headers
  }

  read(maxBytes: number): Promise<Buffer> {
    return readBody(this.#stream, this.#headers, maxBytes)
  }

  async *chunks(maxBytes: number, signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
    if (this.#stream.readableEnded) return
    let size = 0
    try {
      // Paused while no more is asked for: a client that does not read its answers must not fill the memory with
      // requests.
      const options = { close: ['end', 'close'], highWaterMark: 1, lowWaterMark: 1, signal }
      for await (const [chunk] of on(this.#stream, 'data', options)) {
        size += chunk.length
        if (size > maxBytes) throw bodyTooLarge()
        yield chunk
      }
    } catch (thrown) {
      if (signal.aborted) return
      throw thrown instanceof CountersignError ? thrown : endedEarly(thrown)
    }
  }

  drop(): void {
    this.#stream.resume()
  }
}

function readBody(body: Readable, headers: IncomingHttpHeaders, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // The sender may have gone while the call waited for something else. Such a stream tells nothing any more.
    if (body.destroyed) {
      reject(endedEarly())
      return
    }
    // An empty body of HTTP/2 ends before it is read, and emits no second 'end'.
    if (body.readableEnded) {
      resolve(Buffer.alloc(0))
      return
    }
    // What comes after the limit is read and dropped, so that the client can finish sending and then hear the answer.
    if (Number(headers['content-length'] ?? 0) > maxBytes) {
      body.resume()
      reject(bodyTooLarge())
      return
    }
    const chunks: Buffer[] = []
    let size = 0
    body.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) reject(bodyTooLarge())
      else chunks.push(chunk)
    })
    let isComplete = false
    body.on('end', () => {
      isComplete = true
      // Without effect on a body that is refused already.
      resolve(Buffer.concat(chunks))
    })
    const gone = (): void => {
      // A body closes after its end as well.
      if (!isComplete) reject(endedEarly())
    }
    body.on('error', gone)
    body.on('close', gone)
  })
}

/** The refusal of a body that its sender broke off. */
export function endedEarly(cause?: unknown): CountersignError {
  return new CountersignError('INVALID_REQUEST', 'The request ended before its body did', { cause })
}

/**
 * Whether a body is JSON, by its content type. No form of a foreign page has this type (the Fetch standard's CORS
 * protocol).
 */
export function isJson(headers: IncomingHttpHeaders): boolean {
  return /^application\/json\b/i.test(headers['content-type'] ?? '')
}

/** The refusal of a body of another type than JSON. */
export function notJson(): CountersignError {
  return new CountersignError('INVALID_REQUEST', 'Send JSON, with the header content-type: application/json')
}

const alreadyReadText =
  'The body of this request was read before Countersign got it, and cannot be had again. Mount Countersign before whatever reads bodies (a body parser, an upload handler, the framework itself), or let that leave the parsed JSON, the text or the bytes in request.body or request.rawBody; see docs/mounting.md of Countersign'

/**
 * The failure of a body that other code has read: the application is put together wrongly. Logged like all failures of
 * the server.
 */
export function alreadyRead(): CountersignError {
  const reference = crypto.randomUUID()
  return new CountersignError('INTERNAL', alreadyReadText, {
    metadata: { reference },
    cause: new Error(alreadyReadText),
  })
}
