import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { create, type DescMethod, type MessageInitShape, toJsonString } from '@bufbuild/protobuf'
import { pathOf } from './grpc.ts'
import { publicUrl } from './servers.ts'

/**
 * An HTTP/1.1 connection that costs the measuring process as little as it can: it is kept alive, carries one request at
 * a time, and understands the answers of the servers measured here and no others.
 */
export class Http1Connection implements Disposable {
  readonly #socket: Socket
  readonly #host: string
  readonly #origin: string
  #received: Buffer = Buffer.alloc(0)
  #waiting: PromiseWithResolvers<Buffer> | undefined
  #onEvents: ((text: string) => void) | undefined

  private constructor(socket: Socket, port: number, isPage = true) {
    this.#socket = socket
    this.#host = `127.0.0.1:${port}`
    this.#origin = isPage ? `origin: ${publicUrl}\r\n` : ''
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', () => {})
    socket.on('close', () => this.#waiting?.reject(new Error('the server closed the connection')))
  }

  static async open(port: number): Promise<Http1Connection> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new Http1Connection(socket, port)
  }

  /**
   * Returns a connection that is still being opened. What is sent on it waits for that. `isPage`: whether it is a page's,
   * with the origin of the service.
   */
  static opening(port: number, isPage?: boolean): Http1Connection {
    return new Http1Connection(connect(port, '127.0.0.1'), port, isPage)
  }

  /** Posts a body and returns that of the answer; rejects unless that is a 200. */
  async post(path: string, contentType: string, body: string | Uint8Array, headers = ''): Promise<Buffer> {
    if (this.#socket.destroyed) throw new Error('the server closed the connection before')
    const waiting = this.#expectAnswer()
    const length = `content-length: ${Buffer.byteLength(body)}\r\n`
    const head = this.#head(`POST ${path}`, `content-type: ${contentType}\r\n${length}${headers}`)
    this.#socket.write(typeof body === 'string' ? head + body : Buffer.concat([Buffer.from(head), body]))
    return await waiting
  }

  /** Gets a path and returns the body of the answer; rejects unless that is a 200. `headers` are whole lines. */
  async get(path: string, headers = ''): Promise<Buffer> {
    if (this.#socket.destroyed) throw new Error('the server closed the connection before')
    const waiting = this.#expectAnswer()
    this.#socket.write(this.#head(`GET ${path}`, headers))
    return await waiting
  }

  /** Posts JSON and reads JSON. `headers` are whole lines. */
  // biome-ignore lint/suspicious/noExplicitAny: callers look at fields that they name.
  async postJson(path: string, body: object, headers = ''): Promise<any> {
    return JSON.parse((await this.post(path, 'application/json', JSON.stringify(body), headers)).toString())
  }

  /** Gets server-sent events and resolves when they end; `onEvents` is called with what comes, which may be several. */
  async events(path: string, headers: string, onEvents: (text: string) => void): Promise<void> {
    const waiting = this.#expectAnswer()
    this.#onEvents = onEvents
    this.#socket.write(this.#head(`GET ${path}`, headers))
    await waiting
  }

  [Symbol.dispose](): void {
    this.#waiting = undefined
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  /** `headers` are whole lines. */
  #head(start: string, headers: string): string {
    return `${start} HTTP/1.1\r\nhost: ${this.#host}\r\n${this.#origin}${headers}\r\n`
  }

  #expectAnswer(): Promise<Buffer> {
    this.#waiting = Promise.withResolvers()
    return this.#waiting.promise
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const text = this.#onEvents === undefined ? '' : this.#received.toString('latin1')
    // Not the head alone: an event has come.
    if (text.startsWith('HTTP/1.1 200') && text.includes('\n\n')) this.#onEvents?.(text)
    const answer = readAnswer(this.#received)
    if (answer === undefined) return
    this.#received = Buffer.alloc(0)
    if (answer.status === 200) this.#waiting?.resolve(answer.body)
    else this.#waiting?.reject(new Error(`${answer.status} ${answer.body}`))
  }
}

/**
 * A connection for each of several workers, opened when it is asked for first: a server closes one on which nothing comes for
 * long.
 */
export class Http1Pool implements Disposable {
  readonly #port: number
  readonly #isPage: boolean
  readonly #connections: Http1Connection[] = []

  constructor(port: number, { isPage = true } = {}) {
    this.#port = port
    this.#isPage = isPage
  }

  of(worker: number): Http1Connection {
    this.#connections[worker] ??= Http1Connection.opening(this.#port, this.#isPage)
    return this.#connections[worker]
  }

  [Symbol.dispose](): void {
    for (const connection of this.#connections) connection?.[Symbol.dispose]()
  }
}

/** Reads an answer; `undefined` while there is more of it to come. */
function readAnswer(bytes: Buffer): { status: number; body: Buffer } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = bytes.toString('latin1', 0, headEnd)
  const status = Number(head.slice(9, 12))
  const body = bytes.subarray(headEnd + 4)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length !== undefined) return body.length < Number(length) ? undefined : { status, body }
  return body.subarray(-5).equals(lastChunk) ? { status, body: joinChunks(body) } : undefined
}

const lastChunk = Buffer.from('0\r\n\r\n')

function joinChunks(body: Buffer): Buffer {
  const chunks: Buffer[] = []
  for (let start = 0; ; ) {
    const sizeEnd = body.indexOf('\r\n', start)
    const size = Number.parseInt(body.toString('latin1', start, sizeEnd), 16)
    if (size === 0) return Buffer.concat(chunks)
    chunks.push(body.subarray(sizeEnd + 2, sizeEnd + 2 + size))
    start = sizeEnd + 2 + size + 2
  }
}

/** Makes a unary call over Connect JSON. */
export async function rpc<Method extends DescMethod>(
  connection: Http1Connection,
  method: Method,
  message: MessageInitShape<Method['input']>,
  // biome-ignore lint/suspicious/noExplicitAny: callers look at fields that they name.
): Promise<any> {
  return JSON.parse((await connection.post(pathOf(method), 'application/json', jsonOf(method, message))).toString())
}

/** A request's message as JSON. */
export function jsonOf<Method extends DescMethod>(method: Method, message: MessageInitShape<Method['input']>): string {
  return toJsonString(method.input, create(method.input, message))
}
