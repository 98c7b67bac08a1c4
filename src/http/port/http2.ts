import http2, {
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { TimeLimit } from '../../base/timing/time-limit.ts'
import type { StreamHandler } from '../exchange.ts'
import {
  Arrival,
  type Ceilings,
  type Client,
  type ConnectionTimeouts,
  destroyLater,
  maxConcurrentRequests,
  maxHeaderBytes,
  Unread,
} from './limits.ts'

/**
 * The first bytes of every HTTP/2 connection and of no HTTP/1.1 request: the client preface's method (RFC 9113, 3.4).
 */
export const http2Start: Buffer = Buffer.from('PRI')

/**
 * Faults of each kind that one connection may make before it is closed. A client that closes all of its streams at
 * once, or opens more than are allowed before it has read how many are, makes no more than these.
 */
const maxFaults = 4 * maxConcurrentRequests

/**
 * What one connection may do wrong before it is closed. Streams that the client resets (CVE-2023-44487, "rapid reset")
 * cost work that the limit of concurrent streams does not count: all of them twice, and 50 a second. nghttp2 itself
 * limits unread answers to PING and SETTINGS to 1000.
 */
const tolerance = {
  streamResetBurst: 2 * maxConcurrentRequests,
  streamResetRate: 50,
  maxSessionInvalidFrames: maxFaults,
  maxSessionRejectedStreams: maxFaults,
}

/**
 * Largest value of these options: the connection of a proxy carries many clients, and is not closed for the faults of
 * some.
 */
const unlimited = 2 ** 32 - 1
const toleranceOfProxies: typeof tolerance = {
  streamResetBurst: unlimited,
  streamResetRate: unlimited,
  maxSessionInvalidFrames: unlimited,
  maxSessionRejectedStreams: unlimited,
}

/** Bytes that a field counts beyond its name and its value (RFC 9113, 6.5.2). */
const fieldOverhead = 32

/** What is known of one connection. */
interface Http2Connection {
  readonly socket: Socket
  readonly session: ServerHttp2Session
  readonly client: Client
  /** Streams that are open, and what their clients have not read of their answers. */
  readonly streams: Map<ServerHttp2Stream, Unread>
  /** Streams that were refused. */
  refusedStreams: number
  /** Bytes that had moved, in both directions, at the last look. */
  bytesMoved: number
  /** When a look last found that more had moved, by performance.now. */
  movedAt: number
}

/** Serves HTTP/2 on sockets that it is handed. */
export class Http2Connections {
  readonly #handler: StreamHandler
  readonly #timeouts: ConnectionTimeouts
  readonly #ceilings: Ceilings
  /** It never listens: it is handed connections by its 'connection' event. */
  readonly #server: http2.Http2Server
  readonly #connections = new Map<Http2Session, Http2Connection>()
  #ending = false
  #reaper: NodeJS.Timeout | undefined
  /** node:http2 has no time limit for the body of a request. */
  readonly #bodyTime: TimeLimit

  constructor(handler: StreamHandler, timeouts: ConnectionTimeouts, ceilings: Ceilings) {
    this.#handler = handler
    this.#timeouts = timeouts
    this.#ceilings = ceilings
    this.#bodyTime = new TimeLimit(timeouts.requestMs, timeouts.requestMs / 10)
    this.#server = http2.createServer({
      ...(ceilings.behindProxy ? toleranceOfProxies : tolerance),
      settings: { maxConcurrentStreams: maxConcurrentRequests, maxHeaderListSize: maxHeaderBytes },
      // Browsers send each cookie in a field of its own. No more fields than these fit into the bytes.
      maxHeaderListPairs: maxHeaderBytes / fieldOverhead,
    })
    this.#server.on('stream', (stream: ServerHttp2Stream, headers) => this.#admit(stream, headers))
  }

  /**
   * Serves a connection. Its first bytes must still be in the socket's buffer. Calls `onOpened` after the client's
   * preface.
   */
  serve(socket: Socket, client: Client, onOpened: () => void): void {
    // The session event comes before emit() returns, so it is this connection's.
    this.#server.once('session', (session) => {
      this.#connections.set(session, {
        socket,
        session,
        client,
        streams: new Map(),
        refusedStreams: 0,
        bytesMoved: 0,
        movedAt: performance.now(),
      })
      socket.once('close', () => this.#connections.delete(session))
      // The client's SETTINGS frame is the end of its preface.
      session.once('remoteSettings', onOpened)
    })
    // The port accepts its sockets with allowHalfOpen: they stay open for writing after the client has ended its
    // side. An HTTP/2 session relies on the socket to end that by itself, as those of http2 servers do.
    socket.allowHalfOpen = false
    this.#server.emit('connection', socket)
  }

  /**
   * Sends clients a GOAWAY: at once where requests are in progress, which finish, and else with the next request, which
   * may be on its way, or by `endIdle`.
   */
  end(): void {
    this.#ending = true
    for (const { session, streams } of this.#connections.values()) if (streams.size > 0) session.close()
  }

  /** Sends a GOAWAY on the connections on which nothing has come since `end`, and closes them. */
  endIdle(): void {
    for (const { session } of this.#connections.values()) session.close()
  }

  /**
   * Starts to look for answers that are not read, for connections that are idle, and for those that outlive their
   * session: a session that was destroyed ends its own side and waits for the client's, and some clients never end
   * theirs. No event tells of it (a session's 'close' waits for the socket's).
   */
  startReaping(): void {
    const { lingerMs, idleMs, unreadMs } = this.#timeouts
    this.#reaper ??= setInterval(() => this.#reap(), Math.min(lingerMs, idleMs / 4, unreadMs / 4)).unref()
  }

  stopReaping(): void {
    clearInterval(this.#reaper)
  }

  #reap(): void {
    const now = performance.now()
    for (const connection of this.#connections.values()) {
      const { socket, session } = connection
      if (session.destroyed) {
        this.#connections.delete(session)
        destroyLater(socket, this.#timeouts.lingerMs)
      } else if (this.#isIdle(connection, now)) {
        // After close(), destroy() ends the server's side of the socket and leaves the rest to the client. Alone, it
        // would destroy the socket, perhaps before the client has read the GOAWAY.
        session.close()
        // close() waits for open streams, but those have not moved either.
        session.destroy()
      } else this.#resetUnread(connection)
    }
  }

  /** Not by the session's own timer, which would keep the session in memory after its end, until it goes off. */
  #isIdle(connection: Http2Connection, now: number): boolean {
    const { socket } = connection
    const bytesMoved = socket.bytesRead + socket.bytesWritten
    if (bytesMoved !== connection.bytesMoved) {
      connection.bytesMoved = bytesMoved
      connection.movedAt = now
    }
    return now - connection.movedAt >= this.#timeouts.idleMs
  }

  /**
   * A client that grants no window keeps its streams open for as long as the connection lives, which a PING now and
   * then sees to.
   */
  #resetUnread({ streams }: Http2Connection): void {
    for (const [stream, unread] of streams) {
      const isOwed = stream.writableEnded || stream.writableLength > 0
      if (!unread.isOverdue(isOwed ? stream.writableLength : undefined, this.#timeouts)) continue
      stream.close(http2.constants.NGHTTP2_CANCEL)
      // The reset itself may wait behind what the client does not read.
      stream.destroy()
    }
  }

  #admit(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // An error event without a listener would end the process, and a refused stream has no other.
    stream.on('error', () => {})
    const connection = stream.session && this.#connections.get(stream.session)
    if (connection === undefined) return
    // Not before the streams that came with this one: a GOAWAY names the last one that is served.
    if (this.#ending) setImmediate(() => connection.session.close())
    const unread = new Unread()
    connection.streams.set(stream, unread)
    stream.on('drain', () => unread.restart())
    const body = stream.endAfterHeaders ? undefined : this.#bodyTime.enter(() => cutOff(stream))
    const arrival = new Http2Arrival(connection.client, stream, headers)
    stream.once('close', () => {
      connection.streams.delete(stream)
      if (body !== undefined) this.#bodyTime.leave(body)
      this.#ceilings.leave(arrival)
    })
    this.#ceilings.admit(arrival, (served) => {
      if (served) this.#serve(stream, headers)
      else this.#refuse(stream, connection)
    })
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    if (stream.destroyed || stream.closed) return
    if (headers[':method'] === 'CONNECT') {
      // CONNECT is for proxies (RFC 9110, 9.3.6).
      stream.respond({ ':status': 405 }, { endStream: true })
    } else if (headers.expect !== undefined && headers.expect !== '100-continue') {
      stream.respond({ ':status': 417 }, { endStream: true })
    } else {
      if (headers.expect !== undefined) stream.additionalHeaders({ ':status': 100 })
      this.#handler(stream, headers)
    }
  }

  /**
   * To refuse a stream costs the server more than to open it costs the client, so a client that goes on and on can open
   * no further one. Those in progress finish. A proxy's connection carries the calls of many clients, and stays.
   */
  #refuse(stream: ServerHttp2Stream, connection: Http2Connection): void {
    const { session } = connection
    if (session.destroyed) return
    stream.close(http2.constants.NGHTTP2_REFUSED_STREAM)
    if (++connection.refusedStreams === maxFaults && !this.#ceilings.behindProxy) session.close()
  }
}

/** Ends a stream whose body took too long. One that has arrived waits for its handler. */
function cutOff(stream: ServerHttp2Stream): void {
  if (!hasArrived(stream)) stream.close(http2.constants.NGHTTP2_CANCEL)
}

/** A stream as the ceilings see it. */
class Http2Arrival extends Arrival {
  readonly #stream: ServerHttp2Stream
  readonly #headers: IncomingHttpHeaders

  constructor(client: Client, stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    super(client)
    this.#stream = stream
    this.#headers = headers
  }

  headers(): IncomingHttpHeaders {
    return this.#headers
  }

  unhinderedTarget(): string | undefined {
    return this.hasBody() ? undefined : this.#headers[':path']
  }

  hasBody(): boolean {
    return !this.#stream.endAfterHeaders
  }

  bodyArrived(): boolean {
    // Most bodies have been read by then, and to ask nghttp2 costs more.
    return this.#stream.readableEnded || hasArrived(this.#stream)
  }

  onBodyEnd(listener: () => void): void {
    this.#stream.once('end', listener)
  }
}

/** nghttp2's own view of whether the whole body has arrived; the handler may not have read it yet. */
function hasArrived(stream: ServerHttp2Stream): boolean {
  return stream.state.remoteClose === 1
}
