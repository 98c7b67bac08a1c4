import { getHeapStatistics } from 'node:v8'
import type { Logger } from '../base/log.ts'
import { networksOf, siteOf } from '../base/request.ts'
import { hashToken } from '../base/token.ts'
import { serverBusy } from '../shared/errors.ts'
import type { Store } from '../store/store.ts'
import { type Limits, mostInstances, networkShares, rateLimited } from './limits.ts'

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
  /** Open streams of events of all clients, over all protocols. */
  readonly maxStreams?: number | undefined
  /** Calls of all clients, over all protocols, that wait for the store. */
  readonly maxStoreCalls?: number | undefined
  /** Nonces that this process has issued and that are still in the store. */
  readonly maxNonces?: number | undefined
  /** Orders that this process has started and that are still in the store. */
  readonly maxOrders?: number | undefined
  /** Part of each of these that one network may hold, up to 1. Default: 1. */
  readonly networkShare?: number | undefined
}

/** Name of a ceiling, which is that of its setting if it has one. */
export type CeilingName = Exclude<keyof CeilingLimits, 'networkShare'>

/**
 * Heap for each connection and for each request in progress, in bytes. An idle connection takes 6 KiB of the heap, a
 * watch 20 KiB at most, and a call that carries 64 KiB more: as many of all as these allow leave a quarter of the heap
 * free.
 */
const heapPerConnection = 64 * 1024
const heapPerRequest = 96 * 1024

/** Part of a ceiling that one network may hold, an IPv6 /48 at most, so that its flood turns no other network away. */
const networkShare = 1 / 4

/**
 * The ceilings of the settings; those that the settings leave open follow from the size of the heap. Streams can take
 * three quarters of the requests that fit into it, and calls that wait for the store a quarter: neither a flood of
 * watchers nor a store that hangs leaves no request for everything else. Without limits on what clients do, a network
 * may hold all.
 */
export function ceilingsFor(settings: CeilingLimits & { readonly rateLimit: boolean }): CeilingLimits {
  const { heap_size_limit: heapBytes } = getHeapStatistics()
  const { maxConnections, maxConnectionsPerAddress, maxPendingBodies, maxStreams, maxNonces, maxOrders } = settings
  const fitting = Math.floor(heapBytes / heapPerRequest)
  const maxRequests = settings.maxRequests ?? fitting
  return {
    maxConnections: maxConnections ?? Math.floor(heapBytes / heapPerConnection),
    maxConnectionsPerAddress,
    maxRequests,
    maxPendingBodies,
    maxStreams: maxStreams ?? Math.floor(fitting * (3 / 4)),
    maxStoreCalls: Math.ceil(Math.min(maxRequests, fitting) / 4),
    maxNonces,
    maxOrders,
    networkShare: settings.rateLimit ? networkShare : 1,
  }
}

/** What the log calls each ceiling, and the environment variable that sets it. */
const named: Readonly<Record<CeilingName, { readonly ceiling: string; readonly setting: string }>> = {
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
  maxStreams: { ceiling: 'open streams', setting: 'COUNTERSIGN_MAX_STREAMS' },
  // A quarter of the requests.
  maxStoreCalls: { ceiling: 'calls that wait for the store', setting: 'COUNTERSIGN_MAX_REQUESTS' },
  maxNonces: { ceiling: 'live nonces', setting: 'COUNTERSIGN_MAX_NONCES' },
  maxOrders: { ceiling: 'live orders', setting: 'COUNTERSIGN_MAX_ORDERS' },
}

/** What a ceiling is at. */
export interface CeilingUse {
  readonly option: CeilingName
  /** What clients hold at the moment. Absent if it is counted for each client apart. */
  readonly held?: number
  /** `Infinity` if there is no ceiling. */
  readonly most: number
  /** How many were turned away since the start of the process. */
  readonly refusals: number
}

/** How many slots each network holds. One that holds none takes no memory. */
class Held {
  readonly #slots = new Map<string, number>()

  of(network: string): number {
    return this.#slots.get(network) ?? 0
  }

  add(network: string, slots: number): void {
    const held = this.of(network) + slots
    if (held > 0) this.#slots.set(network, held)
    else this.#slots.delete(network)
  }
}

/** How slots are taken. */
interface SlotOptions {
  /** How many. Default: 1. */
  readonly slots?: number
  /** How many beyond the ceiling can be taken, too. Default: none. */
  readonly reserve?: number
}

/** Time between two log lines of one ceiling, in milliseconds. */
const logIntervalMs = 1000

/**
 * Slots for what is in progress at a time: as many as a ceiling says, and for each network a share of them. The log is
 * told who was turned away: of the first at once, of those of the second after it in one line.
 */
export class Concurrency {
  readonly #option: CeilingName
  readonly #most: number
  readonly #mostOfNetwork: number
  readonly #log: Logger
  readonly #held = new Held()
  #taken = 0
  #refusals = 0
  /** Refusals that no log line stands for yet. */
  #unlogged = 0
  #lastRefused: string | undefined
  #silence: NodeJS.Timeout | undefined

  constructor(option: CeilingName, limits: CeilingLimits, log: Logger) {
    const most = limits[option] ?? Number.POSITIVE_INFINITY
    const perAddress = option === 'maxConnectionsPerAddress'
    this.#option = option
    this.#most = perAddress ? Number.POSITIVE_INFINITY : most
    this.#mostOfNetwork = perAddress ? most : Math.max(1, Math.floor(most * (limits.networkShare ?? 1)))
    this.#log = log
  }

  /** Takes slots as {@link tryTake} does, and tells the log if there are none. */
  take(network: string | undefined, options: SlotOptions = {}): boolean {
    const taken = this.tryTake(network, options)
    if (!taken) this.refused(network)
    return taken
  }

  /**
   * Takes slots for a network; `undefined` is an unknown one, or one without a share. False if the ceiling or the
   * network's share of it is reached.
   */
  tryTake(network: string | undefined, { slots = 1, reserve = 0 }: SlotOptions = {}): boolean {
    if (this.#taken + slots > this.#most + reserve) return false
    if (network !== undefined && this.#held.of(network) + slots > this.#mostOfNetwork) return false
    this.#add(network, slots)
    return true
  }

  /** Gives slots back that the network took. */
  leave(network: string | undefined, slots = 1): void {
    this.#add(network, -slots)
  }

  use(): CeilingUse {
    const common = { option: this.#option, refusals: this.#refusals }
    if (this.#option === 'maxConnectionsPerAddress') return { ...common, most: this.#mostOfNetwork }
    return { ...common, most: this.#most, held: this.#taken }
  }

  #add(network: string | undefined, slots: number): void {
    this.#taken += slots
    if (network !== undefined) this.#held.add(network, slots)
  }

  /** Tells the log that a network was turned away. */
  refused(network: string | undefined): void {
    this.#unlogged++
    this.#refusals++
    this.#lastRefused = network
    if (this.#silence === undefined) this.#tell()
  }

  #tell(): void {
    // The share of one network, unless there is no slot left for any.
    const most = this.#taken < this.#most ? this.#mostOfNetwork : this.#most
    const lastRefused = this.#lastRefused
    this.#log.warn('ceiling reached', { ...named[this.#option], most, refused: this.#unlogged, lastRefused })
    this.#unlogged = 0
    this.#silence = setTimeout(() => {
      this.#silence = undefined
      if (this.#unlogged > 0) this.#tell()
    }, logIntervalMs).unref()
  }
}

/** What a watcher is told to wait, in milliseconds: until another one leaves, which cannot be foretold. */
const watcherRetryMs = 5_000

/** Limits the streams of an address and the networks around it that are open in this process. */
export class Watchers {
  readonly #perAddress: number
  readonly #held = new Held()

  constructor({ watchers }: Pick<Limits, 'watchers'>) {
    this.#perAddress = watchers
  }

  /**
   * Takes a slot in each network of an address. Returns what gives them back, once. Throws
   * RATE_LIMITED if one has none left. An unknown address is not counted.
   */
  enter(ip: string | undefined): () => void {
    const networks = ip === undefined ? [] : networksOf(ip)
    const isFull = (network: string, width: number): boolean =>
      this.#held.of(network) >= this.#perAddress * (networkShares[width] as number)
    if (networks.some(isFull)) throw rateLimited('watchers', watcherRetryMs)
    for (const network of networks) this.#held.add(network, 1)
    return () => {
      for (const network of networks) this.#held.add(network, -1)
    }
  }
}

/**
 * Most pairs of a network and a second that {@link LiveCount} keeps apart. Records beyond them count for no network.
 */
const maxPairs = 50_000

/** The network of records whose own one is not counted. */
const noNetwork = ''

/**
 * Counts the records that this process has stored and whose life in the store is not over, so that callers, however
 * many they are, cannot fill the store. What other processes stored is counted by them.
 *
 * Counts are kept for each second in which lives end, and in it for each network, not for each record, so the memory is
 * bounded. Times are epoch milliseconds.
 */
export class LiveCount {
  readonly #slots: Concurrency
  /** By second: how many records of each network end in it. */
  readonly #ending = new Map<number, Map<string, number>>()
  #pairs = 0
  /** The second in which the lives that are over were last looked for. */
  #lookedAt: number | undefined

  constructor(slots: Concurrency) {
    this.#slots = slots
  }

  /**
   * Counts a record that is about to be stored until `endsAt`, as `slots` records if it is a large one. SERVER_BUSY if
   * there is no room for it; then nothing is counted.
   *
   * A record stays counted if storing it fails: a store that does not answer in time may have stored it all the same.
   */
  add(endsAt: number, now: number, ip: string | undefined, slots = 1): void {
    this.#forgetEnded(now)
    const network = ip === undefined || this.#pairs >= maxPairs ? noNetwork : siteOf(ip)
    if (!this.#slots.take(network || undefined, { slots })) throw serverBusy()
    const second = secondOf(endsAt)
    const counts = this.#ending.get(second) ?? new Map<string, number>()
    this.#ending.set(second, counts)
    const count = counts.get(network)
    if (count === undefined) this.#pairs++
    counts.set(network, (count ?? 0) + slots)
  }

  /** What the ceiling is at, `now`. */
  use(now: number): CeilingUse {
    this.#forgetEnded(now)
    return this.#slots.use()
  }

  /**
   * Counts a record out that was removed before its end, or was not stored after all, by a caller at `ip`. One that
   * another network or process stored is counted out in place of another one that ends in the same second here, if
   * there is one: over all processes the number is right.
   */
  remove(endsAt: number, ip: string | undefined, slots = 1): void {
    const counts = this.#ending.get(secondOf(endsAt))
    if (counts === undefined) return
    const own = ip === undefined ? noNetwork : siteOf(ip)
    const network = counts.has(own) ? own : (counts.keys().next().value as string)
    const count = counts.get(network) as number
    this.#slots.leave(network || undefined, Math.min(count, slots))
    if (count > slots) {
      counts.set(network, count - slots)
      return
    }
    counts.delete(network)
    this.#pairs--
    if (counts.size === 0) this.#ending.delete(secondOf(endsAt))
  }

  /** Looks at every second, because a clock that was set has mixed up their order; they are a few thousand at most. */
  #forgetEnded(now: number): void {
    const current = Math.floor(now / 1000)
    if (current === this.#lookedAt) return
    this.#lookedAt = current
    for (const [second, counts] of this.#ending) {
      if (second > current) continue
      this.#ending.delete(second)
      this.#pairs -= counts.size
      for (const [network, count] of counts) this.#slots.leave(network || undefined, count)
    }
  }
}

/** The first full second at which a life is over. */
function secondOf(endsAt: number): number {
  return Math.ceil(endsAt / 1000)
}

/** What a caller is told to wait, in milliseconds, if others of its network are being let in. */
const retryAfterMs = 1_000

/** What is known of an order here. Times are epoch milliseconds by the store's clock. */
export interface OpenOrder {
  readonly orderId: string
  readonly expiresAt: number
  /** The desktop's. `ip` is empty if it is unknown; then nothing is counted. */
  readonly requester: { readonly ip: string }
}

/** The open orders of one network. */
interface OrdersOfNetwork {
  readonly set: string
  readonly most: number
}

/**
 * Limits the orders that are open at a time for the address of the requester and the networks around it, over all
 * instances that share a store. They are a set in the store, which an order is added to while it is stored and leaves
 * when it is over; the store itself lets it go at the end of its life.
 */
export class OpenOrders {
  readonly #limits: Limits
  readonly #store: Store
  /** How many orders of each set are being added here. */
  readonly #entering = new Map<string, number>()

  constructor(limits: Limits, store: Store) {
    this.#limits = limits
    this.#store = store
  }

  /**
   * Adds an order. Rejects with RATE_LIMITED, and the time until the first of its network ends, if that has too many;
   * then the order is not counted. If the store does not answer, nothing is counted.
   */
  async add(order: OpenOrder): Promise<void> {
    const member = memberOf(order)
    const life = { ttlMs: Math.max(1, order.expiresAt - this.#store.now()) }
    const surplus = await this.#entered(networksOfOrder(order, this.#limits), ({ set, most }) =>
      this.#store.addMember(set, member, life, most).catch(() => []),
    )
    if (surplus.length === 0) return
    this.remove(order)
    const ends = surplus.map((open) => Number(open.split('.', 1)[0]) - this.#store.now())
    throw rateLimited('open-orders', Math.max(1, ...ends))
  }

  /**
   * Counts an order out that is over. It is not waited for: at the end of its life the order counts no longer anyway.
   */
  remove(order: OpenOrder): void {
    const member = memberOf(order)
    for (const { set } of networksOfOrder(order, this.#limits)) {
      void this.#store.removeMember(set, member).catch(() => {})
    }
  }

  /**
   * Adds to several sets at once; resolves with the first surplus of each that has one. Few enough at a time that no
   * set grows to twice its bound: the store would drop orders that are open, to make room for those that are about to
   * be refused.
   */
  async #entered(
    networks: readonly OrdersOfNetwork[],
    enter: (network: OrdersOfNetwork) => Promise<readonly string[]>,
  ): Promise<readonly string[]> {
    const entering = this.#entering
    for (const { set, most } of networks) {
      const room = Math.max(1, Math.floor(most / mostInstances))
      if ((entering.get(set) ?? 0) >= room) throw rateLimited('open-orders', retryAfterMs)
    }
    for (const { set } of networks) entering.set(set, (entering.get(set) ?? 0) + 1)
    try {
      return (await Promise.all(networks.map(enter))).flatMap((surplus) => surplus.slice(0, 1))
    } finally {
      for (const { set } of networks) {
        const left = (entering.get(set) as number) - 1
        if (left > 0) entering.set(set, left)
        else entering.delete(set)
      }
    }
  }
}

function networksOfOrder({ requester: { ip } }: OpenOrder, limits: Limits): OrdersOfNetwork[] {
  if (ip === '') return []
  return networksOf(ip).map((network, width) => ({
    set: `open-orders:${hashToken(network)}`,
    most: limits['open-orders'] * (networkShares[width] as number),
  }))
}

/** Begins with the end, so that those who have to wait for it can be told. */
function memberOf({ orderId, expiresAt }: OpenOrder): string {
  return `${expiresAt}.${orderId}`
}
