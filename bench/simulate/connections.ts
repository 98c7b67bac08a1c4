import { connect } from 'node:net'
import { Http1Connection } from '../http1.ts'
import { publicUrl } from '../servers.ts'

/** A connection that nobody has used for longer is not used again: the server may be closing it. Milliseconds. */
const idleMs = 5000

/** Connections to one server, which grow in number with the calls that are made at once, as those of a proxy do. */
export class Connections implements Disposable {
  readonly port: number
  readonly #free: { readonly connection: Http1Connection; readonly since: number }[] = []

  constructor(port: number) {
    this.port = port
  }

  /** Posts JSON on a connection that nobody uses. `headers` are whole lines. */
  // biome-ignore lint/suspicious/noExplicitAny: callers look at fields that they name.
  async postJson(path: string, body: string, headers: string): Promise<any> {
    const connection = this.#takeFree() ?? (await Http1Connection.open(this.port))
    try {
      const answer = await connection.post(path, 'application/json', body, headers)
      this.#free.push({ connection, since: performance.now() })
      return JSON.parse(answer.toString())
    } catch (error) {
      connection[Symbol.dispose]()
      throw error
    }
  }

  [Symbol.dispose](): void {
    for (const { connection } of this.#free.splice(0)) connection[Symbol.dispose]()
  }

  #takeFree(): Http1Connection | undefined {
    const last = this.#free.pop()
    if (last === undefined || performance.now() - last.since < idleMs) return last?.connection
    // All others have been idle for longer.
    last.connection[Symbol.dispose]()
    this[Symbol.dispose]()
    return undefined
  }
}

/** A stream of an order's events, on a connection of its own, as a browser has it. */
export class EventStream implements Disposable {
  /** Resolves when the server has ended the stream; never if this side did. */
  readonly ended: Promise<void>
  readonly #socket
  readonly #waiting = new Map<string, () => void>()
  #received = ''

  constructor(port: number, { orderId, desktopToken }: { orderId: string; desktopToken: string }, headers: string) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.setNoDelay(true)
    this.#socket.on('error', () => {})
    this.#socket.on('data', (chunk) => this.#receive(chunk.toString('latin1'), resolve))
    this.#socket.write(
      `GET /api/auth/cross-device/events?orderId=${orderId} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n` +
        `origin: ${publicUrl}\r\nauthorization: Bearer ${desktopToken}\r\n${headers}\r\n`,
    )
  }

  /** Resolves once the order has had this status; rejects if the stream is closed before. */
  async reached(status: string): Promise<void> {
    if (this.#has(status)) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.set(status, resolve)
    const closed = (): void => reject(new Error(`the stream was closed before ${status}: ${this.#received}`))
    this.#socket.once('close', closed)
    await promise
    this.#socket.off('close', closed)
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  #receive(text: string, onEnd: () => void): void {
    this.#received += text
    for (const [status, resolve] of this.#waiting) {
      if (!this.#has(status)) continue
      this.#waiting.delete(status)
      resolve()
    }
    if (this.#received.endsWith('\r\n0\r\n\r\n')) {
      onEnd()
      this.#socket.destroy()
    }
  }

  #has(status: string): boolean {
    return this.#received.includes(`"status":"${status}"`)
  }
}
