import { getHeapStatistics } from 'node:v8'
import type { Logger } from './log.ts'

/**
 * The most that clients can hold at a time of this process or, through it, of the store, by the names of the settings.
 * `undefined` is no ceiling.
 */
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
  /** Open streams of events of all clients, over all protocols. */
  readonly maxStreams?: number | undefined
  /** Calls of all clients, over all protocols, that wait for the store. */
  readonly maxStoreCalls?: number | undefined
  /** Nonces that this process has issued and that are still in the store. */
  readonly maxNonces?: number | undefined
  /** Orders that this process has started and that are still in the store. */
  readonly maxOrders?: number | undefined
}

/**
 * Heap for each connection and for each request in progress, in bytes. An idle connection takes 6 KiB of the heap, a watch
 * 20 KiB at most, and a call that carries 64 KiB more: as many of all as these allow leave a quarter of the heap free.
 */
const heapPerConnection = 64 * 1024
const heapPerRequest = 96 * 1024

/**
 * Heap for each stream and for each call that waits for the store. Streams can take three quarters of the requests, and calls
 * that wait a quarter: neither a flood of watchers nor a store that hangs leaves no request for everything else.
 */
const heapPerStream = (heapPerRequest * 4) / 3
const heapPerStoreCall = heapPerRequest * 4

/** The ceilings of the settings; those that the settings leave open follow from the size of the heap. */
export function ceilingsFor(settings: CeilingLimits): CeilingLimits {
  const { heap_size_limit: heapBytes } = getHeapStatistics()
  const {
    maxConnections = Math.floor(heapBytes / heapPerConnection),
    maxRequests = Math.floor(heapBytes / heapPerRequest),
    maxStreams = Math.floor(heapBytes / heapPerStream),
    maxStoreCalls = Math.floor(heapBytes / heapPerStoreCall),
    maxConnectionsPerAddress,
    maxPendingBodies,
    maxPendingBodiesPerAddress,
    maxNonces,
    maxOrders,
  } = settings
  return {
    maxConnections,
    maxConnectionsPerAddress,
    maxRequests,
    maxPendingBodies,
    maxPendingBodiesPerAddress,
    maxStreams,
    maxStoreCalls,
    maxNonces,
    maxOrders,
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
  maxStreams: { ceiling: 'open streams', setting: 'COUNTERSIGN_MAX_STREAMS' },
  maxStoreCalls: { ceiling: 'calls that wait for the store', setting: 'COUNTERSIGN_MAX_STORE_CALLS' },
  maxNonces: { ceiling: 'live nonces', setting: 'COUNTERSIGN_MAX_NONCES' },
  maxOrders: { ceiling: 'live orders', setting: 'COUNTERSIGN_MAX_ORDERS' },
}

/** What a ceiling is at. */
export interface CeilingUse {
  /** Name of the setting. */
  readonly option: keyof CeilingLimits
  /** What clients hold at the moment. Absent if it is counted for each client apart. */
  readonly held?: number
  /** `Infinity` if there is no ceiling. */
  readonly most: number
  /** How many were turned away since the start of the process. */
  readonly refusals: number
}

/** Time between two log lines of one ceiling, in milliseconds. */
const logIntervalMs = 1000

/** One ceiling's number, and the log of those that it turned away. Who holds how much is counted by its owner. */
export class Ceiling {
  readonly most: number
  readonly #option: keyof CeilingLimits
  readonly #log: Logger
  /** Refusals that no log line stands for yet. */
  #refused = 0
  #refusals = 0
  #lastClient: string | undefined
  #silence: NodeJS.Timeout | undefined

  constructor(option: keyof CeilingLimits, limits: CeilingLimits, log: Logger) {
    this.#option = option
    this.most = limits[option] ?? Number.POSITIVE_INFINITY
    this.#log = log
  }

  /** Tells the log that a client was turned away: the first one at once, those of the second after it in one line. */
  refused(client: string | undefined): void {
    this.#refused++
    this.#refusals++
    this.#lastClient = client
    if (this.#silence === undefined) this.#tell()
  }

  /** What the ceiling is at. `held` is what its owner has counted for all clients together. */
  use(held?: number): CeilingUse {
    const { most } = this
    return { option: this.#option, most, refusals: this.#refusals, ...(held === undefined ? {} : { held }) }
  }

  #tell(): void {
    this.#log.warn('ceiling reached', {
      ...named[this.#option],
      most: this.most,
      refused: this.#refused,
      lastRefused: this.#lastClient,
    })
    this.#refused = 0
    this.#silence = setTimeout(() => {
      this.#silence = undefined
      if (this.#refused > 0) this.#tell()
    }, logIntervalMs).unref()
  }
}
