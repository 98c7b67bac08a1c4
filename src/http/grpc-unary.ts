import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { create, toBinary } from '@bufbuild/protobuf'
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc'
import { CountersignError } from '../errors.ts'
import type { RequestContext } from '../request.ts'
import { toConnectError } from '../rpc/errors.ts'
import type { Invoker } from '../rpc/invoke.ts'
import type { UnaryMethod } from '../rpc/methods.ts'
import { decodeInput } from '../rpc/read-input.ts'
import { compressed } from './compression.ts'
import { bodyTooLarge, maxBodyBytes } from './node-request.ts'
import { envelopeBytes, inputBytes, isKnownEncoding, knownEncodings, readDeadline, type Wire } from './wire.ts'

/** What the answer's content type says: gRPC's default encoding. */
const contentType = 'application/grpc+proto'

/** Whether the lean path below can serve a call: gRPC with protobuf messages. JSON goes to connect-node. */
export function isLeanGrpc(wire: Wire): boolean {
  return wire.protocol === 'grpc' && wire.codec === 'proto'
}

/**
 * Serves a unary gRPC call straight from a stream of node:http2. It answers as connect-node does, at a fraction of the work: see
 * bench/README.md. A differential test holds the two together.
 *
 * Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
export async function serveGrpcUnary(
  method: UnaryMethod,
  wire: Wire,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  context: RequestContext,
  invoker: Invoker,
): Promise<void> {
  const responseHeaders = new Headers()
  const deadline = readDeadline(wire, headers['grpc-timeout'] as string | undefined)
  try {
    const message = await invoker.unary({
      name: method.name,
      schema: method.desc.input,
      handler: method,
      write: (reply) => toBinary(method.desc.output, create(method.desc.output, reply)),
      call: {
        protocol: 'grpc',
        request: context,
        responseHeaders,
        signal: closed(stream),
        timeoutMs: deadline.timeoutMs,
      },
      readInput: async () => {
        if (deadline.malformed !== undefined) throw deadline.malformed
        return decodeInput(method.desc.input, 'proto', await inputBytes(wire, headers, await readBody(stream)))
      },
    })
    await succeed(stream, headers, responseHeaders, message)
  } catch (thrown) {
    fail(stream, headers, thrown)
  }
}

/** A signal that aborts if the stream is closed before it is answered. */
function closed(stream: ServerHttp2Stream): AbortSignal {
  const controller = new AbortController()
  stream.once('close', () => {
    if (!stream.writableFinished) controller.abort()
  })
  return controller.signal
}

async function succeed(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  responseHeaders: Headers,
  message: Uint8Array,
): Promise<void> {
  const { bytes, encoding } = await compressed(message, acceptedBy(headers))
  if (stream.closed || stream.destroyed) return
  stream.respond(
    {
      ':status': 200,
      'content-type': contentType,
      'cache-control': 'no-store',
      // Only if it is used: gRPC's C library (1.51, of Debian 12) fails on an answer that names one without need.
      ...(encoding === undefined ? {} : { 'grpc-encoding': encoding }),
      ...outgoing(responseHeaders),
    },
    { waitForTrailers: true },
  )
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  const framed = Buffer.allocUnsafe(envelopeBytes + bytes.length)
  framed[0] = encoding === undefined ? 0 : 1
  framed.writeUInt32BE(bytes.length, 1)
  framed.set(bytes as Uint8Array, envelopeBytes)
  stream.end(framed)
}

/** Answers with a status alone, in one HEADERS frame ("Trailers-Only"). */
function fail(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, thrown: unknown): void {
  if (stream.closed || stream.destroyed || stream.headersSent) return
  const status = setTrailerStatus(new Headers(), toConnectError(thrown))
  const encoding = String(headers['grpc-encoding'] ?? 'identity')
  // What the client goes on to send is read and dropped, so that the stream can end.
  stream.resume()
  stream.respond(
    {
      ':status': 200,
      'content-type': contentType,
      'cache-control': 'no-store',
      ...(encoding === 'identity' || isKnownEncoding(encoding) ? {} : { 'grpc-accept-encoding': knownEncodings }),
      ...outgoing(status),
    },
    { endStream: true },
  )
}

/** The compressions that the caller takes: those it names or, if it names none, its own. */
function acceptedBy(headers: IncomingHttpHeaders): string | undefined {
  return (headers['grpc-accept-encoding'] || headers['grpc-encoding']) as string | undefined
}

function outgoing(headers: Headers): OutgoingHttpHeaders {
  const made: OutgoingHttpHeaders = {}
  for (const [name, value] of headers) if (name !== 'set-cookie') made[name] = value
  const cookies = headers.getSetCookie()
  if (cookies.length > 0) made['set-cookie'] = cookies
  return made
}

/** Reads a call's body, its envelope included. REQUEST_TOO_LARGE as soon as it is known to be. */
function readBody(stream: ServerHttp2Stream): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length
      // What comes after the limit is read and dropped, so that the client can finish sending and then hear the answer.
      if (size > maxBodyBytes + envelopeBytes) reject(bodyTooLarge())
      else chunks.push(chunk)
    })
    stream.once('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
    stream.once('close', () => reject(new CountersignError('INVALID_REQUEST', 'The request ended before its body did')))
  })
}
