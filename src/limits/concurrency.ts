import { hash, randomUUID } from 'node:crypto'
import { getHeapStatistics } from 'node:v8'
import type { Logger } from '../base/log.ts'
import { networksOf, siteOf } from '../base/request.ts'
import { hashToken } from '../base/token.ts'
import { serverBusy } from '../shared/errors.ts'
import type { Store } from '../store/store.ts'
import { type Limits, mostInstances, networkShares, rateLimited } from './limits.ts'

/**
 * Ceilings on what clients hold at a time in this process or, through it, in the store, by the names of the settings.
 * `undefined` is no ceiling.
 */
export interface CeilingLimits {
  /** Connections of all clients. */
  readonly connections?: number | undefined
  /** Connections of one client address. Without effect behind a proxy, whose one address is that of all its clients. */
  readonly connectionsPerAddress?: number | undefined
  /** Requests in progress of all clients, open streams included. */
  readonly requests?: number | undefined
  /** Requests of all clients whose body has not arrived. */
  readonly pendingBodies?: number | undefined
  /** Open streams of events of all clients, over all protocols. */
  readonly streams?: number | undefined
  /** Calls of all clients, over all protocols, that wait for the store. */
  readonly storeCalls?: number | undefined
  /** Nonces that this process has issued and that are still in the store. */
  readonly nonces?: number | undefined
  /** Orders that this process has started and that are still in the store. */
  readonly orders?: number | undefined
  /** Share of each of these that one network may hold, up to 1. Default: 1. */
  readonly networkShare?: number | undefined
}

/** Name of a ceiling: the name of its setting, if it has one. */
export type CeilingName = Exclude<keyof CeilingLimits, 'networkShare'>

/**
 * Heap for each connection and for each request in progress, in bytes. An idle connection takes 6 KiB of the heap, a
 * watch at most 20 KiB, a call with the largest body 64 KiB more: at all ceilings a quarter of the heap stays free.
 */
const heapPerConnection = 64 * 1024
const heapPerRequest = 96 * 1024

/**
 * Share of a ceiling that one network, at most an IPv6 /48, may hold: the flood of one network turns no other one away.
 */
const networkShare = 1 / 4

/** The settings of the ceilings. */
export interface CeilingSettings {
  readonly rateLimit: boolean
  readonly limits: Omit<CeilingLimits, 'storeCalls' | 'networkShare'>
}

/**
 * The ceilings of the settings; those left open follow from the size of the heap. Streams can take three quarters of
 * the requests that fit into it, and calls that wait for the store a quarter: a flood of watchers, or a store that
 * hangs, leaves room for all other requests. Without rate limits, one network may hold all.
 */
export function ceilingsFor({ rateLimit, limits }: CeilingSettings): CeilingLimits {
  const { heap_size_limit: heapBytes } = getHeapStatistics()
  const fitting = Math.floor(heapBytes / heapPerRequest)
  const requests = limits.requests ?? fitting
  return {
    connections: limits.connections ?? Math.floor(heapBytes / heapPerConnection),
    connectionsPerAddress: limits.connectionsPerAddress,
    requests,
    pendingBodies: limits.pendingBodies,
    streams: limits.streams ?? Math.floor(fitting * (3 / 4)),
    storeCalls: Math.ceil(Math.min(requests, fitting) / 4),
    nonces: limits.nonces,
    orders: limits.orders,
    networkShare: rateLimit ? networkShare : 1,
  }
}

/** Name of each ceiling in the log, and its environment variable. */
const named: Readonly<Record<CeilingName, { readonly ceiling: string; readonly setting: string }>> = {
  connections: { ceiling: 'connections', setting: 'COUNTERSIGN_MAX_CONNECTIONS' },
  connectionsPerAddress: {
    ceiling: 'connections of one address',
    setting: 'COUNTERSIGN_MAX_CONNECTIONS_PER_ADDRESS',
  },
  requests: { ceiling: 'requests in progress', setting: 'COUNTERSIGN_MAX_REQUESTS' },
  pendingBodies: {
    ceiling: 'requests whose body has not arrived',
    setting: 'COUNTERSIGN_MAX_PENDING_BODIES',
  },
  streams: { ceiling: 'open streams', setting: 'COUNTERSIGN_MAX_STREAMS' },
  // A quarter of the requests.
  storeCalls: { ceiling: 'calls that wait for the store', setting: 'COUNTERSIGN_MAX_REQUESTS' },
  nonces: { ceiling: 'live nonces', setting: 'COUNTERSIGN_MAX_NONCES' },
  orders: { ceiling: 'live orders', setting: 'COUNTERSIGN_MAX_ORDERS' },
}

/** Present use of a ceiling. */
export interface CeilingUse {
  readonly option: CeilingName
  /** Number held by all clients. Absent if each client is counted by itself. */
  readonly held?: number
  /** `Infinity` without a ceiling. */
  readonly most: number
  /** Number of refusals since the start of the process. */
  readonly refusals: number
}

/** Slots that each network holds. A network without any takes no memory. */
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

/** A semaphore: slots up to a ceiling, and for each network a share of them. */
export class SharedSlots {
  protected readonly most: number
  protected readonly mostOfNetwork: number
  readonly #held = new Held()
  #taken = 0

  constructor(most: number, mostOfNetwork: number) {
    this.most = most
    this.mostOfNetwork = mostOfNetwork
  }

  /** Number of slots that are taken. */
  get taken(): number {
    return this.#taken
  }

  /**
   * Takes slots for a network; without one, for what is of no network, such as a proxy's connection. `false` at the
   * ceiling, or at the network's share of it.
   */
  tryTake(network: string | undefined, slots = 1): boolean {
    if (this.#taken + slots > this.most) return false
    if (network !== undefined && this.#held.of(network) + slots > this.mostOfNetwork) return false
    this.#add(network, slots)
    return true
  }

  /** Gives back slots of a network. */
  leave(network: string | undefined, slots = 1): void {
    this.#add(network, -slots)
  }

  #add(network: string | undefined, slots: number): void {
    this.#taken += slots
    if (network !== undefined) this.#held.add(network, slots)
  }
}

/** The share of a number of slots that one network may hold: at least one. */
export function shareOf(most: number, { networkShare = 1 }: CeilingLimits): number {
  return Math.max(1, Math.floor(most * networkShare))
}

/** Time between two log lines of one ceiling, in ms. */
const logIntervalMs = 1000

/**
 * The slots of a ceiling of the settings. The first refusal is logged at once, those of the second after it in one
 * line.
 */
export class Concurrency extends SharedSlots {
  readonly #option: CeilingName
  readonly #log: Logger
  #refusals = 0
  /** Refusals since the last log line. */
  #unlogged = 0
  #lastRefused: string | undefined
  #silence: NodeJS.Timeout | undefined

  constructor(option: CeilingName, limits: CeilingLimits, log: Logger) {
    const most = limits[option] ?? Number.POSITIVE_INFINITY
    if (option === 'connectionsPerAddress') super(Number.POSITIVE_INFINITY, most)
    else super(most, shareOf(most, limits))
    this.#option = option
    this.#log = log
  }

  /** Takes slots as {@link tryTake} does, and logs a refusal. */
  take(network: string | undefined, slots = 1): boolean {
    const taken = this.tryTake(network, slots)
    if (!taken) this.refused(network)
    return taken
  }

  use(): CeilingUse {
    const common = { option: this.#option, refusals: this.#refusals }
    if (this.#option === 'connectionsPerAddress') return { ...common, most: this.mostOfNetwork }
    return { ...common, most: this.most, held: this.taken }
  }

  /** Logs that a network was turned away. */
  refused(network: string | undefined): void {
    this.#unlogged++
    this.#refusals++
    this.#lastRefused = network
    if (this.#silence === undefined) this.#report()
  }

  #report(): void {
    // The network's share was the reason, unless all slots are taken.
    const most = this.taken < this.most ? this.mostOfNetwork : this.most
    const lastRefused = this.#lastRefused
    this.#log.warn('ceiling reached', { ...named[this.#option], most, refused: this.#unlogged, lastRefused })
    this.#unlogged = 0
    this.#silence = setTimeout(() => {
      this.#silence = undefined
      if (this.#unlogged > 0) this.#report()
    }, logIntervalMs).unref()
  }
}

/** Time after which a refused watcher may retry, in ms. When another one leaves cannot be known. */
const watcherRetryMs = 5_000

/** Limits open streams of an address and of the networks around it, in this process. */
export class WatcherCounts {
  readonly #perAddress: number
  readonly #held = new Held()

  constructor({ watchers }: Pick<Limits, 'watchers'>) {
    this.#perAddress = watchers
  }

  /**
   * Takes a slot in each network of an address. Returns the function that gives them back, once. Throws RATE_LIMITED if
   * one network has no slot left. An unknown address is not counted.
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
 * Most pairs of a network and a second in {@link LiveCount}. Further records count for groups of networks, which adds
 * at most 256 pairs for each second.
 */
const maxPairs = 50_000

/**
 * Count of the records that this process has stored and that are still alive in the store, so that no number of callers
 * can fill the store. Each process counts its own.
 *
 * Counts are kept by the second in which lives end, and within it by network, not by record, so the memory is bounded.
 * Times are epoch milliseconds.
 */
export class LiveCount {
  readonly #slots: Concurrency
  /** By second: the number of records of each network, or group of networks, that end in it. */
  readonly #ending = new Map<number, Map<string, number>>()
  /** Keeps clients from choosing their group. */
  readonly #groupKey = randomUUID()
  #pairs = 0
  /** The second of the last search for lives that are over. */
  #lookedAt: number | undefined

  constructor(slots: Concurrency) {
    this.#slots = slots
  }

  /**
   * Counts a record, before it is stored, until `endsAt`; a large one counts as `slots` records. SERVER_BUSY without
   * room for it; then nothing is counted.
   *
   * A record stays counted if storing it fails: a store that does not answer in time may have stored it.
   */
  add(endsAt: number, now: number, ip: string | undefined, slots = 1): void {
    this.#forgetEnded(now)
    const site = siteOf(ip)
    const network = this.#pairs < maxPairs ? site : this.#groupOf(site)
    if (!this.#slots.tryTake(network, slots)) {
      this.#slots.refused(site)
      throw serverBusy()
    }
    const second = secondOf(endsAt)
    const counts = this.#ending.get(second) ?? new Map<string, number>()
    this.#ending.set(second, counts)
    const count = counts.get(network)
    if (count === undefined) this.#pairs++
    counts.set(network, (count ?? 0) + slots)
  }

  /** Slots that a record of so many bytes takes. */
  slotsOf(bytes: number): number {
    return Math.ceil(bytes / bytesOfSlot)
  }

  /** Use of the ceiling at `now`. */
  use(now: number): CeilingUse {
    this.#forgetEnded(now)
    return this.#slots.use()
  }

  /**
   * Takes a record out of the count that was removed before its end, or never stored, by a caller at `ip`. A record of
   * another network or process is taken out in place of one that ends in the same second here, if there is one: the sum
   * over all processes is right.
   */
  remove(endsAt: number, ip: string | undefined, slots = 1): void {
    const counts = this.#ending.get(secondOf(endsAt))
    if (counts === undefined) return
    const site = siteOf(ip)
    const own = counts.has(site) ? site : this.#groupOf(site)
    const network = counts.has(own) ? own : (counts.keys().next().value as string)
    const count = counts.get(network) as number
    this.#slots.leave(network, Math.min(count, slots))
    if (count > slots) {
      counts.set(network, count - slots)
      return
    }
    counts.delete(network)
    this.#pairs--
    if (counts.size === 0) this.#ending.delete(secondOf(endsAt))
  }

  /** One of 256 groups of networks. A group has the share of one network. */
  #groupOf(site: string): string {
    return `group ${hash('sha256', this.#groupKey + site).slice(0, 2)}`
  }

  /** Looks at every second (a few thousand at most), because their order is not sorted after the clock was set. */
  #forgetEnded(now: number): void {
    const current = Math.floor(now / 1000)
    if (current === this.#lookedAt) return
    this.#lookedAt = current
    for (const [second, counts] of this.#ending) {
      if (second > current) continue
      this.#ending.delete(second)
      this.#pairs -= counts.size
      for (const [network, count] of counts) this.#slots.leave(network, count)
    }
  }
}

/**
 * Bytes of a record that count as one slot. A nonce has 700; an order with a usual title and summary 1,200, and 2,000
 * once it is finalized. The longest texts of an order, with a payload as signed and as written, make 45,000, and must
 * not make a ceiling mean twenty times the memory.
 */
const bytesOfSlot = 2048

/** The first full second after a life. */
function secondOf(endsAt: number): number {
  return Math.ceil(endsAt / 1000)
}

/** Time after which a refused caller may retry, in ms, while other orders of its network are being added. */
const retryAfterMs = 1_000

/** The part of an order that counts here. Times are epoch milliseconds by the store's clock. */
export interface OpenOrder {
  readonly orderId: string
  readonly expiresAt: number
  /** The desktop. An empty `ip` is unknown and not counted. */
  readonly requester: { readonly ip: string }
}

/** The set of a network's open orders, and its limit. */
interface OrdersOfNetwork {
  readonly set: string
  readonly most: number
}

/**
 * Limits open orders for the address of the requester and the networks around it, over all instances that share a
 * store. They are sets in the store: an order is added while it is stored, and removed when it is over; the store
 * itself drops it at the end of its life.
 */
export class OpenOrders {
  readonly #limits: Limits
  readonly #store: Store
  /** Number of orders of each set that are being added by this process. */
  readonly #entering = new Map<string, number>()

  constructor(limits: Limits, store: Store) {
    this.#limits = limits
    this.#store = store
  }

  /**
   * Adds an order. If its network has too many, the order is not counted, and the promise rejects with RATE_LIMITED and
   * the time until the first of them ends. If the store does not answer, nothing is counted.
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

  /** Removes an order that is over. Not awaited: at the end of its life the order leaves the set anyway. */
  remove(order: OpenOrder): void {
    const member = memberOf(order)
    for (const { set } of networksOfOrder(order, this.#limits)) {
      void this.#store.removeMember(set, member).catch(() => {})
    }
  }

  /**
   * Adds to several sets at once; resolves with the first surplus of each set that has one. Few orders enter at a time,
   * so that no set grows to twice its bound: the store would then drop open orders to make room for refused ones.
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

/** Begins with the end of the order, which is the retry time of a refusal. */
function memberOf({ orderId, expiresAt }: OpenOrder): string {
  return `${expiresAt}.${orderId}`
}
