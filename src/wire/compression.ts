import { promisify } from 'node:util'
import { brotliDecompress, gunzip, gzip } from 'node:zlib'
import { maxBodyBytes, type Refusals } from './contract.ts'

const compress = promisify(gzip)

/** Size from which answers are compressed for clients that accept it, in bytes; connect-node has the same. */
const compressFromBytes = 1024

/** The body of an answer, compressed or not. */
export interface Encoded {
  readonly bytes: string | Uint8Array
  readonly encoding: 'gzip' | undefined
}

/**
 * Compresses a large answer with gzip if `accepted`, the value of the call's header of accepted encodings, has it.
 * Brotli is not used: at its default level it takes a hundred times the CPU.
 */
export function compressed(bytes: string | Uint8Array, accepted: string | undefined): Encoded | Promise<Encoded> {
  if (!takesGzip(accepted) || Buffer.byteLength(bytes) < compressFromBytes) return { bytes, encoding: undefined }
  return compress(bytes).then((smaller) => ({ bytes: smaller, encoding: 'gzip' }))
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
export interface Compressed {
  readonly bytes: Uint8Array
  readonly encoding: Compression | undefined
  readonly refusals: Refusals
}

/** The bytes decompressed, {@link maxBodyBytes} at most. An empty message is never compressed. */
export function decompressed({ bytes, encoding, refusals }: Compressed): Uint8Array | Promise<Uint8Array> {
  if (encoding === undefined || bytes.length === 0) return bytes
  return decompressors[encoding](bytes, { maxOutputLength: maxBodyBytes }).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === 'ERR_BUFFER_TOO_LARGE'
      ? refusals.bodyTooLarge()
      : refusals.malformedBody('does not decompress', cause)
  })
}
