import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../base/log.ts'
import { clientAddress, networksOf, readAddress } from '../../base/request.ts'
import { type CeilingLimits, type CeilingUse, Concurrency } from '../../limits/concurrency.ts'

/** Time limits of a connection, in milliseconds. */
export interface ConnectionTimeouts {
  /**
   * From the start of a connection to the bytes that show its protocol; over HTTP/2, to the end of the client's
   * preface.
   */
  readonly openingMs: number
  /** Headers of an HTTP/1.1 request; at most `requestMs`. Answered with 408, up to a third later. */
  readonly headersMs: number
  /** A whole request, including its body. HTTP/1.1 answers with 408, HTTP/2 cancels the stream. */
  readonly requestMs: number
  /** Pause between two requests of an HTTP/1.1 connection. Longer than the 60 s of common load balancers. */
  readonly keepAliveMs: number
  /**
   * Silence in both directions: an HTTP/2 connection without requests, or a client that does not read its answer. A
   * stream stays open if it sends more often than this, such as a heartbeat every 15 s.
   */
  readonly idleMs: number
  /**
   * Time in which a client reads nothing of its answer. The answer then loses its stream or, over HTTP/1.1, its
   * connection.
   */
  readonly unreadMs: number
  /** Added to `unreadMs` for each unread KiB. */
  readonly unreadMsPerKiB: number
  /** From the last bytes to a refused client, which it may still have to read, to the end of its connection. */
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

/** Time for which a client has read nothing of its answer. */
export class Unread {
  #bytes: number | undefined
  #since = 0

  /** Call it when the client has read something. */
  restart(): void {
    this.#bytes = undefined
  }

  /**
   * Whether the client's time is over. `bytes`: unread bytes, 0 if only the end of the answer is unread, `undefined` if
   * nothing is. Call it at intervals.
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

/** Parts of {@link Ceilings}. */
export interface CeilingParts {
  readonly limits: CeilingLimits
  /** Number of proxies in front that append to X-Forwarded-For. */
  readonly trustedProxies: number
  /** Has at most one line a second for each ceiling that is reached. */
  readonly log: Logger
}

/** A client and the networks of its address; `undefined` for an unknown address. */
export class Client {
  readonly address: string | undefined
  /** The unit that counts as one client: an IPv4 address or an IPv6 /64. */
  readonly network: string | undefined
  /** The unit that has a share of each ceiling: an IPv4 address or an IPv6 /48. */
  readonly site: string | undefined

  constructor(address: string | undefined) {
    const networks = address === undefined ? [] : networksOf(address)
    this.address = address
    this.network = networks[0]
    this.site = networks.at(-1)
  }
}

/** A client without a share: it counts only for all clients together. */
const unknown = new Client(undefined)

/** A request of either HTTP version, for the ceilings to decide on, and what they have counted of it. */
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
  /** Its target (a path, perhaps with a query) if its answer waits neither for a body nor for earlier requests. */
  abstract unhinderedTarget(): string | undefined
  /** Whether the headers announce a body. */
  abstract hasBody(): boolean
  /** Whether all of the body has arrived, read or not. */
  abstract bodyArrived(): boolean
  /** Registers a listener for the end of the body. */
  abstract onBodyEnd(listener: () => void): void
}

/**
 * Requests beyond maxRequests in which a probe is still answered, by its path. An orchestrator ends a process whose
 * liveness probe fails, and a busy process must live. Probes of readiness wait for the store, so they cannot take the
 * room of the others.
 */
const probeReserve: ReadonlyMap<string, number> = new Map([
  ['/healthz', 16],
  ['/readyz', 8],
])

/**
 * Counts what clients hold, and admits or refuses more. One network has a share of each ceiling. Behind a proxy, a
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

  /** Whether each connection comes from a proxy and carries many clients. */
  get behindProxy(): boolean {
    return this.#trustedProxies > 0
  }

  /** Present use of each ceiling. */
  uses(): readonly CeilingUse[] {
    return [this.#connections, this.#connectionsOfAddresses, this.#requests, this.#pendingBodies].map((each) =>
      each.use(),
    )
  }

  /** Counts a connection and returns its client; `undefined` beyond a ceiling. End it with {@link disconnect}. */
  connect(remoteAddress: string | undefined): Client | undefined {
    const client = new Client(remoteAddress && readAddress(remoteAddress))
    const { network, site } = this.#holderOf(client)
    if (!this.#connections.take(site)) return undefined
    if (this.#connectionsOfAddresses.take(network)) return client
    this.#connections.leave(site)
    return undefined
  }

  /** Ends a connection. */
  disconnect(client: Client): void {
    const { network, site } = this.#holderOf(client)
    this.#connections.leave(site)
    this.#connectionsOfAddresses.leave(network)
  }

  /**
   * Decides whether a request is served, at once or in the next turn. A request that came with its whole body is not
   * held up by those whose body has not arrived. Call {@link leave} at its end, which may come before the decision.
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
    // Headers are reported before the bytes behind them are parsed. By the next turn, they are.
    setImmediate(() => {
      const served = arrival.bodyArrived()
      if (!served) this.#pendingBodies.refused(sender.site)
      decide(served)
    })
  }

  /** Ends a request. Without effect on one that was refused. */
  leave(arrival: Arrival): void {
    const { countedFor } = arrival
    if (countedFor === undefined) return
    arrival.countedFor = undefined
    this.#requests.leave(countedFor.site)
    this.#release(arrival)
  }

  #takeRequest(arrival: Arrival, sender: Client): boolean {
    const reserve = probeReserve.get(arrival.unhinderedTarget()?.split('?', 1)[0] ?? '')
    // A probe counts for no network, so other clients at its address cannot keep it from its answer.
    const client = reserve === undefined ? sender : unknown
    if (!this.#requests.take(client.site, reserve === undefined ? {} : { reserve })) return false
    arrival.countedFor = client
    return true
  }

  /** Nearly all bodies come with their headers. Only the others need a listener for their end. */
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

  /** The client for which a connection counts. */
  #holderOf(connected: Client): Client {
    return this.behindProxy ? unknown : connected
  }

  /** The sender of a request. Without a proxy, all requests of a connection are those of one client. */
  #senderOf(arrival: Arrival): Client {
    const { connected } = arrival
    if (!this.behindProxy) return connected
    const headers = arrival.headers()
    const get = (name: string): string | null => {
      const value = headers[name]
      return value === undefined ? null : String(value)
    }
    const address = clientAddress({ get }, undefined, this.#trustedProxies)
    // Without the header, the proxy itself is the sender.
    return address === undefined ? connected : new Client(address)
  }
}
