import { compressionNegotiate } from '@connectrpc/connect/protocol'
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node'

/** Answers of this many bytes or more are compressed for clients that take it, as connect-node does. */
const compressFromBytes = 1024

/** An answer as it is sent. */
export interface Encoded {
  readonly bytes: string | Uint8Array
  /** The compression's name; `undefined` if the bytes are sent as they are. */
  readonly encoding: string | undefined
}

/**
 * Compresses an answer in the first compression that `accepted` names and the server knows, if the answer is large enough to
 * be worth it. `accepted` is the value of the call's header of accepted encodings.
 */
export function compressed(bytes: string | Uint8Array, accepted: string | undefined): Encoded | Promise<Encoded> {
  if (!accepted || Buffer.byteLength(bytes) < compressFromBytes) return { bytes, encoding: undefined }
  const { response } = compressionNegotiate([compressionGzip, compressionBrotli], null, accepted, '')
  if (response === null) return { bytes, encoding: undefined }
  const plain = typeof bytes === 'string' ? Buffer.from(bytes) : new Uint8Array(bytes)
  return response.compress(plain).then((smaller) => ({ bytes: smaller, encoding: response.name }))
}
