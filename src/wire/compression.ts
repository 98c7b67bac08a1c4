import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, gzip } from 'node:zlib'
import { CountersignError } from '../shared/errors.ts'
import { bodyTooLarge, malformedBody, maxBodyBytes } from './body.ts'

const compress = promisify(gzip)

/** Answers of this many bytes or more are compressed for clients that take it, as connect-node does. */
const compressFromBytes = 1024

/** An answer as it is sent. */
export interface Encoded {
  readonly bytes: string | Uint8Array
  /** The compression's name; `undefined` if the bytes are sent as they are. */
  readonly encoding: 'gzip' | undefined
}

/**
 * Compresses an answer with gzip if `accepted`, the value of the call's header of accepted encodings, has it, and if
 * the answer is large enough to be worth it. Not with Brotli: at its default level it takes a hundred times the CPU.
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

/** The compressions that a caller can use, as its header of accepted ones would list them. */
const knownEncodings: string = Object.keys(decompressors).join(', ')

/**
 * The compression that a request's header names; `undefined` if it names none or `identity`. COMPRESSION_UNSUPPORTED if
 * it is not known.
 */
export function encodingOf(headers: IncomingHttpHeaders, name: string): Compression | undefined {
  const encoding = String(headers[name] ?? 'identity')
  if (encoding === 'identity') return undefined
  if (Object.hasOwn(decompressors, encoding)) return encoding as Compression
  throw new CountersignError(
    'COMPRESSION_UNSUPPORTED',
    `The compression is not supported; supported: ${knownEncodings}`,
    { metadata: { encodings: knownEncodings } },
  )
}

/** The header that tells a refused caller which compressions it can use. All protocols ask for it. */
export function acceptedEncodings(failure: unknown, headerName: string): Readonly<Record<string, string>> {
  const isRefused = failure instanceof CountersignError && failure.reason === 'COMPRESSION_UNSUPPORTED'
  return isRefused ? { [headerName]: knownEncodings } : {}
}

/** The bytes decompressed, {@link maxBodyBytes} at most. An empty message is never compressed. */
export function decompressed(encoding: Compression | undefined, bytes: Uint8Array): Uint8Array | Promise<Uint8Array> {
  if (encoding === undefined || bytes.length === 0) return bytes
  return decompressors[encoding](bytes, { maxOutputLength: maxBodyBytes }).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === 'ERR_BUFFER_TOO_LARGE' ? bodyTooLarge() : malformedBody('does not decompress', cause)
  })
}
