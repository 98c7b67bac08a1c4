import http2 from 'node:http2'
import type { Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { RawAnswer, RawRequest } from './raw-http.ts'

/** An HTTP/2 frame (RFC 9113, 4.1). */
export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** The frames that come over a connection. */
export class Http2Frames {
  #received = Buffer.alloc(0)

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
    })
  }

  /** Those of a type, in the order in which they came. */
  ofType(wanted: number): { stream: number; flags: number; payload: Buffer }[] {
    const frames = []
    for (let at = 0; at + 9 <= this.#received.length; ) {
      const end = at + 9 + this.#received.readUIntBE(at, 3)
      const [stream, flags] = [this.#received.readUInt32BE(at + 5), this.#received.readUInt8(at + 4)]
      const payload = this.#received.subarray(at + 9, end)
      if (this.#received.readUInt8(at + 3) === wanted && end <= this.#received.length)
        frames.push({ stream, flags, payload })
      at = end
    }
    return frames
  }
}

/** Sends requests over one HTTP/2 connection, as gRPC clients do. */
export function http2Sender(url: string): (request: RawRequest) => Promise<RawAnswer> {
  const session = http2.connect(url)
  onTestFinished(() => session.close())
  return ({ method, target, headers, body }) =>
    new Promise((resolve, reject) => {
      const ofConnection = new Set(['connection', 'host'])
      const host = headers.find(([name]) => name === 'host')?.[1]
      const stream = session.request(
        {
          ...Object.fromEntries(headers.filter(([name]) => !ofConnection.has(name))),
          ':method': method,
          ':path': target,
          ...(host === undefined ? {} : { ':authority': host }),
          te: 'trailers',
        },
        { endStream: body.length === 0 && method !== 'POST' },
      )
      const chunks: Buffer[] = []
      let head = new Headers()
      let trailers = new Headers()
      stream.on('response', (received) => {
        head = webHeaders(received)
      })
      stream.on('trailers', (received) => {
        trailers = webHeaders(received)
      })
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', reject)
      stream.on('end', () => {
        const status = Number(head.get('x-status'))
        head.delete('x-status')
        resolve({ status, headers: head, trailers, body: Buffer.concat(chunks) })
      })
      if (!stream.writableEnded) stream.end(body)
    })
}

function webHeaders(received: http2.IncomingHttpHeaders): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(received)) {
    for (const one of [value ?? []].flat()) headers.append(name.replace(':', 'x-'), one)
  }
  return headers
}
