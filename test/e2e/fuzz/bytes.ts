import { damaged } from '../../http/generated/messages.ts'
import type { Random } from '../../http/generated/random.ts'
import { bytesOf, type RawRequest } from '../../support/raw-http.ts'
import { frame } from '../../support/raw-http2.ts'

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Types and flags of HTTP/2 frames (RFC 9113, 6). */
const types = { data: 0, headers: 1, settings: 4 } as const
const flags = { endStream: 1, endHeaders: 4 } as const

/** Largest payload of a frame that a server has to take. */
const maxPayload = 16_384

/** Requests on one connection over HTTP/1.1, as they go out. The last one has to close it. */
export function http1Bytes(requests: readonly RawRequest[]): Buffer {
  return Buffer.concat(
    requests.map((request, index) => {
      const headers = request.headers.filter(([name]) => index === requests.length - 1 || name !== 'connection')
      return bytesOf({ ...request, headers })
    }),
  )
}

/** The frames of requests on one connection over HTTP/2, the preface first. */
export function http2Frames(requests: readonly RawRequest[]): Buffer[] {
  return [
    preface,
    frame(types.settings, 0, 0),
    ...requests.flatMap((request, index) => requestFrames(request, 2 * index + 1)),
  ]
}

function requestFrames({ method, target, headers, body }: RawRequest, stream: number): Buffer[] {
  const ofConnection = new Set(['connection', 'host', 'content-length'])
  const host = headers.find(([name]) => name === 'host')?.[1] ?? 'localhost'
  const block = headerBlock([
    [':method', method],
    [':scheme', 'http'],
    [':path', target],
    [':authority', host],
    ...headers.filter(([name]) => !ofConnection.has(name)),
    ['te', 'trailers'],
  ])
  const bodies: Buffer[] = []
  for (let at = 0; at < body.length; at += maxPayload) bodies.push(body.subarray(at, at + maxPayload))
  const end = (isLast: boolean): number => (isLast ? flags.endStream : 0)
  return [
    frame(types.headers, flags.endHeaders | end(bodies.length === 0), stream, block),
    ...bodies.map((part, index) => frame(types.data, end(index === bodies.length - 1), stream, part)),
  ]
}

/** Header fields as HPACK literals that are not indexed (RFC 7541, 6.2.2). */
function headerBlock(fields: readonly (readonly [string, string])[]): Buffer {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value, 'latin1')
    return Buffer.concat([lengthOf(bytes.length), bytes])
  }
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))
}

/** A length as HPACK writes it: seven bits, and the rest in further bytes (RFC 7541, 5.1). */
function lengthOf(length: number): Buffer {
  if (length < 127) return Buffer.from([length])
  const bytes = [127]
  let left = length - 127
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 128)
  return Buffer.from([...bytes, left])
}

/** The bytes of a connection over HTTP/2 after accidents: to its frames, and to what is in them. */
export function damagedFrames(frames: readonly Buffer[], random: Random): Buffer {
  const list = [...frames]
  for (let left = 1 + random.below(3); left > 0; left--) {
    const at = random.below(list.length)
    const one = list[at] ?? Buffer.alloc(0)
    switch (random.below(8)) {
      case 0:
        list.splice(at, 1)
        break
      case 1:
        list.splice(at, 0, one)
        break
      case 2:
        list.splice(at, 0, madeUpFrame(random))
        break
      case 3:
        list.splice(at, 1, ...list.splice(random.below(list.length), 1, one))
        break
      case 4:
        // A head that does not fit.
        if (one.length >= 9) list[at] = Buffer.concat([damagedHead(one.subarray(0, 9), random), one.subarray(9)])
        break
      case 5:
        // A payload that is not what the head says, but has the right length.
        if (one.length >= 9) list[at] = rewritten(one, damaged(one.subarray(9), random))
        break
      default:
        list[at] = damaged(one, random)
    }
  }
  return Buffer.concat(list)
}

function damagedHead(head: Buffer, random: Random): Buffer {
  const copy = Buffer.from(head)
  copy.writeUInt8(random.below(256), random.below(9))
  return copy
}

function rewritten(one: Buffer, payload: Buffer): Buffer {
  return frame(one.readUInt8(3), one.readUInt8(4), one.readUInt32BE(5), payload.subarray(0, maxPayload))
}

function madeUpFrame(random: Random): Buffer {
  const type = random.below(12)
  const stream = random.pick([0, 0, 1, 2, 3, 5, 0x7fffffff])
  const length = random.pick([0, 1, 4, 5, 6, 8, 9, 16, 40, 200])
  return frame(type, random.below(256), stream, random.bytes(length))
}
