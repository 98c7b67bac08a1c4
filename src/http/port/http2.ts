import http2, {
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { TimeLimit } from '../../base/timing/time-limit.ts'
import type { Http2Handler } from '../exchange.ts'
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

/**
 * The first bytes of every HTTP/2 connection and of no HTTP/1.1 request: the client preface's method (RFC 9113, 3.4).
 */
export const http2Start: Buffer = Buffer.from('PRI')

/**
 * Faults of each kind after which a connection is closed. A client that closes all of its streams at once, or opens
 * more than are allowed before it has read the limit, makes no more than these.
 */
const maxFaults = 4 * maxConcurrentRequests

/**
 * Tolerated faults of one connection. Streams that the client resets (CVE-2023-44487, "rapid reset") cost work that the
 * limit of concurrent streams does not count: allowed are all of them twice, and 50 a second. nghttp2 itself limits
 * unread answers to PING and SETTINGS to 1000.
 */
const tolerance = {
  streamResetBurst: 2 * maxConcurrentRequests,
  streamResetRate: 50,
  maxSessionInvalidFrames: maxFaults,
  maxSessionRejectedStreams: maxFaults,
}

/** Largest value of these options, for proxies: their connections carry many clients, and stay open for the others. */
const unlimited = 2 ** 32 - 1
const toleranceOfProxies: typeof tolerance = {
  streamResetBurst: unlimited,
  streamResetRate: unlimited,
  maxSessionInvalidFrames: unlimited,
  maxSessionRejectedStreams: unlimited,
}

/** Bytes that each field counts beyond its name and value (RFC 9113, 6.5.2). */
const fieldOverhead = 32

/** State of one connection. */
interface Http2Connection {
  readonly socket: Socket
  readonly session: ServerHttp2Session
  readonly client: Client
  /** Open streams, each with the track of what its client does not read. */
  readonly streams: Map<ServerHttp2Stream, Unread>
  /** Number of refused streams. */
  refusedStreams: number
  /** Bytes moved in both directions at the last check. */
  bytesMoved: number
  /** Time of the last check with new bytes, by performance.now. */
  movedAt: number
}

/** Serves HTTP/2 on given sockets. */
export class Http2Connections {
  readonly #handler: Http2Handler
  readonly #timeouts: ConnectionTimeouts
  readonly #ceilings: Ceilings
  /** Never listens: connections are handed to it by its 'connection' event. */
  readonly #server: http2.Http2Server
  readonly #connections = new Map<Http2Session, Http2Connection>()
  #ending = false
  #reaper: NodeJS.Timeout | undefined
  /** Time limit for bodies, which node:http2 lacks. */
  readonly #bodyTime: TimeLimit

  constructor(handler: Http2Handler, timeouts: ConnectionTimeouts, ceilings: Ceilings) {
    this.#handler = handler
    this.#timeouts = timeouts
    this.#ceilings = ceilings
    this.#bodyTime = new TimeLimit(timeouts.requestMs, timeouts.requestMs / 10)
    this.#server = http2.createServer({
      ...(ceilings.behindProxy ? toleranceOfProxies : tolerance),
      settings: { maxConcurrentStreams: maxConcurrentRequests, maxHeaderListSize: maxHeaderBytes },
      // Browsers send each cookie in a field of its own. Largest number of fields that fit in `maxHeaderBytes`.
      maxHeaderListPairs: maxHeaderBytes / fieldOverhead,
    })
    this.#server.on('stream', (stream: ServerHttp2Stream, headers) => this.#admit(stream, headers))
  }

  /**
   * Serves a connection. Its first bytes must still be in the socket's buffer. Calls `onOpened` after the client's
   * preface.
   */
  serve(socket: Socket, client: Client, onOpened: () => void): void {
    // The session event comes during emit(), so it is this connection's.
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
   * Sends clients a GOAWAY: at once on connections with requests, which finish; else with the next request, which may
   * be on its way, or by `endIdle`.
   */
  end(): void {
    this.#ending = true
    for (const { session, streams } of this.#connections.values()) if (streams.size > 0) session.close()
  }

  /** Sends a GOAWAY on the connections without a request since `end`, and closes them. */
  endIdle(): void {
    for (const { session } of this.#connections.values()) session.close()
  }

  /**
   * Starts the checks for unread answers, for idle connections, and for sockets that outlive their session: a destroyed
   * session ends its own side and waits for the client's, which some clients never end. No event shows that (a
   * session's 'close' waits for the socket's).
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
        // close() waits for open streams, which are idle as well.
        session.destroy()
      } else this.#resetUnread(connection)
    }
  }

  /** The session's own timer would keep an ended session in memory until it goes off. */
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
   * Resets streams whose client grants no window. They would stay open as long as the connection, which a PING now and
   * then keeps alive.
   */
  #resetUnread({ streams }: Http2Connection): void {
    for (const [stream, unread] of streams) {
      const isOwed = stream.writableEnded || stream.writableLength > 0
      if (!unread.isOverdue(isOwed ? stream.writableLength : undefined, this.#timeouts)) continue
      stream.close(http2.constants.NGHTTP2_CANCEL)
      // The reset itself may wait behind unread bytes.
      stream.destroy()
    }
  }

  #admit(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // An error event without a listener would end the process, and refused streams have no other listener.
    stream.on('error', () => {})
    const connection = stream.session && this.#connections.get(stream.session)
    if (connection === undefined) return
    // After the streams that came with this one: a GOAWAY names the last served stream.
    if (this.#ending) setImmediate(() => connection.session.close())
    const unread = new Unread()
    connection.streams.set(stream, unread)
    stream.on('drain', () => unread.restart())
    const body = stream.endAfterHeaders ? undefined : this.#bodyTime.enter(() => cutOff(stream))
    const arrival = arrivalOf(connection.client, stream, headers)
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
   * Refuses a stream. That costs the server more than opening it costs the client, so a client with too many refusals
   * can open no further stream. Those in progress finish. A proxy's connection carries the calls of many clients, and
   * stays.
   */
  #refuse(stream: ServerHttp2Stream, connection: Http2Connection): void {
    const { session } = connection
    if (session.destroyed) return
    stream.close(http2.constants.NGHTTP2_REFUSED_STREAM)
    // The reset may wait behind unread bytes, and would keep the stream in memory.
    stream.destroy()
    if (++connection.refusedStreams === maxFaults && !this.#ceilings.behindProxy) session.close()
  }
}

/** Ends a stream whose body took too long. One with a complete body waits for its handler. */
function cutOff(stream: ServerHttp2Stream): void {
  if (!hasArrived(stream)) stream.close(http2.constants.NGHTTP2_CANCEL)
}

/** A stream as the ceilings see it. */
function arrivalOf(connected: Client, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Arrival {
  const hasBody = !stream.endAfterHeaders
  return {
    connected,
    headers,
    unhinderedTarget: hasBody ? undefined : headers[':path'],
    hasBody,
    // Most bodies have been read by then, and asking nghttp2 costs more.
    bodyArrived: () => stream.readableEnded || hasArrived(stream),
    onBodyEnd: (listener) => stream.once('end', listener),
  }
}

/** Whether the whole body has arrived, by nghttp2; the handler may not have read it yet. */
function hasArrived(stream: ServerHttp2Stream): boolean {
  return stream.state.remoteClose === 1
}
