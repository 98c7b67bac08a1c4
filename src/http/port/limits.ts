import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../base/log.ts'
import { clientAddress, networksOf, readAddress } from '../../base/request.ts'
import { type CeilingLimits, type CeilingUse, Concurrency } from '../../limits/concurrency.ts'

/** Time limits of a connection, in milliseconds. */
export interface ConnectionTimeouts {
  /**
   * From the connection's start to the bytes that tell its protocol; with HTTP/2, to the end of the client's preface.
   */
  readonly openingMs: number
  /** For the headers of an HTTP/1.1 request; at most `requestMs`. Answered with 408, up to a third later. */
  readonly headersMs: number
  /** For a whole request, including its body. HTTP/1.1 answers with 408, HTTP/2 cancels the stream. */
  readonly requestMs: number
  /** Between two requests of an HTTP/1.1 connection. Longer than the 60 s after which common load balancers let go. */
  readonly keepAliveMs: number
  /**
   * While nothing moves in either direction: an HTTP/2 connection without requests, or a client that does not read its
   * answer. A server stream stays open if it sends something more often than this, such as a heartbeat every 15 s.
   */
  readonly idleMs: number
  /**
   * For an answer of which its client reads nothing, from the last time that it read. The answer then loses its stream
   * or, over HTTP/1.1, its connection.
   */
  readonly unreadMs: number
  /** Added to `unreadMs` for each KiB that waits to be read. */
  readonly unreadMsPerKiB: number
  /**
   * From the last bytes sent to a client that was turned away, so that it can read them, to the end of its connection.
   */
  readonly lingerMs: number
}

export const defaultTimeouts: ConnectionTimeouts = {
  openingMs: 10_000,
  headersMs: 10_000,
  requestMs: 10_000,
  keepAliveMs: 65_000,
  idleMs: 120_000,
  unreadMs: 30_000,
  // A slow mobile connection has six times this rate.
  unreadMsPerKiB: 1_000,
  lingerMs: 2_000,
}

/**
 * Largest headers of a request, in bytes. HTTP/1.1 answers larger ones with 431, HTTP/2 resets the stream. Until an
 * HTTP/2 client has acknowledged the server's settings, nghttp2 accepts up to 64 KiB from it.
 */
export const maxHeaderBytes: number = 16 * 1024

/**
 * Most requests in progress on one connection. HTTP/2 refuses streams beyond it; an HTTP/1.1 connection that pipelines
 * more is cut off.
 */
export const maxConcurrentRequests: number = 250

/** How long a client has read nothing of what waits for it. */
export class Unread {
  #bytes: number | undefined
  #since = 0

  /** The client has read something. */
  restart(): void {
    this.#bytes = undefined
  }

  /**
   * Whether the client has had its time. `bytes` is what waits for it, 0 if only the end of its answer does;
   * `undefined` if nothing does. Call it again and again.
   */
  isOverdue(bytes: number | undefined, { unreadMs, unreadMsPerKiB }: ConnectionTimeouts): boolean {
    const now = performance.now()
    if (bytes === undefined || this.#bytes === undefined || bytes < this.#bytes) this.#since = now
    this.#bytes = bytes
    return bytes !== undefined && now - this.#since >= unreadMs + (bytes / 1024) * unreadMsPerKiB
  }
}

/** Destroys a socket after a delay, in milliseconds, unless it has closed by then. */
export function destroyLater(socket: Socket, delayMs: number): void {
  const timer = setTimeout(() => socket.destroy(), delayMs)
  socket.once('close', () => clearTimeout(timer))
}

/** What {@link Ceilings} are made of. */
export interface CeilingParts {
  readonly limits: CeilingLimits
  /** Number of proxies in front that append to X-Forwarded-For. */
  readonly trustedProxies: number
  /** Told, at most once a second for each ceiling, that one was reached. */
  readonly log: Logger
}

/** One client, and the networks that its address counts in; `undefined` if the address is unknown. */
export class Client {
  readonly address: string | undefined
  /** What counts as one client: an IPv4 address or an IPv6 /64. */
  readonly network: string | undefined
  /** What has a share of each ceiling: an IPv4 address or an IPv6 /48. */
  readonly site: string | undefined

  constructor(address: string | undefined) {
    const networks = address === undefined ? [] : networksOf(address)
    this.address = address
    this.network = networks[0]
    this.site = networks.at(-1)
  }
}

/** A client that has no share: it counts only for all clients together. */
const unknown = new Client(undefined)

/** A request for the ceilings to decide on, of either HTTP version, and what they have counted of it. */
export abstract class Arrival {
  /** The client for which it counts as in progress. For {@link Ceilings} only. */
  countedFor: Client | undefined = undefined
  /** The client for which it counts as one whose body has not arrived. For {@link Ceilings} only. */
  pendingFor: Client | undefined = undefined

  /** The client that connected. */
  readonly connected: Client

  constructor(connected: Client) {
    this.connected = connected
  }

  abstract headers(): IncomingHttpHeaders
  /**
   * What it asks for (a path, perhaps with a query), if nothing holds its answer up: neither a body nor earlier
   * requests.
   */
  abstract unhinderedTarget(): string | undefined
  /** Whether the headers announce a body. */
  abstract hasBody(): boolean
  /** Whether all of the body has arrived, read or not. */
  abstract bodyArrived(): boolean
  /** Registers what to call once the body has been read. */
  abstract onBodyEnd(listener: () => void): void
}

/**
 * Requests beyond maxRequests in which a probe is still answered, by its path. An orchestrator ends a process whose
 * liveness probe fails, and a busy one must live. A probe of readiness waits for the store: these cannot take the room
 * of the others.
 */
const probeReserve: ReadonlyMap<string, number> = new Map([
  ['/healthz', 16],
  ['/readyz', 8],
])

/**
 * Counts what clients hold, and decides who gets more. Of each ceiling one network has a share. Behind a proxy, a
 * request counts for the client that the proxy names, and connections, which carry the requests of many clients, for no
 * network.
 */
export class Ceilings {
  readonly #trustedProxies: number
  readonly #connections: Concurrency
  readonly #connectionsOfAddresses: Concurrency
  readonly #requests: Concurrency
  readonly #pendingBodies: Concurrency
  /** Requests of this turn of the event loop whose body has not arrived. */
  #newlyPending: Arrival[] = []

  constructor({ limits, trustedProxies, log }: CeilingParts) {
    this.#trustedProxies = trustedProxies
    this.#connections = new Concurrency('maxConnections', limits, log)
    this.#connectionsOfAddresses = new Concurrency('maxConnectionsPerAddress', limits, log)
    this.#requests = new Concurrency('maxRequests', limits, log)
    this.#pendingBodies = new Concurrency('maxPendingBodies', limits, log)
  }

  /** Whether connections come from a proxy, and each is that of many clients. */
  get behindProxy(): boolean {
    return this.#trustedProxies > 0
  }

  /** What each of the ceilings is at. */
  uses(): readonly CeilingUse[] {
    return [this.#connections, this.#connectionsOfAddresses, this.#requests, this.#pendingBodies].map((each) =>
      each.use(),
    )
  }

  /**
   * Counts a connection and returns its client; `undefined` if there is one too many. End it with {@link disconnect}.
   */
  connect(remoteAddress: string | undefined): Client | undefined {
    const client = new Client(remoteAddress && readAddress(remoteAddress))
    const { network, site } = this.#holderOf(client)
    if (!this.#connections.take(site)) return undefined
    if (this.#connectionsOfAddresses.take(network)) return client
    this.#connections.leave(site)
    return undefined
  }

  /** A connection is over. */
  disconnect(client: Client): void {
    const { network, site } = this.#holderOf(client)
    this.#connections.leave(site)
    this.#connectionsOfAddresses.leave(network)
  }

  /**
   * Decides whether a request is served, at once or in the next turn. A request whose body is there with its headers is
   * not held up by others whose body is not. Call {@link leave} once it is over, which may be before it is decided on.
   */
  admit(arrival: Arrival, decide: (served: boolean) => void): void {
    const sender = this.#senderOf(arrival)
    if (!this.#takeRequest(arrival, sender)) {
      decide(false)
      return
    }
    if (!arrival.hasBody()) {
      decide(true)
      return
    }
    if (this.#pendingBodies.tryTake(sender.site)) {
      arrival.pendingFor = sender
      if (this.#newlyPending.push(arrival) === 1) setImmediate(() => this.#releaseArrived())
      decide(true)
      return
    }
    // Headers are told of before the bytes behind them have been looked at. By the next turn, they have been.
    setImmediate(() => {
      const served = arrival.bodyArrived()
      if (!served) this.#pendingBodies.refused(sender.site)
      decide(served)
    })
  }

  /** A request is over. Does nothing for one that was not admitted. */
  leave(arrival: Arrival): void {
    const { countedFor } = arrival
    if (countedFor === undefined) return
    arrival.countedFor = undefined
    this.#requests.leave(countedFor.site)
    this.#release(arrival)
  }

  #takeRequest(arrival: Arrival, sender: Client): boolean {
    const reserve = probeReserve.get(arrival.unhinderedTarget()?.split('?', 1)[0] ?? '')
    // A probe counts for no network, so that it is answered whoever else shares its address.
    const client = reserve === undefined ? sender : unknown
    if (!this.#requests.take(client.site, reserve === undefined ? {} : { reserve })) return false
    arrival.countedFor = client
    return true
  }

  /** Nearly all bodies come along with their headers. Only the others need a listener that tells of their end. */
  #releaseArrived(): void {
    const arrivals = this.#newlyPending
    this.#newlyPending = []
    for (const arrival of arrivals) {
      if (arrival.pendingFor === undefined) continue
      if (arrival.bodyArrived()) this.#release(arrival)
      else arrival.onBodyEnd(() => this.#release(arrival))
    }
  }

  #release(arrival: Arrival): void {
    const { pendingFor } = arrival
    if (pendingFor === undefined) return
    arrival.pendingFor = undefined
    this.#pendingBodies.leave(pendingFor.site)
  }

  /** For whom a connection counts. */
  #holderOf(connected: Client): Client {
    return this.behindProxy ? unknown : connected
  }

  /** Who sent a request: without a proxy, all requests of a connection come from one client. */
  #senderOf(arrival: Arrival): Client {
    const { connected } = arrival
    if (!this.behindProxy) return connected
    const headers = arrival.headers()
    const get = (name: string): string | null => {
      const value = headers[name]
      return value === undefined ? null : String(value)
    }
    const address = clientAddress({ get }, undefined, this.#trustedProxies)
    // Without a header, it is the proxy itself.
    return address === undefined ? connected : new Client(address)
  }
}
