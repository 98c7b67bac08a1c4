import http2, {
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { TimeLimit } from '../../timing/time-limit.ts'
import type { RequestHandler, StreamHandler } from '../node-request.ts'
import { Arrival, type Ceilings, type Client } from './ceilings.ts'
import { destroyLater } from './destroy-later.ts'
import { sendGoawayNotice } from './goaway-notice.ts'
import { type ConnectionTimeouts, maxConcurrentRequests, maxHeaderBytes } from './limits.ts'

/**
 * The first bytes of every HTTP/2 connection and of no HTTP/1.1 request: the client preface's method (RFC 9113, 3.4).
 */
export const http2Start: Buffer = Buffer.from('PRI')

/**
 * What one connection may do wrong before it is closed. Streams that the client resets (CVE-2023-44487, "rapid reset")
 * cost work that the limit of concurrent streams does not count: 200 at once and 50 a second leave room for a proxy
 * whose users go away, and little for a flood. nghttp2 itself limits unread answers to PING and SETTINGS to 1000.
 */
const tolerance = {
  streamResetBurst: 200,
  streamResetRate: 50,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
}

/**
 * Streams of one connection that are refused beyond a ceiling before the connection is closed. To refuse a stream costs the
 * server more than to open it costs the client, so a client that goes on and on must be stopped.
 */
const maxRefusedStreams = 100

/** What the 'stream' event of an HTTP/2 server carries. */
type StreamArguments = [stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, rawHeaders: string[]]

/** What is known of one connection. */
interface Http2Connection {
  readonly socket: Socket
  readonly session: ServerHttp2Session
  readonly client: Client
  /** Streams that were refused. */
  refusedStreams: number
  /** Whether its preface has arrived. */
  opened: boolean
  /** Whether it was asked to leave. */
  notified: boolean
  /** Bytes that had moved, in both directions, when somebody last looked. */
  bytesMoved: number
  /** When somebody last saw that more had moved, by performance.now. */
  movedAt: number
}

/** Serves HTTP/2 on sockets that it is handed. */
export class Http2Connections {
  readonly #timeouts: ConnectionTimeouts
  readonly #ceilings: Ceilings
  readonly #server: http2.Http2Server
  readonly #connections = new Map<Http2Session, Http2Connection>()
  #draining = false
  #reaper: NodeJS.Timeout | undefined
  /** node:http2 has no time limit for the body of a request. */
  readonly #bodyTime: TimeLimit

  constructor(
    handler: RequestHandler,
    timeouts: ConnectionTimeouts,
    ceilings: Ceilings,
    takeStream: StreamHandler | undefined,
  ) {
    this.#timeouts = timeouts
    this.#ceilings = ceilings
    this.#bodyTime = new TimeLimit(timeouts.requestMs, timeouts.requestMs / 10)
    // It never listens. Unlike an http.Server it starts nothing on its 'listening' event, so it serves a socket from
    // emit('connection') in the same way as one that it accepted.
    this.#server = http2.createServer({
      ...tolerance,
      settings: { maxConcurrentStreams: maxConcurrentRequests, maxHeaderListSize: maxHeaderBytes },
    })
    // Node makes a request and a response object of each stream once 'request' has a listener, by a 'stream' listener of its
    // own. For a small call that costs as much as all else, so that listener is taken off here and called by hand, for the
    // streams that `takeStream` leaves.
    this.#server.on('request', handler)
    const serveAsRequest = this.#server.listeners('stream') as ((...args: StreamArguments) => void)[]
    this.#server.removeAllListeners('stream')
    this.#server.on('stream', (...args: StreamArguments) => {
      const [stream, headers] = args
      this.#admit(args, () => {
        if (takeStream?.(stream, headers) === true) return
        const serve = (): void => {
          for (const listener of serveAsRequest) listener(...args)
        }
        if (waitsForAnswer(stream, headers) || hasArrived(stream)) {
          serve()
          return
        }
        stream.once('readable', () => {
          // Node drops a body that its handler leaves unread only if nobody has begun to read it, which this listener has.
          // A stream with unread bytes would never close.
          stream.once('finish', () => stream.resume())
          serve()
        })
      })
    })
  }

  /**
   * Serves a connection. Its first bytes must still be in the socket's buffer. Calls `onOpened` after the client's
   * preface.
   */
  serve(socket: Socket, client: Client, onOpened: () => void): void {
    // The session event comes before emit() returns, so it is this connection's.
    this.#server.once('session', (session) => {
      const connection: Http2Connection = {
        socket,
        session,
        client,
        refusedStreams: 0,
        opened: false,
        notified: false,
        bytesMoved: 0,
        movedAt: performance.now(),
      }
      this.#connections.set(session, connection)
      socket.once('close', () => this.#connections.delete(session))
      // The client's SETTINGS frame is the end of its preface.
      session.once('remoteSettings', () => {
        connection.opened = true
        onOpened()
      })
    })
    // An http.Server accepts its sockets with allowHalfOpen: they stay open for writing after the client has ended its
    // side, until somebody ends them. An HTTP/2 session relies on the socket to do that by itself, as those of http2
    // servers do.
    socket.allowHalfOpen = false
    this.#server.emit('connection', socket)
  }

  /**
   * Asks every client to open no more streams on its connection, and serves those that it opens nevertheless. A client
   * that connects later is asked with its first request: client libraries fail a request if the GOAWAY comes before it.
   *
   * Over TLS, nothing can be sent past the session, and after the session's own GOAWAY nghttp2 serves no new stream. It names the
   * last one that is served, so the client knows that it can send a later one again, on another connection.
   */
  drain(): void {
    this.#draining = true
    for (const connection of this.#connections.values()) if (connection.opened) this.#notify(connection)
  }

  /** Tried again with the next request if it fails, and no more once the session has sent a GOAWAY of its own. */
  #notify(connection: Http2Connection): void {
    const { socket, session } = connection
    if (connection.notified || session.closed || session.destroyed) return
    if (socket instanceof TLSSocket) {
      // Node tells of streams once it has read all that came with them, so these are among those that it names.
      session.goaway()
      connection.notified = true
    } else connection.notified = sendGoawayNotice(socket)
  }

  /** Sends every client a GOAWAY. Requests in progress finish, and then their connections end. */
  end(): void {
    for (const { session } of this.#connections.values()) session.close()
  }

  /**
   * Starts to look for connections that are idle, and for those that outlive their session: a session that was destroyed
   * ends its own side and waits for the client's, and some clients never end theirs. No event tells of it (a session's
   * 'close' waits for the socket's).
   */
  startReaping(): void {
    const { lingerMs, idleMs } = this.#timeouts
    this.#reaper ??= setInterval(() => this.#reap(), Math.min(lingerMs, idleMs / 4)).unref()
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
      }
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

  #admit([stream, headers]: StreamArguments, serve: () => void): void {
    // An error event without a listener would end the process, and a refused stream has no other.
    stream.on('error', () => {})
    const connection = stream.session && this.#connections.get(stream.session)
    if (connection === undefined) return
    if (this.#draining) this.#notify(connection)
    const body = stream.endAfterHeaders ? undefined : this.#bodyTime.enter(() => cutOff(stream))
    const arrival = new Http2Arrival(connection.client, stream, headers)
    stream.once('close', () => {
      if (body !== undefined) this.#bodyTime.leave(body)
      this.#ceilings.leave(arrival)
    })
    this.#ceilings.admit(arrival, (served) => {
      if (served) serve()
      else this.#refuse(stream, connection)
    })
  }

  #refuse(stream: ServerHttp2Stream, connection: Http2Connection): void {
    const { session } = connection
    if (session.destroyed) return
    // A proxy's connection carries the calls of many clients, so it stays.
    if (++connection.refusedStreams <= maxRefusedStreams || this.#ceilings.behindProxy) {
      stream.close(http2.constants.NGHTTP2_REFUSED_STREAM)
    } else {
      session.goaway(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM)
      session.destroy()
    }
  }
}

/** Ends a stream whose body took too long. One that has arrived waits for its handler. */
function cutOff(stream: ServerHttp2Stream): void {
  if (!hasArrived(stream)) stream.close(http2.constants.NGHTTP2_CANCEL)
}

/**
 * Whether a client sends nothing more before it is answered. A POST is served from the first bytes of its body on: most
 * of what a request costs is made by its handler.
 */
function waitsForAnswer({ endAfterHeaders }: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
  return endAfterHeaders || headers[':method'] !== 'POST' || headers.expect !== undefined
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
