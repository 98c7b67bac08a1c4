import http, { type ServerResponse, STATUS_CODES } from 'node:http'
import http2, { type Http2Stream, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { ErrorReason } from '../errors.ts'
import type { NodeRequest, NodeResponse } from './node-request.ts'

/** How long a connection may take for what, milliseconds. */
interface ConnectionTimeouts {
  /** From the connection's start to bytes that tell its protocol; with HTTP/2, to the end of the client's preface. */
  readonly openingMs: number
  /** For the headers of an HTTP/1.1 request; at most `requestMs`. Answered with 408, up to a third later. */
  readonly headersMs: number
  /** For a whole request, its body included. HTTP/1.1 answers with 408, HTTP/2 cancels the stream. */
  readonly requestMs: number
  /** Between two requests of an HTTP/1.1 connection. More than the 60 s after which usual load balancers let go first. */
  readonly keepAliveMs: number
  /**
   * While nothing moves in either direction: an HTTP/2 connection without requests, a client that does not read its answer.
   * A server stream lives as long as it sends something, such as a heartbeat every 15 s, more often than this.
   */
  readonly idleMs: number
  /** From the last bytes to a client that was turned away, so that it can read them, to the end of its connection. */
  readonly lingerMs: number
}

const defaultTimeouts: ConnectionTimeouts = {
  openingMs: 10_000,
  headersMs: 15_000,
  requestMs: 30_000,
  keepAliveMs: 65_000,
  idleMs: 120_000,
  lingerMs: 2_000,
}

/**
 * Largest headers of a request, bytes. HTTP/1.1 answers larger ones with 431, HTTP/2 resets the stream; from a client that has
 * not acknowledged the server's settings yet, nghttp2 takes up to 64 KiB.
 */
const maxHeaderBytes = 16 * 1024

/** Most requests at once on one connection: HTTP/2 streams, refused beyond, or pipelined HTTP/1.1 requests, cut off. */
export const maxConcurrentRequests: number = 250

/**
 * What one HTTP/2 connection may do wrong before it is closed. Streams that the client resets (CVE-2023-44487, "rapid reset")
 * cost work that the limit of concurrent ones does not count: 200 at once and 50 a second leave room for a proxy whose users
 * go away, and little for a flood. Unread answers to PING and SETTINGS are bounded by nghttp2 itself, at 1000.
 */
const http2Tolerance = {
  streamResetBurst: 200,
  streamResetRate: 50,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
}

/** When the first probe goes out to a peer that has been silent, milliseconds: peers that vanished are found out. */
const tcpKeepAliveDelayMs = 60_000

/** Connections that may wait to be accepted, as far as the system allows. */
const backlog = 4096

/** How often a free port is looked for that is free on both loopback addresses. */
const maxPortAttempts = 10

/** What every HTTP/2 connection begins with, and no HTTP/1.1 request does: the method of the client preface (RFC 9113, 3.4). */
const http2Start = Buffer.from('PRI')

/** A port that cannot be listened on. The message is one line for the operator: what is wrong and what to change. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
}

/**
 * One port for HTTP/1.1 and, with prior knowledge, HTTP/2, both without TLS, in front of one handler. Each connection's first
 * bytes decide which of the two it is.
 *
 * It bounds what clients can hold: time, headers, requests at once; the size of bodies is the handler's to limit. Bytes that
 * are no HTTP are answered with 400 where the protocol has an answer, and the connection is closed. The handler must not throw.
 */
export class OnePortServer {
  readonly #handler: (request: NodeRequest, response: NodeResponse) => void
  readonly #timeouts: ConnectionTimeouts
  /** Serves the connections that it is handed; it never listens itself. */
  readonly #http2: http2.Http2Server
  /** One for each address. */
  readonly #http1: http.Server[] = []
  readonly #sockets = new Set<Socket>()
  /** Connections that have not said yet which protocol they speak. */
  readonly #undecided = new Set<Socket>()
  readonly #sessions = new Map<Socket, ServerHttp2Session>()
  /** Unfinished responses of each HTTP/1.1 connection, in the order of their requests. */
  readonly #unanswered = new Map<Socket, Set<ServerResponse>>()
  /** HTTP/1.1 connections that close after their last response; they get no new request through. */
  readonly #ending = new WeakSet<Socket>()
  /** Bytes that an HTTP/1.1 connection had sent when its last response was complete: while it is at that, it is idle. */
  readonly #restedAt = new WeakMap<Socket, number>()
  #reaper: NodeJS.Timeout | undefined
  #closed: Promise<void> | undefined

  constructor(
    handler: (request: NodeRequest, response: NodeResponse) => void,
    timeouts: Partial<ConnectionTimeouts> = {},
  ) {
    this.#handler = handler
    this.#timeouts = { ...defaultTimeouts, ...timeouts }
    this.#http2 = this.#createHttp2Server()
  }

  /**
   * Starts to listen. `port` 0 takes a free one. `host` is an address or name of this machine; `localhost` stands for both
   * 127.0.0.1 and, where the machine has it, ::1, because browsers try either. Resolves with the port in use; rejects with a
   * {@link ListenError}.
   */
  async listen(port: number, host: string): Promise<{ port: number; host: string }> {
    const servers = await this.#bind(port, host)
    const [first] = servers
    if (this.#closed !== undefined) {
      for (const server of servers) server.close()
      throw new ListenError('the server has been closed')
    }
    this.#http1.push(...servers)
    this.#reaper ??= setInterval(() => this.#reapHttp2(), this.#timeouts.lingerMs).unref()
    return { port: portOf(first), host }
  }

  /**
   * Stops accepting, closes idle connections, and lets requests in flight finish; HTTP/1.1 responses then carry
   * `connection: close`, HTTP/2 clients get a GOAWAY. After `graceMs` milliseconds the rest is cut off. Resolves when no
   * connection is left. Called again, it waits for the same end.
   */
  close(graceMs: number = 10_000): Promise<void> {
    this.#closed ??= this.#close(graceMs)
    return this.#closed
  }

  async #close(graceMs: number): Promise<void> {
    const stopped = this.#http1.map((server) => new Promise<void>((resolve) => server.close(() => resolve())))
    for (const socket of this.#undecided) socket.destroy()
    for (const socket of this.#unanswered.keys()) this.#endWhenAnswered(socket)
    for (const session of this.#sessions.values()) session.close()
    const cutOff = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, graceMs)
    await Promise.all(stopped)
    clearTimeout(cutOff)
    clearInterval(this.#reaper)
  }

  async #bind(port: number, host: string): Promise<[http.Server, ...http.Server[]]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return host === 'localhost' ? await this.#bindLoopback(port) : [await this.#bindOne(port, host)]
      } catch (error) {
        // A port that is free on 127.0.0.1 can be taken on ::1.
        if (port !== 0 || errorCode(error) !== 'EADDRINUSE' || attempt === maxPortAttempts) {
          throw toListenError(error, port, host)
        }
      }
    }
  }

  async #bindLoopback(port: number): Promise<[http.Server, ...http.Server[]]> {
    const ipv4 = await this.#bindOne(port, '127.0.0.1')
    try {
      return [ipv4, await this.#bindOne(portOf(ipv4), '::1')]
    } catch (error) {
      // A machine without IPv6.
      if (/^(EADDRNOTAVAIL|EAFNOSUPPORT)$/.test(errorCode(error) ?? '')) return [ipv4]
      ipv4.close()
      throw error
    }
  }

  async #bindOne(port: number, address: string): Promise<http.Server> {
    const server = this.#createHttp1Server()
    await listening(server, port, address)
    return server
  }

  #createHttp1Server(): http.Server {
    const { headersMs, requestMs, keepAliveMs, idleMs } = this.#timeouts
    const server = http.createServer({
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.ceil(headersMs / 3),
      keepAliveTimeout: keepAliveMs,
      keepAlive: true,
      keepAliveInitialDelay: tcpKeepAliveDelayMs,
      noDelay: true,
    })
    server.timeout = idleMs
    // close() calls it. node's own also cuts off responses that are written but not yet sent.
    server.closeIdleConnections = () => this.#closeIdleHttp1()
    const serveHttp1 = server.listeners('connection') as ((socket: Socket) => void)[]
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      this.#accept(socket, () => {
        for (const listener of serveHttp1) listener.call(server, socket)
      })
    })
    server.on('request', (request, response) => this.#serveHttp1(request, response))
    server.on('clientError', (error, socket) => this.#refuseHttp1(error, socket as Socket))
    server.on('connect', ({ socket }) => {
      // An answer would overtake those to earlier requests.
      if (this.#unanswered.has(socket)) socket.destroy()
      else this.#answerAndEnd(socket, 400, 'CONNECT is for proxies, which this is not')
    })
    return server
  }

  #createHttp2Server(): http2.Http2Server {
    const server = http2.createServer({
      ...http2Tolerance,
      settings: { maxConcurrentStreams: maxConcurrentRequests, maxHeaderListSize: maxHeaderBytes },
    })
    server.on('stream', (stream) => this.#limitBodyTime(stream))
    server.on('request', this.#handler)
    return server
  }

  /** Looks at a connection's first bytes, puts them back, and hands it to the server of its protocol. */
  #accept(socket: Socket, serveHttp1: () => void): void {
    const opening = setTimeout(() => socket.destroy(), this.#timeouts.openingMs)
    this.#sockets.add(socket)
    this.#undecided.add(socket)
    // Whoever else listens or not: a connection that breaks is no reason to end the process.
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(opening)
      this.#sockets.delete(socket)
      this.#undecided.delete(socket)
      // Responses that wait behind another do not hear of the connection's end.
      this.#unanswered.delete(socket)
      this.#sessions.delete(socket)
    })
    let head = Buffer.alloc(0)
    const look = (): void => {
      for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
        head = Buffer.concat([head, chunk])
      }
      const start = head.subarray(0, http2Start.length)
      const mayBeHttp2 = start.equals(http2Start.subarray(0, start.length))
      if (mayBeHttp2 && start.length < http2Start.length) return
      socket.off('readable', look)
      socket.off('end', giveUp)
      this.#undecided.delete(socket)
      socket.unshift(head)
      if (mayBeHttp2) {
        this.#openHttp2(socket, opening)
      } else {
        clearTimeout(opening)
        serveHttp1()
      }
    }
    const giveUp = (): void => {
      socket.destroy()
    }
    socket.on('readable', look)
    socket.on('end', giveUp)
  }

  #openHttp2(socket: Socket, opening: NodeJS.Timeout): void {
    this.#http2.once('session', (session) => {
      this.#sessions.set(socket, session)
      session.once('remoteSettings', () => clearTimeout(opening))
      session.setTimeout(this.#timeouts.idleMs, () => {
        session.close()
        // What is still open has not moved either.
        session.destroy()
      })
    })
    // http.Server's sockets stay open for writing after the client's end, which an HTTP/2 session does not look after.
    socket.allowHalfOpen = false
    this.#http2.emit('connection', socket)
  }

  /** node:http2 has no time limit for bodies. */
  #limitBodyTime(stream: Http2Stream): void {
    if (stream.endAfterHeaders) return
    const timer = setTimeout(() => {
      if (stream.state.remoteClose !== 1) stream.close(http2.constants.NGHTTP2_CANCEL)
    }, this.#timeouts.requestMs)
    stream.once('close', () => clearTimeout(timer))
  }

  /** A session that has ended waits for its client to read the rest and close too; some never do. */
  #reapHttp2(): void {
    for (const [socket, session] of this.#sessions) {
      if (!session.destroyed) continue
      this.#sessions.delete(socket)
      this.#destroyLater(socket)
    }
  }

  #serveHttp1(request: http.IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    // The client has been told, or is about to be, that nothing more is served here.
    if (this.#ending.has(socket) || socket.writableEnded) return
    const unanswered = this.#unanswered.get(socket) ?? new Set()
    this.#unanswered.set(socket, unanswered.add(response))
    if (unanswered.size > maxConcurrentRequests) {
      socket.destroy()
      return
    }
    response.once('close', () => {
      unanswered.delete(response)
      if (unanswered.size > 0) return
      this.#unanswered.delete(socket)
      this.#restedAt.set(socket, socket.bytesRead)
      if (this.#ending.has(socket)) socket.destroySoon()
    })
    if (this.#closed !== undefined) this.#endWhenAnswered(socket)
    this.#handler(request, response)
  }

  #closeIdleHttp1(): void {
    for (const socket of this.#sockets) {
      if (!this.#unanswered.has(socket) && this.#restedAt.get(socket) === socket.bytesRead) socket.destroy()
    }
  }

  /** Closes an HTTP/1.1 connection once the requests that it has made are answered. */
  #endWhenAnswered(socket: Socket): void {
    this.#ending.add(socket)
    const last = [...(this.#unanswered.get(socket) ?? [])].at(-1)
    if (last?.headersSent === false) last.setHeader('connection', 'close')
  }

  /** Answers bytes that node cannot make a request of, or a request that does not arrive in time. */
  #refuseHttp1(error: Error, socket: Socket): void {
    if (!socket.writable) return
    const unanswered = [...(this.#unanswered.get(socket) ?? [])]
    const last = unanswered.at(-1)
    if (last?.req.complete === true) {
      this.#endWhenAnswered(socket)
      return
    }
    // An answer now would be taken for, or land in the middle of, another.
    if (unanswered.length > 1 || last?.headersSent === true) {
      socket.destroy()
      return
    }
    const [status, message] = refusals[errorCode(error) ?? ''] ?? [
      400,
      'The bytes received are not an HTTP/1.1 request',
    ]
    this.#answerAndEnd(socket, status, message)
    // The handler, which waits for the rest of the body, learns that there is none.
    if (last !== undefined) socket.destroySoon()
  }

  /** Answers without a request and a handler. What the client goes on to send is read and dropped while it can read that. */
  #answerAndEnd(socket: Socket, status: number, message: string): void {
    const body = JSON.stringify({ code: 'INVALID_REQUEST' satisfies ErrorReason, message })
    const headers = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
      'cache-control: no-store',
      'connection: close',
    ]
    socket.end(`${headers.join('\r\n')}\r\n\r\n${body}`)
    socket.resume()
    this.#destroyLater(socket)
  }

  #destroyLater(socket: Socket): void {
    const timer = setTimeout(() => socket.destroy(), this.#timeouts.lingerMs)
    socket.once('close', () => clearTimeout(timer))
  }
}

/** Status and message for node's codes; any other is a 400. */
const refusals: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, `The headers are larger than ${maxHeaderBytes} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time'],
}

function listening(server: http.Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog }, () => {
      server.off('error', reject)
      // A connection that cannot be accepted, for want of memory say, does not end the service.
      server.on('error', () => {})
      resolve()
    })
  })
}

function portOf(server: http.Server): number {
  return (server.address() as AddressInfo).port
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

function toListenError(cause: unknown, port: number, host: string): ListenError {
  const messages: Readonly<Record<string, string>> = {
    EADDRINUSE: `port ${port} on ${host} is in use by another program; stop it, or set another port (PORT)`,
    EACCES: `port ${port} on ${host} is not open to this user; set port (PORT) to 1024 or higher`,
    EADDRNOTAVAIL: `${host} is not an address of this machine; set host (HOST) to localhost, 0.0.0.0 or an address it has`,
    ENOTFOUND: `the name ${host} leads to no address; set host (HOST) to localhost, 0.0.0.0 or an address of this machine`,
  }
  const message = messages[errorCode(cause) ?? ''] ?? `cannot listen on port ${port} (PORT) of ${host} (HOST): ${cause}`
  return new ListenError(message, { cause })
}
