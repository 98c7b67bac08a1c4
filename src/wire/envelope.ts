import type { OutgoingHttpHeaders } from 'node:http'
import type { ConnectError } from '@connectrpc/connect'
import { endStreamToJson } from '@connectrpc/connect/protocol-connect'
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc'
import { envelopeBytes, type Wire } from './wire.ts'

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
