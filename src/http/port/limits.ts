import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../base/log.ts'
import { clientAddress, networkOf, readAddress, siteOf, unknownNetwork } from '../../base/request.ts'
import { type CeilingLimits, type CeilingUse, Concurrency, SharedSlots, shareOf } from '../../limits/concurrency.ts'
import { rawHeaders } from '../exchange.ts'

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

/** A client and the networks of its address. Clients of unknown address count as one. */
export class Client {
  /** The unit that counts as one client: an IPv4 address or an IPv6 /64. */
  readonly network: string
  /** The unit that has a share of each ceiling: an IPv4 address or an IPv6 /48. */
  readonly site: string

  constructor(address: string | undefined) {
    this.network = address === undefined ? unknownNetwork : networkOf(address)
    this.site = siteOf(address)
  }
}

/** A request of either HTTP version, for the ceilings to decide on. */
export interface Arrival {
  /** The client that connected. */
  readonly connected: Client
  readonly headers: IncomingHttpHeaders
  /** Its target (a path, perhaps with a query) if its answer waits neither for a body nor for earlier requests. */
  readonly unhinderedTarget: string | undefined
  /** Whether the headers announce a body. */
  readonly hasBody: boolean
  /** Whether all of the body has arrived, read or not. */
  bodyArrived(): boolean
  /** Registers a listener for the end of the body. */
  onBodyEnd(listener: () => void): void
  /** The slot that it holds while it is in progress. For {@link Ceilings} only, as is the next. */
  inProgress?: { readonly slots: SharedSlots; readonly site: string } | undefined
  /** The site for which it counts until its body has arrived. */
  pendingFor?: string | undefined
}

/**
 * Slots, by path, for probes that find none among those of all requests: an orchestrator ends a process whose liveness
 * probe fails, and a busy process must live. Any client can name these paths, so one network has a share of these slots
 * too. Probes of readiness wait for the store, and have slots of their own.
 */
const probeReserve = { '/healthz': 32, '/readyz': 16 } as const

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
  readonly #probes: ReadonlyMap<string, SharedSlots>
  /** Requests of this turn of the event loop whose body has not arrived. */
  #newlyPending: Arrival[] = []

  constructor({ limits, trustedProxies, log }: CeilingParts) {
    this.#trustedProxies = trustedProxies
    this.#connections = new Concurrency('connections', limits, log)
    this.#connectionsOfAddresses = new Concurrency('connectionsPerAddress', limits, log)
    this.#requests = new Concurrency('requests', limits, log)
    this.#pendingBodies = new Concurrency('pendingBodies', limits, log)
    this.#probes = new Map(
      Object.entries(probeReserve).map(([path, most]) => [path, new SharedSlots(most, shareOf(most, limits))]),
    )
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
    const { network, site } = this.#networksOf(client)
    if (!this.#connections.take(site)) return undefined
    if (this.#connectionsOfAddresses.take(network)) return client
    this.#connections.leave(site)
    return undefined
  }

  /** Ends a connection. */
  disconnect(client: Client): void {
    const { network, site } = this.#networksOf(client)
    this.#connections.leave(site)
    this.#connectionsOfAddresses.leave(network)
  }

  /**
   * Decides whether a request is served, at once or in the next turn. A request that came with its whole body is not
   * held up by those whose body has not arrived. Call {@link leave} at its end, which may come before the decision.
   */
  admit(arrival: Arrival, decide: (served: boolean) => void): void {
    const { site } = this.#senderOf(arrival)
    if (!this.#takeRequest(arrival, site)) {
      decide(false)
      return
    }
    if (!arrival.hasBody) {
      decide(true)
      return
    }
    if (this.#pendingBodies.tryTake(site)) {
      arrival.pendingFor = site
      if (this.#newlyPending.push(arrival) === 1) setImmediate(() => this.#releaseArrived())
      decide(true)
      return
    }
    // Headers are reported before the bytes behind them are parsed. By the next turn, they are.
    setImmediate(() => {
      const served = arrival.bodyArrived()
      if (!served) this.#pendingBodies.refused(site)
      decide(served)
    })
  }

  /** Ends a request. Without effect on one that was refused. */
  leave(arrival: Arrival): void {
    const { inProgress } = arrival
    if (inProgress === undefined) return
    arrival.inProgress = undefined
    inProgress.slots.leave(inProgress.site)
    this.#release(arrival)
  }

  /** Takes a slot; beyond the ceiling, or the network's share of it, one of the reserve for a probe. */
  #takeRequest(arrival: Arrival, site: string): boolean {
    if (this.#requests.tryTake(site)) {
      arrival.inProgress = { slots: this.#requests, site }
      return true
    }
    const reserve = this.#probes.get(arrival.unhinderedTarget?.split('?', 1)[0] ?? '')
    if (reserve?.tryTake(site) === true) {
      arrival.inProgress = { slots: reserve, site }
      return true
    }
    this.#requests.refused(site)
    return false
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
    this.#pendingBodies.leave(pendingFor)
  }

  /** The networks for which a connection counts: none for a proxy's, which carries the requests of many clients. */
  #networksOf(connected: Client): Partial<Client> {
    return this.behindProxy ? {} : connected
  }

  /**
   * The sender of a request: without a proxy, the client that connected; else the client that the proxy names, or the
   * proxy itself, such as with a probe of its own. An address that cannot be parsed counts as unknown.
   */
  #senderOf(arrival: Arrival): Client {
    const { headers, connected } = arrival
    if (!this.behindProxy || headers['x-forwarded-for'] === undefined) return connected
    return new Client(clientAddress(rawHeaders(headers), undefined, this.#trustedProxies))
  }
}
