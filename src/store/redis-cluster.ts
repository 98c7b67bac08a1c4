import { type Connection, dialMaster, Link, type RedisClient } from './redis-connection.ts'
import { scripts } from './redis-scripts.ts'
import type { Attempt, OnServerLost, Servers } from './redis-servers.ts'
import { SLOTS, slotOf } from './redis-slot.ts'
import { type Address, formatAddress, type RedisTarget } from './redis-url.ts'

const MAX_REDIRECTIONS = 5

/**
 * The masters of a Redis cluster, with one connection to each.
 *
 * A call is only ever repeated when a server said that it did not run it (MOVED, ASK). Which server has which slot is
 * asked anew after a MOVED and whenever a master cannot be reached, for a replica may have taken its place.
 */
export class RedisCluster implements Servers {
  readonly opened: Promise<unknown>
  readonly #target: RedisTarget
  readonly #onServerLost: OnServerLost
  readonly #links = new Map<string, Link>()
  readonly #addresses = new Map<string, Address>()
  #owners: string[] = []
  #learning: Promise<void> | undefined
  #closed = false

  constructor(target: RedisTarget, onServerLost: OnServerLost) {
    this.#target = target
    this.#onServerLost = onServerLost
    this.opened = this.#learn()
  }

  async run<T>(key: string, step: (client: RedisClient) => Promise<T>, attempt: Attempt): Promise<T> {
    let server = this.locate(key)
    let asking = false
    for (let redirections = 0; ; redirections++) {
      const { client } = await this.#linkTo(server).connection
      attempt.client = client
      try {
        if (!asking) return await step(client)
        // Both go out in the same tick, so that nothing comes between them.
        const [, result] = await Promise.all([client.sendCommand(['ASKING']), step(client)])
        return result
      } catch (error) {
        const [, kind, address] = /^(MOVED|ASK) \d+ (\S+)$/.exec(error instanceof Error ? error.message : '') ?? []
        if (address === undefined || redirections === MAX_REDIRECTIONS) throw error
        if (kind === 'MOVED') this.redirect(key, error)
        asking = kind === 'ASK'
        server = this.#named(address, server)
      }
    }
  }

  locate(key: string): string {
    const server = this.#owners[slotOf(key)]
    if (server === undefined) throw new Error('no server of the cluster has the slot of the key')
    return server
  }

  dial(server: string): Promise<Connection> {
    const address = this.#addresses.get(server)
    return address ? dialMaster(address, this.#target) : Promise.reject(new Error('the server left the cluster'))
  }

  serves(server: string): boolean {
    return this.#addresses.has(server)
  }

  redirect(key: string, cause: unknown): void {
    const slot = slotOf(key)
    const owner = this.#owners[slot]
    const [, moved] = /^MOVED \d+ (\S+)$/.exec(cause instanceof Error ? cause.message : '') ?? []
    if (moved !== undefined && owner !== undefined) this.#owners[slot] = this.#named(moved, owner)
    if (moved !== undefined || owner === undefined) this.#learnQuietly()
  }

  close(): void {
    this.#closed = true
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
  }

  /** The name of a server that another one mentioned. A server that does not know the host leaves it empty. */
  #named(text: string, mentionedBy: string): string {
    const [, host, port] = /^(.*):(\d+)/.exec(text) ?? []
    const address = { host: host || (this.#addresses.get(mentionedBy)?.host ?? ''), port: Number(port) }
    const server = formatAddress(address)
    this.#addresses.set(server, address)
    return server
  }

  #linkTo(server: string): Link {
    const known = this.#links.get(server)
    if (known) return known
    if (this.#closed) throw new Error('the store is closed')
    const link = new Link(() => this.#dialForCalls(server), {
      onLost: () => this.#onServerLost(server),
      onDown: () => this.#learnQuietly(),
    })
    this.#links.set(server, link)
    return link
  }

  async #dialForCalls(server: string): Promise<Connection> {
    const connection = await this.dial(server)
    // A node to which slots are moving answers only the one command after ASKING, so it must know the scripts already.
    await Promise.all(Object.values(scripts).map(({ SCRIPT }) => connection.client.scriptLoad(SCRIPT)))
    return connection
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
    const ranges = await this.#slotsFromLinks().catch(() => this.#slotsFromSeeds())
    if (this.#closed) return
    const owners: string[] = new Array(SLOTS)
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
  }

  #slotsFromLinks(): Promise<SlotRange[]> {
    return Promise.any(
      [...this.#links].map(async ([server, link]) => {
        const { client } = await link.connection
        return slotsFrom(client, this.#addresses.get(server)?.host ?? '')
      }),
    )
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
    try {
      return await Promise.any(answers)
    } catch (error) {
      throw error instanceof AggregateError ? error.errors[0] : error
    }
  }
}

interface SlotRange {
  from: number
  to: number
  address: Address
}

async function slotsFrom(client: RedisClient, askedHost: string): Promise<SlotRange[]> {
  const ranges = await client.clusterSlots()
  if (ranges.length === 0) throw new Error('the cluster has no slots yet')
  return ranges.map(({ from, to, master }) => ({
    from,
    to,
    address: { host: master.host || askedHost, port: master.port },
  }))
}
