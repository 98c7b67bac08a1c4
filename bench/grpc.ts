import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from 'node:http2'
import { type DescMessage, type DescMethod, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { publicUrl } from './servers.ts'

/** A gRPC connection on bare node:http2, so that the load costs little CPU time. */
export class GrpcConnection implements Disposable {
  readonly #session: ClientHttp2Session

  constructor(port: number) {
    this.#session = connect(`http://127.0.0.1:${port}`)
    // A broken connection rejects its calls.
    this.#session.on('error', () => {})
  }

  /** Makes a unary call; rejects unless it succeeds. `message` is encoded already, and so is the answer. */
  async call(path: string, message: Uint8Array, headers?: OutgoingHttpHeaders): Promise<Buffer> {
    const stream = this.#open(path, message, headers)
    return await new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let status: unknown
      stream.on('response', (headers) => {
        status = headers['grpc-status']
      })
      stream.on('trailers', (trailers) => {
        status = trailers['grpc-status'] ?? status
      })
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        if (status === '0') resolve(Buffer.concat(chunks).subarray(5))
        else reject(new Error(`gRPC status ${status}`))
      })
      stream.on('error', reject)
    })
  }

  /** Makes a call that is answered with a stream; `onMessage` is called as soon as a message is there. */
  watch<Output extends DescMessage>(
    method: DescMethod & { readonly output: Output },
    message: Uint8Array,
    onMessage: (message: MessageShape<Output>) => void,
  ): void {
    const stream = this.#open(pathOf(method), message)
    let received: Buffer = Buffer.alloc(0)
    stream.on('error', () => {})
    stream.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      while (received.length >= 5 && received.length >= 5 + received.readUInt32BE(1)) {
        const end = 5 + received.readUInt32BE(1)
        onMessage(fromBinary(method.output, received.subarray(5, end)))
        received = received.subarray(end)
      }
    })
  }

  /** Opens a stream and resolves when the first bytes are there; `onEnd` is called when the server has ended it. */
  async stream(path: string, message: Uint8Array, onEnd: () => void): Promise<void> {
    const stream = this.#open(path, message)
    await new Promise<void>((resolve, reject) => {
      stream.on('error', reject)
      stream.once('data', () => {
        stream.once('end', onEnd)
        stream.resume()
        resolve()
      })
      stream.on('trailers', (trailers) => reject(new Error(`gRPC status ${trailers['grpc-status']}`)))
    })
  }

  [Symbol.dispose](): void {
    this.#session.destroy()
  }

  #open(path: string, message: Uint8Array, headers?: OutgoingHttpHeaders): ClientHttp2Stream {
    const stream = this.#session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc+proto',
      te: 'trailers',
      origin: publicUrl,
      ...headers,
    })
    stream.end(enveloped(message))
    return stream
  }
}

/** Streams on one connection: fewer than a server allows at a time. */
const streamsPerConnection = 100

/** Opens as many connections as numbered streams need, each with its first stream. */
export function sharedConnections(port: number, open: DisposableStack): (index: number) => GrpcConnection {
  const connections: GrpcConnection[] = []
  return (index) => {
    const number = Math.floor(index / streamsPerConnection)
    connections[number] ??= open.use(new GrpcConnection(port))
    return connections[number]
  }
}

/** The path of an RPC, in gRPC and Connect alike. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`
}

/** A message as gRPC and Connect streams frame it: no flags, four bytes of length, the message. */
export function enveloped(message: Uint8Array): Uint8Array {
  const frame = Buffer.alloc(5 + message.length)
  frame.writeUInt32BE(message.length, 1)
  frame.set(message, 5)
  return frame
}
