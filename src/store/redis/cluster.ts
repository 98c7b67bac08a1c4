import { setTimeout as pause } from 'node:timers/promises'
import { ErrorReply } from 'redis'
import { type Address, formatAddress } from '../address.ts'
import { ReconnectingLink } from '../reconnecting-link.ts'
import {
  type Attempt,
  type Connection,
  dialMaster,
  firstAnswer,
  OneServer,
  type RedisClient,
  type Servers,
  type ServersEvents,
} from './connection.ts'
import { scripts } from './scripts.ts'
import type { RedisTarget } from './url.ts'

/** Connects to the servers of a target. */
export function connectTo(target: RedisTarget, events: ServersEvents): Servers {
  return target.kind === 'cluster' ? new RedisCluster(target, events) : new OneServer(target, events)
}

/** How many keys are tried to find one for each server of a cluster. */
const maxKeysTried = 1000

/** A key for each server that is known now, without the prefix that it has there; `first` is the one for its server. */
export function keyOfEachServer(servers: Servers, prefix: string, first: string): string[] {
  const keys = new Map<string, string>()
  for (let i = 0; i < maxKeysTried; i++) {
    const key = i === 0 ? first : `ping:{${i}}`
    try {
      const server = servers.locate(prefix + key)
      if (!keys.has(server)) keys.set(server, key)
    } catch {
      // No server has its slot.
    }
  }
  return [...keys.values()]
}

/** Number of slots in a Redis cluster. */
const slotCount = 16_384

/**
 * Silence of a connection after which its answers need a confirmation, in milliseconds. The other servers need longer
 * to elect a new master if `cluster-node-timeout` is 500 ms or more: that timeout, and half a second before the
 * election.
 */
const silenceMs = 1000

/**
 * Time between two PINGs that keep an idle connection from counting as silent, in milliseconds.
 */
const signOfLifeMs = silenceMs / 2

type ClusterStep<T> = (client: RedisClient) => Promise<T>

/** How often a step follows MOVED and ASK before it fails. */
const maxRedirections = 5

/**
 * The masters of a Redis cluster, with one connection to each.
 *
 * A step is repeated only if a server said that it did not run it (MOVED, ASK). Which server has which slot is asked
 * again after a MOVED and whenever a master cannot be reached, because a replica may have taken its place. If a master
 * was silent, the others are asked before its answers count.
 */
class RedisCluster implements Servers {
  readonly opened: Promise<unknown>
  readonly #target: RedisTarget
  readonly #events: ServersEvents
  readonly #links = new Map<string, ReconnectingLink<Connection>>()
  readonly #addresses = new Map<string, Address>()
  readonly #silence = new Silence()
  /** The server of each slot; a slot without one is missing. */
  #owners: string[] = []
  /** Asking for the slots, while that is in progress. */
  #learning: Promise<void> | undefined
  #closed = false

  constructor(target: RedisTarget, events: ServersEvents) {
    this.#target = target
    this.#events = events
    this.opened = this.#learn()
  }

  async run<T>(key: string, step: ClusterStep<T>, attempt: Attempt): Promise<T> {
    let server = this.locate(key)
    let asking = false
    for (let redirections = 0; ; redirections++) {
      const connection = await this.#linkTo(server).connection
      attempt.connection = connection
      try {
        return await this.#send(server, connection, step, asking)
      } catch (error) {
        const [, kind, address] = /^(MOVED|ASK) \d+ (\S+)$/.exec(error instanceof Error ? error.message : '') ?? []
        if (address === undefined || redirections === maxRedirections) throw error
        if (kind === 'MOVED') this.redirect(key, error)
        asking = kind === 'ASK'
        server = this.#named(address, server) ?? (await this.#learnOwner(key))
      }
    }
  }

  /** Sends a step to a server. Resolves once its answer counts. */
  async #send<T>(server: string, connection: Connection, step: ClusterStep<T>, asking: boolean): Promise<T> {
    const { client } = connection
    const heard = (): Promise<void> | undefined => {
      connection.heard()
      return this.#silence.heard(client, () => this.#confirmMaster(server))
    }
    try {
      // Both are written in the same tick, so no other command comes between them.
      const asked = asking ? client.sendCommand(['ASKING']) : undefined
      const [, result] = await Promise.all([asked, step(client)])
      await heard()
      return result
    } catch (error) {
      // An error that the server sent ends its silence too.
      if (error instanceof ErrorReply) heard()
      throw error
    }
  }

  locate(key: string): string {
    const server = this.#owners[slotOf(key)]
    if (server === undefined) throw new Error('no server of the cluster has the slot of the key')
    return server
  }

  dial(server: string): Promise<Connection> {
    const address = this.#addresses.get(server)
    if (address === undefined) return Promise.reject(new Error('the server left the cluster'))
    return dialMaster(address, this.#target)
  }

  serves(server: string): boolean {
    return this.#addresses.has(server)
  }

  redirect(key: string, cause: unknown): void {
    const slot = slotOf(key)
    const owner = this.#owners[slot]
    const [, moved] = /^MOVED \d+ (\S+)$/.exec(cause instanceof Error ? cause.message : '') ?? []
    if (moved !== undefined && owner !== undefined) this.#owners[slot] = this.#named(moved, owner) ?? owner
    if (moved !== undefined || owner === undefined) this.#learnQuietly()
  }

  close(): void {
    this.#closed = true
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
  }

  /**
   * The name of a server that another one mentioned. An empty host means the host of the one that mentioned it.
   * Undefined if that one does not know the host.
   */
  #named(text: string, mentionedBy: string): string | undefined {
    const [, host, port] = /^(.*):(\d+)/.exec(text) ?? []
    if (host === unknownHost) return undefined
    const address = { host: host || (this.#addresses.get(mentionedBy)?.host ?? ''), port: Number(port) }
    const server = formatAddress(address)
    this.#addresses.set(server, address)
    return server
  }

  async #learnOwner(key: string): Promise<string> {
    await this.#learn()
    return this.locate(key)
  }

  #linkTo(server: string): ReconnectingLink<Connection> {
    const known = this.#links.get(server)
    if (known !== undefined) return known
    if (this.#closed) throw new Error('the store is closed')
    const link = new ReconnectingLink(() => this.#dialForCalls(server), {
      onUp: () => this.#events.onUp(server),
      onLost: () => this.#events.onLost(server),
      onDown: () => this.#learnQuietly(),
    })
    this.#links.set(server, link)
    return link
  }

  async #dialForCalls(server: string): Promise<Connection> {
    const begunAt = performance.now()
    const connection = await this.dial(server)
    this.#silence.begin(connection.client, begunAt)
    // ASKING holds for the next command only. If that is an EVALSHA of an unknown script, the EVAL that follows it is
    // redirected, so the scripts are loaded beforehand.
    await Promise.all(Object.values(scripts).map(({ SCRIPT }) => connection.client.scriptLoad(SCRIPT)))
    void this.#keepHeard(server, connection)
    return connection
  }

  /** Asks a server for signs of life, so that it is silent only if it hangs, and not if it is idle. */
  async #keepHeard(server: string, connection: Connection): Promise<void> {
    while (connection.client.isReady) {
      await pause(signOfLifeMs, undefined, { ref: false })
      // Fails only if the connection is lost, if the server does not count any more, or if there is so much to send
      // that there are signs enough.
      await this.#send(server, connection, (client) => client.ping(), false).catch(() => undefined)
    }
  }

  #learnQuietly(): void {
    if (!this.#closed) this.#learn().catch(() => undefined)
  }

  #learn(): Promise<void> {
    this.#learning ??= this.#askForSlots().finally(() => {
      this.#learning = undefined
    })
    return this.#learning
  }

  async #askForSlots(): Promise<void> {
    this.#adopt(await this.#slotsFrom(this.#links.keys()).catch(() => this.#slotsFromSeeds()))
  }

  /**
   * Asks the other masters whether a server is still a master. If it is the only one, no server can replace it by
   * election.
   */
  async #confirmMaster(server: string): Promise<void> {
    const others = [...this.#addresses.keys()].filter((other) => other !== server)
    if (others.length === 0) return
    const ranges = await this.#slotsFrom(others)
    if (ranges.some(({ address }) => formatAddress(address) === server)) return
    this.#adopt(ranges)
    throw new Error('the server was silent, and another one has taken its place')
  }

  #adopt(ranges: readonly SlotRange[]): void {
    if (this.#closed) return
    const owners: string[] = new Array(slotCount)
    this.#addresses.clear()
    for (const { from, to, address } of ranges) {
      const server = formatAddress(address)
      this.#addresses.set(server, address)
      owners.fill(server, from, to + 1)
    }
    this.#owners = owners
    for (const [server, link] of this.#links) {
      if (this.serves(server)) continue
      link.close()
      this.#links.delete(server)
    }
    this.#events.onMoved()
  }

  /**
   * The first answer that has all slots: a node that does not know the whole cluster must not speak for it if others
   * do.
   */
  #slotsFrom(servers: Iterable<string>): Promise<SlotRange[]> {
    const answers = [...servers].map(async (server) => {
      const { client } = await this.#linkTo(server).connection
      return slotsFrom(client, this.#addresses.get(server)?.host ?? '')
    })
    const complete = answers.map(async (answer) => requireAllSlots(await answer))
    return Promise.any(complete).catch(() => firstAnswer(answers))
  }

  async #slotsFromSeeds(): Promise<SlotRange[]> {
    const answers = this.#target.addresses.map(async (address) => {
      const { client } = await dialMaster(address, this.#target)
      try {
        return await slotsFrom(client, address.host)
      } finally {
        client.destroy()
      }
    })
    return await firstAnswer(answers)
  }
}

/** Slots `from` to `to`, both included, and the address of their master. */
interface SlotRange {
  readonly from: number
  readonly to: number
  readonly address: Address
}

function requireAllSlots(ranges: SlotRange[]): SlotRange[] {
  const count = ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0)
  if (count < slotCount) throw new Error('some slots have no server')
  return ranges
}

/** Stands for a host name in a cluster that prefers host names, if the node has none. */
const unknownHost = '?'

/**
 * A node as CLUSTER SLOTS describes it. The endpoint is an address or host name, as the cluster prefers; null or empty
 * means the host that was asked. The details have the address if the endpoint does not.
 */
type SlotsNode = readonly [endpoint: string | null, port: number, id: string, details?: { readonly ip?: string }]

async function slotsFrom(client: RedisClient, askedHost: string): Promise<SlotRange[]> {
  // The client's own clusterSlots() leaves out the details.
  const ranges = await client.sendCommand<[from: number, to: number, master: SlotsNode][]>(['CLUSTER', 'SLOTS'])
  if (ranges.length === 0) throw new Error('the cluster has no slots yet')
  return ranges.map(([from, to, [endpoint, port, , details]]) => {
    const host = endpoint === unknownHost ? details?.ip : endpoint
    return { from, to, address: { host: host || askedHost, port } }
  })
}

/**
 * The slot of a key or channel in a Redis cluster: CRC-16/XMODEM of the text between its first braces or, if there is
 * none, of all of it (Redis cluster specification, hash tags).
 */
export function slotOf(key: string): number {
  const start = key.indexOf('{')
  const end = start === -1 ? -1 : key.indexOf('}', start + 1)
  const hashed = Buffer.from(end > start + 1 ? key.slice(start + 1, end) : key)
  let crc = 0
  for (const byte of hashed) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  }
  return (crc & 0xffff) % slotCount
}

/**
 * Notices when a server answers again after a silence. It may have been frozen while the others elected a new master.
 * When it continues, it first carries out the calls that were sent to it in the meantime, because it does not know yet
 * that it has been replaced. It then discards their effects, so their answers must not count.
 */
class Silence {
  /** When each connection was last heard, on the clock of `performance.now()`. */
  readonly #heardAt = new WeakMap<RedisClient, number>()
  readonly #confirming = new WeakMap<RedisClient, Promise<void>>()

  /** A new connection: `since` is when it was begun, because a frozen server accepts connections and answers later. */
  begin(client: RedisClient, since: number): void {
    this.#heardAt.set(client, since)
  }

  /**
   * To be called with each answer. Returns a promise if the answer needs a confirmation; it counts if the promise
   * resolves. `confirm` is called with the first answer after a silence. All answers that arrive while it is in
   * progress share its result; later ones need no confirmation, because the server was still master when it continued.
   */
  heard(client: RedisClient, confirm: () => Promise<void>): Promise<void> | undefined {
    const now = performance.now()
    const silent = now - (this.#heardAt.get(client) ?? now) > silenceMs
    this.#heardAt.set(client, now)
    if (silent) this.#confirm(client, confirm)
    return this.#confirming.get(client)
  }

  #confirm(client: RedisClient, confirm: () => Promise<void>): void {
    const confirming = confirm().finally(() => {
      if (this.#confirming.get(client) === confirming) this.#confirming.delete(client)
    })
    // A failure reaches those who wait for it, if there are any.
    confirming.catch(() => undefined)
    this.#confirming.set(client, confirming)
  }
}
