import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from '../../log.ts'
import { clientAddress, networkOf } from '../../request.ts'

/** The most that clients can hold of this process at a time, by the names of the settings. `undefined` is no ceiling. */
export interface CeilingLimits {
  /** Connections of all clients. */
  readonly maxConnections?: number | undefined
  /** Connections of one client address. Without effect behind a proxy, which has one address for all its clients. */
  readonly maxConnectionsPerAddress?: number | undefined
  /** Requests in progress of all clients, open streams included. */
  readonly maxRequests?: number | undefined
  /** Requests of all clients whose body has not arrived. */
  readonly maxPendingBodies?: number | undefined
  /** Requests of one client address whose body has not arrived. */
  readonly maxPendingBodiesPerAddress?: number | undefined
}

/** What {@link Ceilings} are made of. */
export interface CeilingParts {
  readonly limits: CeilingLimits
  /** Number of proxies in front that append to X-Forwarded-For. */
  readonly trustedProxies: number
  /** Told, at most once a second for each ceiling, that one was reached. */
  readonly log: Logger
}

/** A request for the ceilings to decide on, of either HTTP version. */
export interface Arrival {
  /** The client, as {@link Ceilings.networksOn} says it. */
  readonly network: string | undefined
  /** Whether the headers announce a body. */
  readonly hasBody: boolean
  /** Whether all of the body has arrived, read or not. */
  readonly bodyArrived: () => boolean
  /** Registers what to call once the body has been read. */
  readonly onBodyEnd: (listener: () => void) => void
  /** Registers what to call once the request is over. Called at most once. */
  readonly onClose: (listener: () => void) => void
  /** Makes what the handler needs and calls it. */
  readonly serve: () => void
  /** Tells the client to come back later. Not called if the client has gone. */
  readonly refuse: () => void
}

/** Counts what clients hold, and decides who gets more. */
export class Ceilings {
  readonly connections: Ceiling
  readonly #requests: Ceiling
  readonly #pendingBodies: Ceiling
  readonly #trustedProxies: number

  constructor({ limits, trustedProxies, log }: CeilingParts) {
    this.#trustedProxies = trustedProxies
    const ceiling = (inAll: keyof CeilingLimits, perAddress?: keyof CeilingLimits): Ceiling =>
      new Ceiling(new Limit(inAll, limits[inAll], log), perAddress && new Limit(perAddress, limits[perAddress], log))
    this.connections = ceiling('maxConnections', trustedProxies === 0 ? 'maxConnectionsPerAddress' : undefined)
    this.#requests = ceiling('maxRequests')
    this.#pendingBodies = ceiling('maxPendingBodies', 'maxPendingBodiesPerAddress')
  }

  /** Whether connections come from a proxy, and each is that of many clients. */
  get behindProxy(): boolean {
    return this.#trustedProxies > 0
  }

  /** What counts as one client: an IPv4 address or an IPv6 /64; `undefined` if the address is unknown. */
  networkOf(headers: IncomingHttpHeaders, remoteAddress: string | undefined): string | undefined {
    const get = (name: string): string | null => {
      const value = headers[name]
      return value === undefined ? null : String(value)
    }
    const address = clientAddress({ get }, remoteAddress, this.#trustedProxies)
    return address === undefined ? undefined : networkOf(address)
  }

  /** The same for the requests of one connection: without a proxy, they all come from one client. */
  networksOn(remoteAddress: string | undefined): (headers: IncomingHttpHeaders) => string | undefined {
    if (this.behindProxy) return (headers) => this.networkOf(headers, remoteAddress)
    const network = this.networkOf({}, remoteAddress)
    return () => network
  }

  /**
   * Has a request served or refused. A request whose body is there with its headers is not held up by others whose body
   * is not.
   */
  admit(arrival: Arrival): void {
    const { network, hasBody, serve, refuse } = arrival
    const tooMany = this.#requests.reachedBy(network)
    if (tooMany !== undefined) {
      tooMany.refused(network)
      refuse()
      return
    }
    // Counted from here on: it may be over before it is decided on.
    const requestOver = this.#requests.take(network)
    let bodyOver: (() => void) | undefined
    arrival.onClose(() => {
      bodyOver?.()
      requestOver()
    })
    if (!hasBody) {
      serve()
      return
    }
    const tooManyPending = this.#pendingBodies.reachedBy(network)
    if (tooManyPending === undefined) {
      bodyOver = this.#pendingBodies.take(network)
      arrival.onBodyEnd(bodyOver)
      serve()
      return
    }
    // Headers are told of before the bytes behind them have been looked at. By the next turn, they have been.
    setImmediate(() => {
      if (arrival.bodyArrived()) {
        serve()
      } else {
        tooManyPending.refused(network)
        refuse()
      }
    })
  }
}

/** Counts one kind of thing that clients hold, in all and for each client. */
class Ceiling {
  readonly #inAll: Limit
  readonly #perNetwork: Limit | undefined
  #held = 0
  readonly #heldBy = new Map<string, number>()

  constructor(inAll: Limit, perNetwork: Limit | undefined) {
    this.#inAll = inAll
    this.#perNetwork = perNetwork
  }

  /** The limit that leaves a client no room for one more; `undefined` if there is room. */
  reachedBy(network: string | undefined): Limit | undefined {
    if (this.#held >= this.#inAll.most) return this.#inAll
    if (this.#perNetwork === undefined || network === undefined) return undefined
    return (this.#heldBy.get(network) ?? 0) >= this.#perNetwork.most ? this.#perNetwork : undefined
  }

  /** Counts one more. Call the result when it is over; further calls of it do nothing. */
  take(network: string | undefined): () => void {
    this.#count(network, 1)
    let held = true
    return () => {
      if (held) this.#count(network, -1)
      held = false
    }
  }

  #count(network: string | undefined, change: 1 | -1): void {
    this.#held += change
    if (this.#perNetwork === undefined || network === undefined) return
    const held = (this.#heldBy.get(network) ?? 0) + change
    if (held === 0) this.#heldBy.delete(network)
    else this.#heldBy.set(network, held)
  }
}

/** What the log calls each ceiling, and the environment variable that sets it. */
const named: Readonly<Record<keyof CeilingLimits, { readonly ceiling: string; readonly setting: string }>> = {
  maxConnections: { ceiling: 'connections', setting: 'COUNTERSIGN_MAX_CONNECTIONS' },
  maxConnectionsPerAddress: {
    ceiling: 'connections of one address',
    setting: 'COUNTERSIGN_MAX_CONNECTIONS_PER_ADDRESS',
  },
  maxRequests: { ceiling: 'requests in progress', setting: 'COUNTERSIGN_MAX_REQUESTS' },
  maxPendingBodies: {
    ceiling: 'requests whose body has not arrived',
    setting: 'COUNTERSIGN_MAX_PENDING_BODIES',
  },
  maxPendingBodiesPerAddress: {
    ceiling: 'requests of one address whose body has not arrived',
    setting: 'COUNTERSIGN_MAX_PENDING_BODIES_PER_ADDRESS',
  },
}

/** Time between two log lines of one ceiling, in milliseconds. */
const logIntervalMs = 1000

/** One ceiling's number, and the log of those that it turned away. */
class Limit {
  readonly most: number
  readonly #option: keyof CeilingLimits
  readonly #log: Logger
  #refused = 0
  #lastNetwork: string | undefined
  #silence: NodeJS.Timeout | undefined

  constructor(option: keyof CeilingLimits, most: number | undefined, log: Logger) {
    this.#option = option
    this.most = most ?? Number.POSITIVE_INFINITY
    this.#log = log
  }

  /** Tells the log that a client was turned away: the first one at once, those of the second after it in one line. */
  refused(network: string | undefined): void {
    this.#refused++
    this.#lastNetwork = network
    if (this.#silence === undefined) this.#tell()
  }

  #tell(): void {
    this.#log.warn('ceiling reached', {
      ...named[this.#option],
      most: this.most,
      refused: this.#refused,
      lastRefused: this.#lastNetwork,
    })
    this.#refused = 0
    this.#silence = setTimeout(() => {
      this.#silence = undefined
      if (this.#refused > 0) this.#tell()
    }, logIntervalMs).unref()
  }
}
