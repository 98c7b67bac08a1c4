import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { createRegistry, type DescMethod, fromBinary, type JsonValue, toJson } from '@bufbuild/protobuf'
import { ViolationsSchema } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { Code, ConnectError } from '@connectrpc/connect'
import { codeToString, errorFromJson } from '@connectrpc/connect/protocol-connect'
import { findTrailerError } from '@connectrpc/connect/protocol-grpc'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import type { RawAnswer } from './raw-http.ts'

/** What an RPC's answer says, whatever protocol and compression it came in. */
export interface RpcAnswer {
  readonly status: number
  readonly headers: Headers
  /** The response's messages, as JSON. */
  readonly messages: readonly JsonValue[]
  /** The failure; absent if the call succeeded or the body is of no RPC. */
  readonly failure?: RpcFailure
  /** The body that is of no RPC: an empty one, or the JSON of a refusal before any RPC was found. */
  readonly other?: string
}

/** A call's failure. */
export interface RpcFailure {
  readonly code: string
  readonly message: string
  /** Of google.rpc.ErrorInfo; absent without one. */
  readonly reason?: string
  /** Of google.rpc.ErrorInfo. */
  readonly metadata?: Readonly<Record<string, string>>
  /** The other details: type and JSON of each. */
  readonly details: readonly JsonValue[]
}

/** The reason that a call by a generated client is refused with. */
export async function reasonOf(call: Promise<unknown>): Promise<string | undefined> {
  return await call.then(
    () => undefined,
    (error) => ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.reason,
  )
}

const detailTypes = createRegistry(ErrorInfoSchema, RetryInfoSchema, ViolationsSchema)

/** Reads an answer to a call of an RPC. */
export function readRpcAnswer({ status, headers, body, trailers }: RawAnswer, method: DescMethod): RpcAnswer {
  const type = headers.get('content-type') ?? ''
  const codec = type.includes('json') ? 'json' : 'proto'
  const common = { status, headers: merged(headers, trailers), messages: [] }
  const message = (bytes: Buffer): JsonValue =>
    codec === 'json'
      ? (JSON.parse(bytes.toString()) as JsonValue)
      : toJson(method.output, fromBinary(method.output, bytes))
  if (/^application\/grpc/.test(type)) {
    const bytes = type.includes('-text') ? fromBase64Chunks(body) : body
    const frames = framesOf(bytes, headers.get('grpc-encoding'))
    const inBody = frames.filter(({ flags }) => (flags & 0x80) !== 0).map(({ data }) => data.toString())
    const end = merged(trailers, inBody.length === 0 ? headers : new Headers(fieldsOf(inBody.join(''))))
    const error = findTrailerError(end)
    return {
      ...common,
      headers: merged(common.headers, inBody.length === 0 ? new Headers() : end),
      messages: frames.filter(({ flags }) => (flags & 0x80) === 0).map(({ data }) => message(data)),
      ...(error === undefined ? {} : { failure: failureOf(error) }),
    }
  }
  if (/^application\/connect\+/.test(type)) {
    const frames = framesOf(body, headers.get('connect-content-encoding'))
    const end = frames.find(({ flags }) => (flags & 2) !== 0)
    if (end === undefined) throw new Error('the stream has no end')
    const { error } = JSON.parse(end.data.toString()) as { error?: JsonValue }
    return {
      ...common,
      messages: frames.filter((frame) => frame !== end).map(({ data }) => message(data)),
      ...(error === undefined ? {} : { failure: failureOf(errorFrom(error)) }),
    }
  }
  const plain = decompressed(body, headers.get('content-encoding'))
  if (status === 200 && type !== '') return { ...common, messages: [message(plain)] }
  const text = plain.toString()
  if (!text.startsWith('{')) return { ...common, other: text }
  const json = JSON.parse(text) as { code: string }
  // A refusal before any RPC was found has a reason as its code, in upper case.
  if (json.code === json.code.toUpperCase()) return { ...common, other: text }
  return { ...common, failure: failureOf(errorFrom(json)) }
}

function errorFrom(json: JsonValue): ConnectError {
  return errorFromJson(json, undefined, new ConnectError('not an error', Code.DataLoss))
}

function failureOf(error: ConnectError): RpcFailure {
  const [info] = error.findDetails(ErrorInfoSchema)
  const details = error.details.flatMap((detail): JsonValue[] => {
    if (!('value' in detail) || !(detail.value instanceof Uint8Array) || !('type' in detail)) return []
    const schema = detailTypes.getMessage(detail.type)
    if (schema === undefined) throw new Error(`a detail of the unknown type ${detail.type}`)
    if (schema.typeName === ErrorInfoSchema.typeName) return []
    return [{ type: detail.type, value: toJson(schema, fromBinary(schema, detail.value), { registry: detailTypes }) }]
  })
  return {
    code: codeToString(error.code),
    message: error.rawMessage,
    ...(info === undefined ? {} : { reason: info.reason, metadata: info.metadata }),
    details: details.sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
  }
}

interface Frame {
  readonly flags: number
  readonly data: Buffer
}

/** The messages of an enveloped body. */
function framesOf(bytes: Buffer, encoding: string | null): Frame[] {
  const frames: Frame[] = []
  for (let at = 0; at < bytes.length; ) {
    const flags = bytes.readUInt8(at)
    const end = at + 5 + bytes.readUInt32BE(at + 1)
    if (end > bytes.length) throw new Error('the last message is cut off')
    const data = bytes.subarray(at + 5, end)
    frames.push({ flags: flags & ~1, data: (flags & 1) === 1 ? decompressed(data, encoding) : data })
    at = end
  }
  return frames
}

function decompressed(bytes: Buffer, encoding: string | null): Buffer {
  if (encoding === 'gzip') return gunzipSync(bytes)
  if (encoding === 'br') return brotliDecompressSync(bytes)
  return bytes
}

/** Bytes of base64 text that was encoded in pieces, each with its own padding. */
function fromBase64Chunks(body: Buffer): Buffer {
  const pieces = body.toString('latin1').match(/[A-Za-z0-9+/]+={0,2}/g) ?? []
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64')))
}

function fieldsOf(text: string): [string, string][] {
  return text
    .split('\r\n')
    .filter((line) => line !== '')
    .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()])
}

function merged(...all: readonly Headers[]): Headers {
  const headers = new Headers()
  for (const part of all) for (const [name, value] of part) headers.append(name, value)
  return headers
}
