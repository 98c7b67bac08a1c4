import type http from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Logger, silentLogger } from '../../base/log.ts'
import type { KeyPair } from '../../base/pem.ts'
import type { CeilingLimits, CeilingUse } from '../../limits/concurrency.ts'
import type { Http2Handler, RequestHandler } from '../exchange.ts'
import { Http1Connections } from './http1.ts'
import { Http2Connections, http2Start } from './http2.ts'
import { Ceilings, type ConnectionTimeouts, defaultTimeouts } from './limits.ts'
import { ListenError, listenOn, portOf } from './listen.ts'
import { Handshakes, tlsStart } from './tls.ts'

/** Request handlers of a {@link OnePortServer}. */
export interface PortHandlers {
  /** Serves a request of HTTP/1.1. */
  readonly request: RequestHandler
  /** Serves a stream of HTTP/2. */
  readonly stream: Http2Handler
}

/** Options of a {@link OnePortServer}. */
export interface OnePortOptions {
  /** Certificate and key of the port, which then accepts TLS only. Default: none, and no TLS. */
  readonly tls?: KeyPair | undefined
  /** Time limits other than the default ones. */
  readonly timeouts?: Partial<ConnectionTimeouts>
  /** Ceilings on what clients hold. Default: none. */
  readonly ceilings?: CeilingLimits
  /** Number of proxies in front that append to X-Forwarded-For. Default 0. */
  readonly trustedProxies?: number
  /** Has a line for each ceiling that is reached. Default: none. */
  readonly log?: Logger
}

/**
 * Time during a close, in ms, for the first bytes of silent connections and for the next request of HTTP/2 connections:
 * both may be on their way.
 */
const closingOpeningMs = 250

/** Idle time before the first TCP keep-alive probe, in ms. Probes find peers that vanished without closing. */
const tcpKeepAliveDelayMs = 60_000

/** Longest wait for a moment without arriving connections, in ms. */
const maxArrivalsMs = 1_000

/** Length of a turn of the event loop, in ms, below which it had almost nothing to do. */
const quietTurnMs = 0.05

/**
 * One port for HTTP/1.1 and HTTP/2. Without TLS, the first bytes of a connection decide which of the two it is; clients
 * use HTTP/2 with prior knowledge. With TLS, client and server negotiate it (ALPN); a client without ALPN gets
 * HTTP/1.1.
 *
 * It limits what clients can hold: time, headers, connections, requests in progress. The handler limits the size of
 * bodies. Beyond a ceiling, a connection is closed, and a request is refused with a 503 (SERVER_BUSY) or, over HTTP/2,
 * with REFUSED_STREAM, which allows a retry.
 *
 * Bytes that are not HTTP are answered with 400 if the protocol allows it, and the connection is closed. The handlers
 * must not throw.
 *
 * It accepts connections itself, and hands each to a server of node:http, node:http2 or node:tls that does not listen,
 * by emitting 'connection', which Node documents for all three. All that it relies on beyond Node's documentation is
 * {@link startTimeouts}, tested on Node 24 and 26.
 */
export class OnePortServer {
  readonly #timeouts: ConnectionTimeouts
  readonly #ceilings: Ceilings
  /** Absent without TLS. */
  readonly #handshakes: Handshakes | undefined
  readonly #http1: Http1Connections
  readonly #http2: Http2Connections
  /** One server for each address. They accept all connections, of either HTTP version. */
  readonly #servers: Server[] = []
  readonly #sockets = new Set<Socket>()
  /** Connections before their first bytes (with TLS, after the handshake). */
  readonly #undecided = new Set<Socket>()
  #accepted = 0
  #closed: Promise<void> | undefined

  constructor(
    handlers: PortHandlers,
    { tls, timeouts, ceilings = {}, trustedProxies = 0, log = silentLogger }: OnePortOptions = {},
  ) {
    this.#handshakes = tls && new Handshakes(tls)
    this.#timeouts = { ...defaultTimeouts, ...timeouts }
    this.#ceilings = new Ceilings({ limits: ceilings, trustedProxies, log })
    this.#http1 = new Http1Connections(handlers.request, this.#timeouts, this.#ceilings)
    this.#http2 = new Http2Connections(handlers.stream, this.#timeouts, this.#ceilings)
  }

  /** Present use of the ceilings on connections, requests and bodies. */
  ceilingUses(): readonly CeilingUse[] {
    return this.#ceilings.uses()
  }

  /**
   * Starts to listen. Port 0 takes a free one. `host` is an address or name of this machine; `localhost` means
   * 127.0.0.1 and, if the machine has it, ::1, because browsers try either. Resolves with the port in use.
   *
   * @throws ListenError if the host or port cannot be listened on, or the server has been closed.
   */
  async listen(port: number, host: string): Promise<{ port: number; host: string }> {
    if (process.versions.bun !== undefined) throw new ListenError(noBun)
    const servers = await listenOn({ port, host, createServer: () => this.#createServer() })
    if (this.#closed !== undefined) {
      for (const server of servers) server.close()
      throw new ListenError('the server has been closed')
    }
    this.#servers.push(...servers)
    startTimeouts(this.#http1.server)
    this.#http1.startReaping()
    this.#http2.startReaping()
    return { port: portOf(servers[0]), host }
  }

  #createServer(): Server {
    // A client may end its side after its request, and still gets its answer.
    const options = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepAliveDelayMs }
    return createServer(options, (socket) => this.#accept(socket))
  }

  /** Uses another certificate and key for new connections. Existing ones continue. */
  replaceTls(pair: KeyPair): void {
    if (this.#handshakes === undefined) throw new TypeError('the server was made without TLS')
    this.#handshakes.replace(pair)
  }

  /**
   * Asks clients of HTTP/1.1 to leave, by `connection: close` in each answer, and serves on, new connections included,
   * until `close`. HTTP/2 connections get nothing: a GOAWAY would fail the calls that are on their way.
   */
  drain(): void {
    this.#http1.drain()
  }

  /**
   * Stops accepting, closes idle connections, and lets requests in progress finish; HTTP/1.1 responses then carry
   * `connection: close`, HTTP/2 clients get a GOAWAY. After `graceMs` milliseconds the rest is cut off. Resolves when
   * no connection is left. A second call waits for the same end.
   */
  close(graceMs: number = 10_000): Promise<void> {
    this.#closed ??= this.#close(graceMs)
    return this.#closed
  }

  async #close(graceMs: number): Promise<void> {
    this.#http1.end()
    await this.#noArrivals(Math.min(maxArrivalsMs, graceMs))
    // Each server waits for all connections that it accepted.
    const stopped = this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())))
    const opening = setTimeout(
      () => {
        for (const socket of this.#undecided) socket.destroy()
        this.#http2.endIdle()
      },
      Math.min(closingOpeningMs, graceMs),
    )
    this.#http1.closeIdle()
    this.#http2.end()
    const cutOff = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, graceMs)
    await Promise.all(stopped)
    clearTimeout(opening)
    clearTimeout(cutOff)
    this.#http1.stopReaping()
    this.#http2.stopReaping()
    // Also ends the check of its timeouts.
    this.#http1.server.close()
  }

  /**
   * Waits until no connection is arriving, at most `maxMs` ms. The system completes connections before they are
   * accepted, and resets the waiting ones when the server stops listening, although their clients may have sent a
   * request. node:net accepts one in each turn of the event loop.
   */
  async #noArrivals(maxMs: number): Promise<void> {
    // From here on, the sockets are polled between two awaits.
    await nextTurn()
    const startedAt = performance.now()
    for (let turnAt = startedAt; turnAt - startedAt < maxMs; ) {
      const accepted = this.#accepted
      await nextTurn()
      const now = performance.now()
      if (this.#accepted === accepted && now - turnAt < quietTurnMs) return
      turnAt = now
    }
  }

  /** Counts a connection, detects its protocol, and hands it on. */
  #accept(socket: Socket): void {
    // An error event without a listener would end the process, and at some moments no protocol listens.
    socket.on('error', () => {})
    const client = this.#ceilings.connect(socket.remoteAddress)
    if (client === undefined) {
      socket.destroy()
      return
    }
    const opening = setTimeout(() => socket.destroy(), this.#timeouts.openingMs)
    this.#accepted++
    this.#sockets.add(socket)
    this.#undecided.add(socket)
    socket.once('close', () => {
      this.#ceilings.disconnect(client)
      clearTimeout(opening)
      this.#sockets.delete(socket)
      this.#undecided.delete(socket)
    })
    const serve = (decided: Socket, isHttp2: boolean): void => {
      this.#undecided.delete(socket)
      if (isHttp2) {
        this.#http2.serve(decided, client, () => clearTimeout(opening))
      } else {
        clearTimeout(opening)
        this.#http1.serve(decided, client)
      }
    }
    if (this.#handshakes === undefined) lookAtStart(socket, (start) => serve(socket, start.equals(http2Start)))
    else this.#shakeHands(this.#handshakes, socket, serve)
  }

  /**
   * Does the TLS handshake of a connection, waits for its first bytes, and has it served by the negotiated protocol.
   */
  #shakeHands(handshakes: Handshakes, socket: Socket, serve: (secured: Socket, isHttp2: boolean) => void): void {
    lookAtStart(socket, (start) => {
      if (start[0] !== tlsStart) {
        this.#undecided.delete(socket)
        if (start.equals(http2Start)) socket.destroy()
        else this.#http1.refuseCleartext(socket)
        return
      }
      handshakes.begin(socket, (secured) => {
        secured.on('error', () => {})
        lookAtStart(secured, () => serve(secured, secured.alpnProtocol === 'h2'))
      })
    })
  }
}

/**
 * Reads the first bytes of a connection, enough to recognise HTTP/2, and puts them back. Destroys a connection that
 * ends before.
 */
function lookAtStart(socket: Socket, decide: (start: Buffer) => void): void {
  let head = Buffer.alloc(0)
  const look = (): void => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      head = Buffer.concat([head, chunk])
    }
    const start = head.subarray(0, http2Start.length)
    if (start.length < http2Start.length && start.equals(http2Start.subarray(0, start.length))) return
    socket.off('readable', look)
    socket.off('end', giveUp)
    socket.unshift(head)
    decide(start)
  }
  // The socket does not end its own side when the client ends (allowHalfOpen).
  const giveUp = (): void => {
    socket.destroy()
  }
  // 'data' would make the socket flow, and bytes could pass before the protocol's own listeners are in place.
  socket.on('readable', look)
  socket.on('end', giveUp)
}

const noBun =
  'Bun cannot serve the port itself, because its node:http and node:http2 cannot hand connections to each other: ' +
  'use Node.js, or serve with `handler` or `fetch` in Bun'

/**
 * Starts the check of headersTimeout and requestTimeout. An http.Server starts it on its own 'listening' event, which
 * never comes to a server that is handed its connections.
 */
function startTimeouts(server: http.Server): void {
  server.emit('listening')
}
