import http, { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { retryAfterSeconds } from '../../rpc/errors.ts'
import { type ErrorReason, serverBusy } from '../../shared/errors.ts'
import type { RequestHandler } from '../exchange.ts'
import {
  type Arrival,
  type Ceilings,
  type Client,
  type ConnectionTimeouts,
  destroyLater,
  maxConcurrentRequests,
  maxHeaderBytes,
  Unread,
} from './limits.ts'
import { errorCode } from './listen.ts'

/** An answer without the handler. */
interface PortRefusal {
  readonly status: number
  readonly reason: ErrorReason
  readonly message: string
  readonly retryAfterMs?: number
}

function malformed(status: number, message: string): PortRefusal {
  return { status, reason: 'INVALID_REQUEST', message }
}

/** Answers by node's error codes. */
const refusals: Readonly<Record<string, PortRefusal>> = {
  HPE_HEADER_OVERFLOW: malformed(431, `The headers are larger than ${maxHeaderBytes} bytes`),
  ERR_HTTP_REQUEST_TIMEOUT: malformed(408, 'The request did not arrive in time'),
}

/** Answer to a request without a Host (RFC 9112, 3.2). */
const hostless = malformed(400, 'The request has no Host header')

/** Answer to an expectation other than 100-continue (RFC 9110, 10.1.1). */
const unexpected = malformed(417, 'The only expectation that can be met is 100-continue')

/** Answer to any other error. */
const notHttp = malformed(400, 'The bytes received are not an HTTP/1.1 request')

/** Answer to bytes without TLS on a port that accepts TLS only. */
const cleartext = malformed(400, 'This port takes TLS only: call it by https')

/** Answer beyond a ceiling. */
const { httpStatus: status, reason, message, retryAfterMs = 0 } = serverBusy()
const busy: PortRefusal = { status, reason, message, retryAfterMs }

/**
 * Most requests that a client may send behind one that ends its connection. Node keeps each in memory until those
 * before it are answered, and no ceiling counts it.
 */
const maxIgnored = 8

/** State of one connection. */
interface Http1Connection {
  readonly client: Client
  /** Unfinished responses in the order of their requests: one or none, more for clients that pipeline. */
  readonly unanswered: ServerResponse[]
  /** Closes after its last response; a later request is not served. */
  ending: boolean
  /** Number of requests that came after its last one. */
  ignored: number
  /** Bytes received at the end of its last response. The connection is idle until more arrive. */
  bytesReadAtRest: number | undefined
  /** `bytesReadAtRest` at the last check, and the time of its last change, by performance.now. */
  seenAtRest: number | undefined
  seenSince: number
  /** Tracks answers that the client does not read. */
  readonly unread: Unread
}

/** Serves HTTP/1.1 on given sockets. */
export class Http1Connections {
  readonly #timeouts: ConnectionTimeouts
  readonly #handler: RequestHandler
  readonly #ceilings: Ceilings
  /** Never listens: connections are handed to it by its 'connection' event. */
  readonly server: http.Server
  readonly #connections = new Map<Socket, Http1Connection>()
  /** Whether connections are to end, after `drain` or `end`. */
  #leaving = false
  #reaper: NodeJS.Timeout | undefined

  constructor(handler: RequestHandler, timeouts: ConnectionTimeouts, ceilings: Ceilings) {
    this.#handler = handler
    this.#timeouts = timeouts
    this.#ceilings = ceilings
    const { headersMs, requestMs, idleMs } = timeouts
    this.server = http.createServer({
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.ceil(headersMs / 3),
      // Node would set a timer in each pause between requests; see `startReaping`.
      keepAliveTimeout: 0,
      // Node would answer requests without a Host by itself, however many there are, and no ceiling would count them.
      // The same goes for 'checkExpectation'.
      requireHostHeader: false,
    })
    // No option sets it. Unlike the two timeouts above, it also ends a silent connection.
    this.server.timeout = idleMs
    this.server.on('request', (request, response) => {
      const { httpVersion, headers } = request
      this.#serve(request, response, httpVersion === '1.1' && headers.host === undefined ? hostless : undefined)
    })
    this.server.on('checkExpectation', (request, response) => this.#serve(request, response, unexpected))
    this.server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket))
    this.server.on('connect', ({ socket }) => this.#refuseConnect(socket))
  }

  /** Serves a connection. Its first bytes must still be in the socket's buffer. */
  serve(socket: Socket, client: Client): void {
    const unread = new Unread()
    this.#connections.set(socket, {
      client,
      unanswered: [],
      ending: false,
      ignored: 0,
      bytesReadAtRest: undefined,
      seenAtRest: undefined,
      seenSince: 0,
      unread,
    })
    socket.on('drain', () => unread.restart())
    socket.once('close', () => this.#connections.delete(socket))
    this.server.emit('connection', socket)
  }

  /**
   * From now on every answer whose headers are unsent has `connection: close`, and its connection ends with it.
   *
   * A connection whose answer has begun, such as a stream of events, stays for one more request. If it ended without
   * that header, a proxy could send a request before it sees the end, and that request would be lost.
   */
  drain(): void {
    this.#leaving = true
    for (const connection of this.#connections.values()) {
      if (connection.unanswered.at(-1)?.headersSent === false) this.#endWhenAnswered(connection)
    }
  }

  /**
   * Closes each connection after its outstanding answers. A request that is arriving is answered too. Idle connections
   * end with `closeIdle`.
   */
  end(): void {
    this.#leaving = true
    for (const connection of this.#connections.values()) {
      if (connection.unanswered.length > 0) this.#endWhenAnswered(connection)
    }
  }

  /** Serves a request, or refuses it; both count. */
  #serve(request: IncomingMessage, response: ServerResponse, refusal: PortRefusal | undefined): void {
    const { socket } = request
    const connection = this.#connections.get(socket)
    if (connection === undefined) return
    // The client has read, or is about to read, that the connection ends.
    if (connection.ending || socket.writableEnded) {
      if (++connection.ignored > maxIgnored) socket.destroy()
      return
    }
    const { unanswered } = connection
    unanswered.push(response)
    if (unanswered.length > maxConcurrentRequests) {
      socket.destroy()
      return
    }
    const arrival = arrivalOf(connection, request)
    // Not once(), which allocates two more objects: a response closes only once.
    response.on('close', () => {
      this.#ceilings.leave(arrival)
      unanswered.splice(unanswered.indexOf(response), 1)
      if (unanswered.length > 0) return
      connection.bytesReadAtRest = socket.bytesRead
      if (connection.ending) socket.destroySoon()
    })
    if (this.#leaving) this.#endWhenAnswered(connection)
    this.#ceilings.admit(arrival, (served) => {
      if (!served) this.#refuseRequest(connection, response, busy)
      else if (refusal !== undefined) this.#refuseRequest(connection, response, refusal)
      else this.#handler(request, response)
    })
  }

  #refuseRequest(connection: Http1Connection, response: ServerResponse, refusal: PortRefusal): void {
    const { req: request } = response
    const { socket } = request
    if (!socket.writable) return
    // An unread body would stop the client from sending, and so from reading the answer.
    request.resume()
    connection.ending = true
    if (connection.unanswered.length === 1) {
      this.#answerAndEnd(socket, refusal)
      return
    }
    // Earlier requests are answered first, and then the connection ends.
    const { status, headers, body } = written(refusal)
    response.writeHead(status, headers).end(body)
  }

  /** Closes idle connections, after the port has stopped listening. */
  closeIdle(): void {
    for (const [socket, connection] of this.#connections) if (isAtRest(socket, connection)) socket.destroy()
  }

  /**
   * Starts the checks for unread answers, and for connections that are idle for `keepAliveMs`, which are closed up to
   * an eighth later.
   */
  startReaping(): void {
    const { keepAliveMs, unreadMs } = this.#timeouts
    this.#reaper ??= setInterval(() => this.#reap(), Math.min(keepAliveMs / 16, unreadMs / 4)).unref()
  }

  stopReaping(): void {
    clearInterval(this.#reaper)
  }

  #reap(): void {
    const now = performance.now()
    // A little more than the announced time, for a request that is sent in the last moment.
    const mostMs = this.#timeouts.keepAliveMs * 1.02
    for (const [socket, connection] of this.#connections) {
      if (connection.seenAtRest !== connection.bytesReadAtRest) {
        connection.seenAtRest = connection.bytesReadAtRest
        connection.seenSince = now
      } else if (now - connection.seenSince >= mostMs && isAtRest(socket, connection)) socket.destroy()
      const isOwed = connection.unanswered[0]?.writableEnded === true || socket.writableLength > 0
      if (connection.unread.isOverdue(isOwed ? socket.writableLength : undefined, this.#timeouts)) {
        socket.destroy()
      }
    }
  }

  #endWhenAnswered(connection: Http1Connection): void {
    connection.ending = true
    const last = connection.unanswered.at(-1)
    if (last?.headersSent === false) last.setHeader('connection', 'close')
  }

  /** Answers bytes that node cannot parse as a request, and requests that do not arrive in time. */
  #refuse(error: Error, socket: Socket): void {
    const connection = this.#connections.get(socket)
    if (connection === undefined || !socket.writable) return
    const { unanswered } = connection
    const last = unanswered.at(-1)
    if (last?.req.complete === true) {
      this.#endWhenAnswered(connection)
      return
    }
    // An answer now would be taken for another one, or land in the middle of it.
    if (unanswered.length > 1 || last?.headersSent === true) {
      socket.destroy()
      return
    }
    this.#answerAndEnd(socket, refusals[errorCode(error) ?? ''] ?? notHttp)
    // The handler waits for the rest of the body; the end of the socket ends that wait.
    if (last !== undefined) socket.destroySoon()
  }

  /** Answers a client without TLS on a port that accepts TLS only. */
  refuseCleartext(socket: Socket): void {
    this.#answerAndEnd(socket, cleartext)
  }

  /** Without a listener for 'connect', node would close the connection without an answer. */
  #refuseConnect(socket: Socket): void {
    const unanswered = this.#connections.get(socket)?.unanswered.length ?? 0
    // An answer would overtake those to earlier requests.
    if (unanswered > 0) socket.destroy()
    else this.#answerAndEnd(socket, malformed(400, 'CONNECT is for proxies, which this is not'))
  }

  /**
   * Answers without a request and a handler. Closing a socket with unread bytes would reset it, perhaps before the
   * client has the answer, so further bytes are read and discarded for `lingerMs`.
   */
  #answerAndEnd(socket: Socket, refusal: PortRefusal): void {
    const { status, headers, body } = written(refusal)
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
    socket.resume()
    destroyLater(socket, this.#timeouts.lingerMs)
  }
}

/** Whether a connection has no request, nor the beginning of one. */
function isAtRest(socket: Socket, { unanswered, bytesReadAtRest }: Http1Connection): boolean {
  // More bytes than at rest are the beginning of a request.
  return unanswered.length === 0 && bytesReadAtRest === socket.bytesRead
}

/** A refusal as it is sent. The connection ends behind it. */
function written({ status, reason, message, retryAfterMs }: PortRefusal): {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
} {
  const body = JSON.stringify({ code: reason, message })
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    connection: 'close',
  }
  if (retryAfterMs !== undefined) headers['retry-after'] = retryAfterSeconds(retryAfterMs)
  return { status, headers, body }
}

/** A request as the ceilings see it. */
function arrivalOf({ client, unanswered }: Http1Connection, request: IncomingMessage): Arrival {
  const { headers } = request
  const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
  return {
    connected: client,
    headers,
    unhinderedTarget: unanswered.length === 1 && !hasBody ? request.url : undefined,
    hasBody,
    bodyArrived: () => request.complete,
    onBodyEnd: (listener) => request.once('end', listener),
  }
}
