import type { IncomingHttpHeaders } from 'node:http'
import { Ceiling, type CeilingLimits, type CeilingUse } from '../../ceiling.ts'
import type { Logger } from '../../log.ts'
import { networkOf } from '../../networks.ts'
import { clientAddress } from '../../request.ts'

/** What {@link Ceilings} are made of. */
export interface CeilingParts {
  readonly limits: CeilingLimits
  /** Number of proxies in front that append to X-Forwarded-For. */
  readonly trustedProxies: number
  /** Told, at most once a second for each ceiling, that one was reached. */
  readonly log: Logger
}

/** One client and what it holds. */
export class Client {
  readonly address: string | undefined
  /** What counts as one client: an IPv4 address or an IPv6 /64; `undefined` if the address is unknown. */
  readonly network: string | undefined
  connections = 0
  pendingBodies = 0

  constructor(address: string | undefined, network: string | undefined) {
    this.address = address
    this.network = network
  }
}

/** A request for the ceilings to decide on, of either HTTP version, and what they have counted of it. */
export abstract class Arrival {
  /** Whether it counts as in progress. For {@link Ceilings} only. */
  counted = false
  /** The client for which it counts as one whose body has not arrived. For {@link Ceilings} only. */
  pendingFor: Client | undefined = undefined

  /** The client that connected. */
  readonly connected: Client

  constructor(connected: Client) {
    this.connected = connected
  }

  abstract headers(): IncomingHttpHeaders
  /** What it asks for (a path, perhaps with a query), if nothing holds its answer up: neither a body nor earlier requests. */
  abstract unhinderedTarget(): string | undefined
  /** Whether the headers announce a body. */
  abstract hasBody(): boolean
  /** Whether all of the body has arrived, read or not. */
  abstract bodyArrived(): boolean
  /** Registers what to call once the body has been read. */
  abstract onBodyEnd(listener: () => void): void
}

/**
 * Requests beyond maxRequests in which a probe is still answered, by its path. An orchestrator ends a process whose liveness
 * probe fails, and a busy one must live. A probe of readiness waits for the store: these cannot take the room of the others.
 */
const probeReserve: ReadonlyMap<string, number> = new Map([
  ['/healthz', 16],
  ['/readyz', 8],
])

/** Counts what clients hold, and decides who gets more. */
export class Ceilings {
  readonly #trustedProxies: number
  readonly #maxConnections: Ceiling
  readonly #maxConnectionsPerAddress: Ceiling
  readonly #maxRequests: Ceiling
  readonly #maxPendingBodies: Ceiling
  readonly #maxPendingBodiesPerAddress: Ceiling
  #connections = 0
  #requests = 0
  #pendingBodies = 0
  /** Clients that hold something. */
  readonly #clients = new Map<string, Client>()
  /** Requests of this turn of the event loop whose body has not arrived. */
  #newlyPending: Arrival[] = []

  constructor({ limits, trustedProxies, log }: CeilingParts) {
    this.#trustedProxies = trustedProxies
    const ceiling = (option: keyof CeilingLimits): Ceiling => new Ceiling(option, limits, log)
    this.#maxConnections = ceiling('maxConnections')
    this.#maxConnectionsPerAddress = ceiling('maxConnectionsPerAddress')
    this.#maxRequests = ceiling('maxRequests')
    this.#maxPendingBodies = ceiling('maxPendingBodies')
    this.#maxPendingBodiesPerAddress = ceiling('maxPendingBodiesPerAddress')
  }

  /** Whether connections come from a proxy, and each is that of many clients. */
  get behindProxy(): boolean {
    return this.#trustedProxies > 0
  }

  /** What each of the ceilings is at. */
  uses(): readonly CeilingUse[] {
    return [
      this.#maxConnections.use(this.#connections),
      this.#maxConnectionsPerAddress.use(),
      this.#maxRequests.use(this.#requests),
      this.#maxPendingBodies.use(this.#pendingBodies),
      this.#maxPendingBodiesPerAddress.use(),
    ]
  }

  /** Counts a connection and returns its client; `undefined` if there is one too many. End it with {@link disconnect}. */
  connect(remoteAddress: string | undefined): Client | undefined {
    const client = this.#client({}, remoteAddress)
    const tooMany = this.#tooManyConnections(client)
    if (tooMany !== undefined) {
      tooMany.refused(client.network)
      return undefined
    }
    this.#keep(client)
    this.#connections++
    client.connections++
    return client
  }

  /** A connection is over. */
  disconnect(client: Client): void {
    this.#connections--
    client.connections--
    this.#forgetIfIdle(client)
  }

  /**
   * Decides whether a request is served, at once or in the next turn. A request whose body is there with its headers is
   * not held up by others whose body is not. Call {@link leave} once it is over, which may be before it is decided on.
   */
  admit(arrival: Arrival, decide: (served: boolean) => void): void {
    if (this.#requests >= this.#maxRequests.most && !this.#isReserved(arrival)) {
      this.#maxRequests.refused(this.#senderOf(arrival).network)
      decide(false)
      return
    }
    this.#requests++
    arrival.counted = true
    if (!arrival.hasBody()) {
      decide(true)
      return
    }
    const client = this.#senderOf(arrival)
    const tooManyPending = this.#tooManyPending(client)
    if (tooManyPending === undefined) {
      this.#keep(client)
      this.#pendingBodies++
      client.pendingBodies++
      arrival.pendingFor = client
      if (this.#newlyPending.push(arrival) === 1) setImmediate(() => this.#releaseArrived())
      decide(true)
      return
    }
    // Headers are told of before the bytes behind them have been looked at. By the next turn, they have been.
    setImmediate(() => {
      const served = arrival.bodyArrived()
      if (!served) tooManyPending.refused(client.network)
      decide(served)
    })
  }

  /** A request is over. Does nothing for one that was not admitted. */
  leave(arrival: Arrival): void {
    if (!arrival.counted) return
    arrival.counted = false
    this.#requests--
    this.#release(arrival)
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
    const client = arrival.pendingFor
    if (client === undefined) return
    arrival.pendingFor = undefined
    this.#pendingBodies--
    client.pendingBodies--
    this.#forgetIfIdle(client)
  }

  #isReserved(arrival: Arrival): boolean {
    const reserved = probeReserve.get(arrival.unhinderedTarget()?.split('?', 1)[0] ?? '') ?? 0
    return this.#requests < this.#maxRequests.most + reserved
  }

  #tooManyConnections({ network, connections }: Client): Ceiling | undefined {
    if (this.#connections >= this.#maxConnections.most) return this.#maxConnections
    if (this.behindProxy || network === undefined) return undefined
    return connections >= this.#maxConnectionsPerAddress.most ? this.#maxConnectionsPerAddress : undefined
  }

  #tooManyPending({ network, pendingBodies }: Client): Ceiling | undefined {
    if (this.#pendingBodies >= this.#maxPendingBodies.most) return this.#maxPendingBodies
    if (network === undefined) return undefined
    return pendingBodies >= this.#maxPendingBodiesPerAddress.most ? this.#maxPendingBodiesPerAddress : undefined
  }

  /** Who sent a request: without a proxy, all requests of a connection come from one client. */
  #senderOf(arrival: Arrival): Client {
    const { connected } = arrival
    // Without a header, it is the proxy itself.
    return this.behindProxy ? this.#client(arrival.headers(), connected.address) : connected
  }

  /** The client at an address. One that holds nothing is new each time. */
  #client(headers: IncomingHttpHeaders, remoteAddress: string | undefined): Client {
    const get = (name: string): string | null => {
      const value = headers[name]
      return value === undefined ? null : String(value)
    }
    const address = clientAddress({ get }, remoteAddress, this.#trustedProxies)
    const network = address === undefined ? undefined : networkOf(address)
    return (network === undefined ? undefined : this.#clients.get(network)) ?? new Client(address, network)
  }

  #keep(client: Client): void {
    const { network, connections, pendingBodies } = client
    if (network !== undefined && connections + pendingBodies === 0) this.#clients.set(network, client)
  }

  #forgetIfIdle({ network, connections, pendingBodies }: Client): void {
    if (network !== undefined && connections + pendingBodies === 0) this.#clients.delete(network)
  }
}
