import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { ConnectError } from '@connectrpc/connect'
import { endStreamToJson } from '@connectrpc/connect/protocol-connect'
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc'
import { decompressed, encodingOf, type RequestBody } from './body.ts'
import type { Codec, Refusals } from './contract.ts'

/** Form of an RPC's messages, as its content type names it. */
export interface Wire {
  readonly protocol: 'connect' | 'grpc' | 'grpc-web'
  readonly codec: Codec
  /** Whether five bytes (flags, length) precede each message; false for unary calls of Connect. */
  readonly enveloped: boolean
  /** Whether the body is base64 (gRPC-Web's text form). */
  readonly base64: boolean
}

/** A request whose messages are to be read. */
export interface RpcRequest {
  readonly wire: Wire
  readonly headers: IncomingHttpHeaders
  readonly body: RequestBody
  readonly refusals: Refusals
}

const codec = '(?:(json)(?:; ?charset=utf-?8)?|proto)'

/** The content types that connect-node accepts, and the text form of gRPC-Web. */
const contentType = new RegExp(`^application/(?:(connect\\+)?${codec}|(grpc(?:-web(-text)?)?)(?:\\+${codec})?)$`, 'i')

/** Reads a content type; `undefined` if it is none of an RPC's. */
export function wireOf(header: string | undefined): Wire | undefined {
  const match = header === undefined ? null : contentType.exec(header)
  if (match === null) return undefined
  const [, streaming, json, grpc, text, grpcJson] = match
  return {
    protocol: grpc === undefined ? 'connect' : grpc.length === 'grpc'.length ? 'grpc' : 'grpc-web',
    codec: (json ?? grpcJson) === undefined ? 'proto' : 'json',
    enveloped: (grpc ?? streaming) !== undefined,
    base64: text !== undefined,
  }
}

/** Each protocol's names of the same headers. */
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

/** A call's deadline as its header has it. */
export interface Deadline {
  /** Time in ms for which the caller waits; `undefined` without a deadline, or for a malformed one. */
  readonly timeoutMs: number | undefined
  /** The refusal of a malformed one, to be thrown as a part of the call and before any effect. */
  readonly malformed: Error | undefined
}

const noDeadline: Deadline = { timeoutMs: undefined, malformed: undefined }

/** Reads a call's deadline from its Connect-Timeout-Ms or grpc-timeout header. */
export function readDeadline({ wire, headers, refusals }: Omit<RpcRequest, 'body'>): Deadline {
  const name = headersOf(wire).timeout
  const header = headers[name] as string | undefined
  if (header === undefined) return noDeadline
  const [, digits, unit = 'm'] =
    (wire.protocol === 'connect' ? /^(\d{1,10})$/ : /^(\d{1,8})([HMSmun])$/).exec(header) ?? []
  if (digits === undefined) return { timeoutMs: undefined, malformed: refusals.malformedHeader(name) }
  return { timeoutMs: Number(digits) * (grpcUnitMs[unit] as number), malformed: undefined }
}

/**
 * Reads the one message in a request's body: out of its envelope and decompressed, of at most `maxBodyBytes`.
 * Refuses a body that is cut off, broken or has more than one message. A body can be decompressed already as a whole;
 * messages in envelopes are compressed one by one.
 */
export async function readMessage({ wire, headers, body, refusals }: RpcRequest): Promise<Uint8Array> {
  const received = await body.read(maxBytesOnTheWire(wire, refusals.maxBodyBytes))
  const encoding = encodingOf(headers[headersOf(wire).encoding], refusals)
  if (!wire.enveloped) return body.decompressed ? received : decompressed({ bytes: received, encoding, refusals })
  const envelope = wire.base64 ? fromBase64(received, refusals) : received
  const isCompressed = isCompressedEnvelope(envelope, refusals)
  if (isCompressed && encoding === undefined) {
    throw refusals.malformedBody('is marked as compressed without naming the compression')
  }
  const message = envelope.subarray(envelopeBytes)
  return isCompressed ? decompressed({ bytes: message, encoding, refusals }) : message
}

/** Size of the flags and the length before a message. */
const envelopeBytes = 5

/** Largest body that can hold a message of so many bytes. */
function maxBytesOnTheWire({ enveloped, base64 }: Wire, messageBytes: number): number {
  const maxBytes = enveloped ? messageBytes + envelopeBytes : messageBytes
  // Padding may come after each of several pieces.
  return base64 ? Math.ceil((maxBytes * 4) / 3) + 64 : maxBytes
}

function isCompressedEnvelope(bytes: Buffer, { malformedBody, maxBodyBytes, bodyTooLarge }: Refusals): boolean {
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

/** Decodes base64 text; each chunk that a client encoded may have its own padding. */
function fromBase64(body: Buffer, { malformedBody }: Refusals): Buffer {
  const text = body.toString('latin1')
  if (!/^(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)*$/.test(text)) throw malformedBody('is not base64')
  return Buffer.concat((text.match(/[A-Za-z0-9+/]+={0,2}/g) ?? []).map((part) => Buffer.from(part, 'base64')))
}

/** Flags of an envelope, by its content. */
const flags = { message: 0, compressed: 1, endOfConnectStream: 2, trailers: 0x80 } as const

/** The content type of an answer whose messages are in envelopes. */
export function contentTypeOf({ protocol, codec, base64 }: Wire): string {
  return `application/${protocol}${base64 ? '-text' : ''}+${codec}`
}

/** A message in an envelope, as it is sent. */
export function messageEnvelope(wire: Wire, message: string | Uint8Array, isCompressed: boolean): Buffer {
  const bytes = typeof message === 'string' ? Buffer.from(message) : message
  return written(wire, envelope(isCompressed ? flags.compressed : flags.message, bytes))
}

/** The part of an answer after its last message. */
export interface StreamEnding {
  readonly body?: Buffer
  readonly trailers?: OutgoingHttpHeaders
}

/**
 * The end of a call, with or without an error: gRPC has trailers, gRPC-Web has them in a last envelope of the body, and
 * Connect has JSON there.
 *
 * Sources: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md,
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md, https://connectrpc.com/docs/protocol#error-end-stream
 */
export function endingOf(wire: Wire, error: ConnectError | undefined): StreamEnding {
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
  if (error === undefined) return succeeded
  const trailers = Object.fromEntries(setTrailerStatus(new Headers(), error))
  return { ...trailers, 'grpc-message': percentEncoded(error.rawMessage) }
}

/**
 * A message in a trailer: visible ASCII and spaces stay, but for `%` ("Percent-Byte-Unencoded" of gRPC's protocol).
 * Connect encodes more, which @grpc/grpc-js shows to people as it came.
 */
function percentEncoded(message: string): string {
  return message.replace(/[^ -$&-~]+/g, encodeURIComponent)
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
