import type http from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Logger, silentLogger } from '../../base/log.ts'
import type { KeyPair } from '../../base/pem.ts'
import type { CeilingLimits, CeilingUse } from '../../limits/concurrency.ts'
import type { RequestHandler, StreamHandler } from '../exchange.ts'
import { Http1Connections } from './http1.ts'
import { Http2Connections, http2Start } from './http2.ts'
import { Ceilings, type ConnectionTimeouts, defaultTimeouts } from './limits.ts'
import { ListenError, listenOn, portOf } from './listen.ts'
import { Handshakes, tlsStart } from './tls.ts'

/** What serves the requests of a {@link OnePortServer}. */
export interface PortHandlers {
  /** Serves a request of HTTP/1.1. */
  readonly request: RequestHandler
  /** Serves a stream of HTTP/2. */
  readonly stream: StreamHandler
}

/** Options of a {@link OnePortServer}. */
export interface OnePortOptions {
  /** Certificate and key of the port, which then takes TLS only. Default: none, and it takes no TLS. */
  readonly tls?: KeyPair | undefined
  /** Time limits other than the default ones. */
  readonly timeouts?: Partial<ConnectionTimeouts>
  /** The most that clients can hold. Default: no ceilings. */
  readonly ceilings?: CeilingLimits
  /** Number of proxies in front that append to X-Forwarded-For. Default 0. */
  readonly trustedProxies?: number
  /** Told of ceilings that are reached. Default: nobody. */
  readonly log?: Logger
}

/**
 * Time for the first bytes of connections that have sent nothing when the server closes, and for the next request of
 * HTTP/2 connections, in milliseconds: it may be on its way.
 */
const closingOpeningMs = 250

/** Idle time before the first TCP keep-alive probe, in milliseconds: it finds peers that vanished without a word. */
const tcpKeepAliveDelayMs = 60_000

/** Longest time for {@link rehearseEnd}, in milliseconds. */
const rehearsalMs = 100

/** Longest wait for a moment in which no connection is arriving, in milliseconds. */
const maxArrivalsMs = 1_000

/** A turn of the event loop that is shorter than this, in milliseconds, had next to nothing to do. */
const quietTurnMs = 0.05

/**
 * One port for HTTP/1.1 and HTTP/2. Without TLS, each connection's first bytes decide which of the two it is; clients
 * speak HTTP/2 with prior knowledge. With TLS, client and server agree on it (ALPN); a client that does not take part
 * in that gets HTTP/1.1.
 *
 * It limits what clients can hold: time, headers, connections, requests in progress. The size of bodies is the
 * handler's to limit. Beyond a ceiling, a connection is closed, and a request is refused with a 503 (SERVER_BUSY) or,
 * over HTTP/2, REFUSED_STREAM, which says that it can be sent again.
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
  /** One for each address. All connections, HTTP/2 or not, are accepted by one of them. */
  readonly #servers: Server[] = []
  readonly #sockets = new Set<Socket>()
  /** Connections whose first bytes, behind a handshake if there is one, have not arrived yet. */
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

  /** What the ceilings of connections, requests and bodies are at. */
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
    // A client may end its side behind its request, and is answered.
    const options = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepAliveDelayMs }
    return createServer(options, (socket) => this.#accept(socket))
  }

  /**
   * Uses another certificate and key for the connections that come from now on. Those that there are go on.
   *
   * @throws TypeError if the server was made without TLS.
   */
  replaceTls(pair: KeyPair): void {
    if (this.#handshakes === undefined) throw new TypeError('the server was made without TLS')
    this.#handshakes.replace(pair)
  }

  /**
   * Asks clients of HTTP/1.1 to leave, by `connection: close` in each answer, and goes on serving, new connections
   * included, until `close`. Clients of HTTP/2 are sent nothing: after a GOAWAY, calls that are on their way would
   * fail.
   */
  drain(): void {
    this.#http1.drain()
  }

  /**
   * Takes no further connections, and serves those that there are until `close`: other processes listen on the same
   * port. A worker of a cluster gives connections that are on their way to it back, so that another takes them.
   */
  stopListening(): void {
    for (const server of this.#servers) server.close()
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
    if (this.#servers.length > 0) await rehearseEnd()
    await this.#noArrivals(Math.min(maxArrivalsMs, graceMs))
    // Each waits for every connection that it accepted.
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
    // Ends the check of its timeouts.
    this.#http1.server.close()
  }

  /**
   * Waits until no connection is arriving, at most `maxMs` milliseconds. The system completes connections before
   * anybody accepts them, and resets those that still wait when the server stops listening, although their clients may
   * have sent a request. node:net accepts one in each turn of the event loop.
   */
  async #noArrivals(maxMs: number): Promise<void> {
    // From here on, there is a look at the sockets between one await and the next.
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

  /** Counts a connection, finds out what it speaks, and hands it to its protocol. */
  #accept(socket: Socket): void {
    // An error event without a listener would end the process, and there are moments in which no protocol listens.
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

  /** Makes a TLS connection of one, waits for its first bytes, and has it served as the handshake decided. */
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
 * Looks at a connection's first bytes and puts them back: as many as it takes to see whether they begin HTTP/2.
 * Destroys a connection that ends before.
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
  // 'data' would set the socket flowing, and bytes could pass before the protocol's own listeners are in place.
  socket.on('readable', look)
  socket.on('end', giveUp)
}

const noBun =
  'Bun cannot serve the port of its own (its node:http and node:http2 do not take connections from each other): use Node.js, or serve with `handler` or `fetch` in Bun'

/**
 * Starts the check of headersTimeout and requestTimeout. An http.Server does so on its own 'listening' event, and never
 * on one that is handed its connections.
 */
function startTimeouts(server: http.Server): void {
  server.emit('listening')
}

/**
 * Warms up the shutdown path with a server of its own. The first end of a process takes half a millisecond, ten times
 * as long as the next, because its code is not compiled yet, and the system resets connections that arrive in that
 * time. In a worker of a cluster it must be the worker's own, which is what `exclusive` says.
 */
async function rehearseEnd(): Promise<void> {
  const server = createServer()
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  // Without a port to be had in time, the end just takes longer.
  const late = setTimeout(end, rehearsalMs)
  server.once('error', () => end())
  server.unref().listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => server.close(() => end()))
  await ended
  clearTimeout(late)
}
