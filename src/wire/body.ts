import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, gzip } from 'node:zlib'
import type { Refusals } from './contract.ts'

/** The body of a request. */
export interface RequestBody {
  /** Reads all of it. Rejects with `bodyTooLarge` as soon as more than `maxBytes` are announced or have arrived. */
  read(maxBytes: number): Promise<Buffer>
  /** Reads and discards the rest: a client reads its answer only after it has sent all. */
  drop(): void
  /** Whether it is already decompressed; the header Content-Encoding then still names the compression. */
  readonly decompressed: boolean
}

/** A stream of Node.js that is the body of a request. */
export interface BodyStream {
  readonly stream: Readable
  readonly headers: IncomingHttpHeaders
  readonly refusals: Refusals
}

/** The body of a request to node:http or node:http2. */
export function streamBody(source: BodyStream): RequestBody {
  return {
    decompressed: false,
    read: (maxBytes) => readBody(source, maxBytes),
    drop: () => void source.stream.resume(),
  }
}

function readBody({ stream, headers, refusals }: BodyStream, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // The connection was lost while the call waited for another step. Such a stream emits no further event.
    if (stream.destroyed) {
      reject(refusals.endedEarly())
      return
    }
    // An empty body of HTTP/2 ends before it is read, and emits no second 'end'.
    if (stream.readableEnded) {
      resolve(Buffer.alloc(0))
      return
    }
    // The rest is read and discarded: a client reads its answer only after it has sent all.
    if (Number(headers['content-length'] ?? 0) > maxBytes) {
      stream.resume()
      reject(refusals.bodyTooLarge())
      return
    }
    const chunks: Buffer[] = []
    let size = 0
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) reject(refusals.bodyTooLarge())
      else chunks.push(chunk)
    })
    let isComplete = false
    stream.on('end', () => {
      isComplete = true
      // Without effect if the body is refused already.
      resolve(Buffer.concat(chunks))
    })
    const gone = (): void => {
      // Streams also close after a complete body.
      if (!isComplete) reject(refusals.endedEarly())
    }
    stream.on('error', gone)
    stream.on('close', gone)
  })
}

const compress = promisify(gzip)

/** Size from which answers are compressed for clients that accept it, in bytes; connect-node has the same. */
const compressFromBytes = 1024

/**
 * Compresses a large answer with gzip if `accepted`, the value of the call's header of accepted encodings, has it.
 * Brotli is not used: at its default level it takes a hundred times the CPU.
 */
export async function compressed(bytes: string | Uint8Array, accepted: string | undefined) {
  if (!takesGzip(accepted) || Buffer.byteLength(bytes) < compressFromBytes) return { bytes, encoding: undefined }
  return { bytes: await compress(bytes), encoding: 'gzip' }
}

/** Whether a header of accepted encodings has gzip with a weight other than zero (RFC 9110, 12.5.3). */
export function takesGzip(accepted = ''): boolean {
  return /\bgzip\b(?![ \t]*;[ \t]*q=0(\.0*)?[ \t]*(,|$))/i.test(accepted)
}

const decompressors = { gzip: promisify(gunzip), br: promisify(brotliDecompress) } as const

type Compression = keyof typeof decompressors

/** The supported compressions, as a header of accepted ones lists them. */
export const supportedEncodings: string = Object.keys(decompressors).join(', ')

/** Compression of a request, by the value of its header; `undefined` without one, or for `identity`. */
export function encodingOf(header: string | string[] | undefined, refusals: Refusals): Compression | undefined {
  const encoding = String(header ?? 'identity')
  if (encoding === 'identity') return undefined
  if (Object.hasOwn(decompressors, encoding)) return encoding as Compression
  throw refusals.unknownEncoding(supportedEncodings)
}

/** Bytes with their compression. */
interface Compressed {
  readonly bytes: Uint8Array
  readonly encoding: Compression | undefined
  readonly refusals: Refusals
}

/** The bytes decompressed, `maxBodyBytes` at most. An empty message is never compressed. */
export function decompressed({ bytes, encoding, refusals }: Compressed): Uint8Array | Promise<Uint8Array> {
  if (encoding === undefined || bytes.length === 0) return bytes
  return decompressors[encoding](bytes, { maxOutputLength: refusals.maxBodyBytes }).catch(
    (cause: NodeJS.ErrnoException) => {
      throw cause.code === 'ERR_BUFFER_TOO_LARGE'
        ? refusals.bodyTooLarge()
        : refusals.malformedBody('does not decompress', cause)
    },
  )
}
