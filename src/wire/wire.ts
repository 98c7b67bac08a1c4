import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { ConnectError } from '@connectrpc/connect'
import { endStreamToJson } from '@connectrpc/connect/protocol-connect'
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc'
import type { Protocol } from '../rpc/methods.ts'
import type { Codec } from '../rpc/read-input.ts'
import { CountersignError } from '../shared/errors.ts'
import { bodyTooLarge, malformedBody, maxBodyBytes, type RequestBody } from './body.ts'
import { decompressed, encodingOf } from './compression.ts'

/** How an RPC's content type says that its messages are written. */
export interface Wire {
  readonly protocol: Extract<Protocol, 'connect' | 'grpc' | 'grpc-web'>
  readonly codec: Codec
  /** Whether each message has five bytes in front of it (flags, length); false for unary calls of Connect. */
  readonly enveloped: boolean
  /** Whether the body is base64 (gRPC-Web's text form). */
  readonly base64: boolean
}

/** The content types that connect-node takes, and the text form of gRPC-Web. */
const contentType =
  /^application\/(?:(connect\+)?(?:(json)(?:; ?charset=utf-?8)?|proto)|(grpc(?:-web(-text)?)?)(?:\+(?:(json)(?:; ?charset=utf-?8)?|proto))?)$/i

/** Reads a content type; `undefined` if no RPC is spoken in it. */
export function wireOf(header: string | undefined): Wire | undefined {
  const match = header === undefined ? null : contentType.exec(header)
  if (match === null) return undefined
  const [, streaming, json, grpc, text, grpcJson] = match
  if (grpc === undefined) {
    return {
      protocol: 'connect',
      codec: json === undefined ? 'proto' : 'json',
      enveloped: streaming !== undefined,
      base64: false,
    }
  }
  return {
    protocol: grpc.length === 'grpc'.length ? 'grpc' : 'grpc-web',
    codec: grpcJson === undefined ? 'proto' : 'json',
    enveloped: true,
    base64: text !== undefined,
  }
}

/** The names of the headers that a protocol has for the same things. */
const headerNames = {
  connect: { timeout: 'connect-timeout-ms', encoding: 'content-encoding', accept: 'accept-encoding' },
  'connect stream': {
    timeout: 'connect-timeout-ms',
    encoding: 'connect-content-encoding',
    accept: 'connect-accept-encoding',
  },
  grpc: { timeout: 'grpc-timeout', encoding: 'grpc-encoding', accept: 'grpc-accept-encoding' },
} as const

/** The names of the headers in which a call's deadline and compression come. */
export function headersOf({ protocol, enveloped }: Wire): (typeof headerNames)[keyof typeof headerNames] {
  if (protocol !== 'connect') return headerNames.grpc
  return enveloped ? headerNames['connect stream'] : headerNames.connect
}

const grpcUnitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 }

/** A call's deadline as its header says it. */
export interface Deadline {
  /** Time in milliseconds for which the caller waits; `undefined` if it set no deadline, or a malformed one. */
  readonly timeoutMs: number | undefined
  /** The refusal of a malformed one, to be thrown as a part of the call and before anything is done. */
  readonly malformed: CountersignError | undefined
}

const noDeadline: Deadline = { timeoutMs: undefined, malformed: undefined }

/** Reads a call's deadline from the value of its Connect-Timeout-Ms or grpc-timeout header. */
export function readDeadline(wire: Wire, header: string | undefined): Deadline {
  if (header === undefined) return noDeadline
  const [, digits, unit = 'm'] =
    (wire.protocol === 'connect' ? /^(\d{1,10})$/ : /^(\d{1,8})([HMSmun])$/).exec(header) ?? []
  if (digits !== undefined) return { timeoutMs: Number(digits) * (grpcUnitMs[unit] as number), malformed: undefined }
  const name = headersOf(wire).timeout
  const malformed = new CountersignError('INVALID_REQUEST', `The header ${name} is malformed`, {
    metadata: { header: name },
  })
  return { timeoutMs: undefined, malformed }
}

/**
 * The bytes of the one message in a request's body: out of its envelope and decompressed, of at most {@link
 * maxBodyBytes}. INVALID_REQUEST for a body that is cut off, broken or has more than one message. With
 * `isDecompressed`, the body as a whole is decompressed already; messages in envelopes are compressed one by one.
 */
export function inputBytes(
  wire: Wire,
  headers: IncomingHttpHeaders,
  body: Buffer,
  isDecompressed: boolean,
): Uint8Array | Promise<Uint8Array> {
  const encoding = encodingOf(headers, headersOf(wire).encoding)
  if (!wire.enveloped) return isDecompressed ? body : decompressed(encoding, body)
  return messageIn(wire.base64 ? fromBase64(body) : body, encoding)
}

/**
 * The bytes of each message in a request's body, as they come, all together of at most {@link maxBodyBytes}. Ends with
 * the body, and when the signal aborts. INVALID_REQUEST for a body that is broken. Base64 is read as a whole, because a
 * chunk of it can end anywhere.
 */
export async function* inputStream(
  wire: Wire,
  headers: IncomingHttpHeaders,
  body: RequestBody,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoding = encodingOf(headers, headersOf(wire).encoding)
  const maxBytes = maxBytesOnTheWire(wire)
  const chunks = wire.base64 ? [fromBase64(await body.read(maxBytes))] : body.chunks(maxBytes, signal)
  let arrived: Buffer = Buffer.alloc(0)
  for await (const chunk of chunks) {
    arrived = Buffer.concat([arrived, chunk])
    for (let end = endOfEnvelope(arrived); end <= arrived.length; end = endOfEnvelope(arrived)) {
      yield await messageIn(arrived.subarray(0, end), encoding)
      arrived = arrived.subarray(end)
    }
  }
  if (arrived.length > 0 && !signal.aborted) throw malformedBody('ends before its message')
}

/** Where the first envelope of several ends, bytes; infinite while that has not arrived. */
function endOfEnvelope(bytes: Buffer): number {
  return bytes.length < envelopeBytes ? Number.POSITIVE_INFINITY : envelopeBytes + bytes.readUInt32BE(1)
}

/** The message in the one envelope that the bytes are, decompressed. */
function messageIn(bytes: Buffer, encoding: ReturnType<typeof encodingOf>): Uint8Array | Promise<Uint8Array> {
  const compressed = isCompressedEnvelope(bytes)
  if (compressed && encoding === undefined)
    throw malformedBody('is marked as compressed without naming the compression')
  return decompressed(compressed ? encoding : undefined, bytes.subarray(envelopeBytes))
}

/** Flags and length in front of a message. */
const envelopeBytes = 5

/** Largest body that can hold a message of {@link maxBodyBytes}, bytes. */
export function maxBytesOnTheWire({ enveloped, base64 }: Wire): number {
  const maxBytes = enveloped ? maxBodyBytes + envelopeBytes : maxBodyBytes
  // Padding may come after each of several pieces.
  return base64 ? Math.ceil((maxBytes * 4) / 3) + 64 : maxBytes
}

function isCompressedEnvelope(bytes: Buffer): boolean {
  if (bytes.length === 0) throw malformedBody('has no message')
  if (bytes.length < envelopeBytes) throw malformedBody('ends before its message')
  const flag = bytes.readUInt8(0)
  const length = bytes.readUInt32BE(1)
  if (length > maxBodyBytes) throw bodyTooLarge()
  if (bytes.length - envelopeBytes < length) throw malformedBody('ends before its message')
  if (bytes.length - envelopeBytes > length) throw malformedBody('has more than one message')
  if ((flag & ~flags.compressed) !== 0) throw malformedBody('has unknown flags')
  return flag === flags.compressed
}

/** Base64 text, in which every chunk that a client encoded may have a padding of its own. */
function fromBase64(body: Buffer): Buffer {
  const text = body.toString('latin1')
  if (!/^(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)*$/.test(text)) throw malformedBody('is not base64')
  return Buffer.concat((text.match(/[A-Za-z0-9+/]+={0,2}/g) ?? []).map((part) => Buffer.from(part, 'base64')))
}

/** Flags of an envelope, by what is in it. */
const flags = { message: 0, compressed: 1, endOfConnectStream: 2, trailers: 0x80 } as const

/** The content type of an answer whose messages are in envelopes. */
export function contentTypeOf({ protocol, codec, base64 }: Wire): string {
  return `application/${protocol}${base64 ? '-text' : ''}+${codec}`
}

/** A message as it is sent. */
export function messageEnvelope(wire: Wire, message: string | Uint8Array, isCompressed: boolean): Buffer {
  const bytes = typeof message === 'string' ? Buffer.from(message) : message
  return written(wire, envelope(isCompressed ? flags.compressed : flags.message, bytes))
}

/** What follows the last message. */
export interface Ending {
  readonly body?: Buffer
  readonly trailers?: OutgoingHttpHeaders
}

/**
 * How the end of a call is said: gRPC has trailers, gRPC-Web has them in a last envelope of the body, and Connect has
 * JSON there.
 *
 * Sources: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md,
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md, https://connectrpc.com/docs/protocol#error-end-stream
 */
export function endingOf(wire: Wire, error: ConnectError | undefined): Ending {
  switch (wire.protocol) {
    case 'grpc':
      return { trailers: statusOf(error) }
    case 'grpc-web': {
      const lines = Object.entries(statusOf(error)).map(([name, value]) => `${name}: ${value}\r\n`)
      return { body: written(wire, envelope(flags.trailers, Buffer.from(lines.join('')))) }
    }
    case 'connect': {
      const json = JSON.stringify(endStreamToJson(new Headers(), error, undefined))
      return { body: envelope(flags.endOfConnectStream, Buffer.from(json)) }
    }
  }
}

const succeeded = { 'grpc-status': '0' } as const

function statusOf(error: ConnectError | undefined): OutgoingHttpHeaders {
  return error === undefined ? succeeded : Object.fromEntries(setTrailerStatus(new Headers(), error))
}

function envelope(flag: number, bytes: Uint8Array): Buffer {
  const made = Buffer.allocUnsafe(envelopeBytes + bytes.length)
  made[0] = flag
  made.writeUInt32BE(bytes.length, 1)
  made.set(bytes, envelopeBytes)
  return made
}

function written({ base64 }: Wire, bytes: Buffer): Buffer {
  return base64 ? Buffer.from(bytes.toString('base64')) : bytes
}
