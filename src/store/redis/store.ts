import { CountersignError } from '../../errors.ts'
import { defaultKeyPrefix } from '../key-prefix.ts'
import { ttlMsOf } from '../life.ts'
import { StoreOpenError } from '../open-error.ts'
import type { FoundValue, Life, Store, VersionedValue } from '../store.ts'
import { RedisClock } from './clock.ts'
import { RedisCluster } from './cluster.ts'
import { type RedisClient, TimeLimitError, withinTimeLimit } from './connection.ts'
import { SentinelMaster } from './sentinel-master.ts'
import { type Attempt, OneServer, type Servers, type ServersEvents } from './servers.ts'
import { describeTarget, parseRedisUrl, type RedisTarget } from './url.ts'
import { RedisWatches } from './watches.ts'

/** What a caller is told to wait when the store does not answer, in milliseconds. */
const retryAfterMs = 1000

/**
 * Opens a store in Redis 7 or newer: a single server, a cluster, or the master that sentinels name. `openStore`
 * describes the forms of the URL.
 *
 * A process has one connection to each server for its calls and another for its watches. Each call is answered or fails
 * within 2.5 seconds; while there is no connection it fails at once. A call whose answer was lost is not repeated,
 * because a second `take` would find nothing.
 *
 * The names of all keys and channels begin with `keyPrefix` and a colon. A Redis user restricted by an access list needs the
 * keys and the channels `countersign:*`, or those of another prefix.
 *
 * @throws TypeError if the URL is malformed.
 * @throws StoreOpenError if no suitable server answers within 2.5 seconds. No message contains a credential.
 */
export async function openRedisStore(url: string, keyPrefix: string = defaultKeyPrefix): Promise<Store> {
  const target = parseRedisUrl(url)
  const store = new RedisStore(target, keyPrefix)
  try {
    await withinTimeLimit(store.opened)
    return store
  } catch (cause) {
    await store.close()
    const problem = cause instanceof Error ? cause.message || cause.name : String(cause)
    const message = `Cannot open the store, ${store.description}: ${problem}. Start it or correct COUNTERSIGN_STORE.`
    throw new StoreOpenError(message, { cause })
  }
}

class RedisStore implements Store {
  readonly description: string
  readonly shared = true
  readonly #servers: Servers
  readonly #watches: RedisWatches
  readonly #clock: RedisClock
  /** Begins the name of every key and channel. */
  readonly #prefix: string

  constructor(target: RedisTarget, keyPrefix: string) {
    this.#prefix = `${keyPrefix}:`
    this.description = describeTarget(target)
    const events: ServersEvents = {
      onLost: (server) => this.#watches.renew(server),
      onUp: (server) => this.#clock.serverUp(server),
      onMoved: () => this.#clock.serversMoved(),
    }
    this.#servers = connectTo(target, events)
    this.#watches = new RedisWatches(this.#servers)
    this.#clock = new RedisClock(this.#servers, `${this.#prefix}clock`)
  }

  /** Resolves once the servers have answered for the first time and their clock is known; rejects if they do not. */
  get opened(): Promise<unknown> {
    return this.#servers.opened.then(() => this.#clock.measure())
  }

  now(): number {
    return this.#clock.now()
  }

  async get(key: string): Promise<VersionedValue | undefined> {
    const entry = await this.#run(key, (client, name) => client.get(name))
    return entry === null ? undefined : parseEntry(entry)
  }

  async create(key: string, value: string, life: Life): Promise<boolean> {
    const ttlMs = ttlMsOf(life)
    const expiration = ttlMs === undefined ? {} : ({ expiration: { type: 'PX', value: ttlMs } } as const)
    const reply = await this.#run(key, (client, name) =>
      client.set(name, `1:${value}`, { condition: 'NX', ...expiration }),
    )
    return reply === 'OK'
  }

  async take(key: string): Promise<string | undefined> {
    const entry = await this.#run(key, (client, name) => client.getDel(name))
    return entry === null ? undefined : parseEntry(entry).value
  }

  async takeIf(key: string, prefix: string): Promise<FoundValue | undefined> {
    const found = await this.#run(key, (client, name) => client.takeIf(name, prefix))
    return found === null ? undefined : { value: parseEntry(found.entry).value, taken: found.taken }
  }

  async compareAndSet(
    key: string,
    version: number,
    value: string,
    life: Life,
    options: { wake?: boolean } = {},
  ): Promise<boolean> {
    const change = { version, value, ttlMs: ttlMsOf(life), wake: options.wake === true }
    return this.#run(key, (client, name) => client.compareAndSet(name, change))
  }

  async watch(key: string, onWake: () => void): Promise<() => void> {
    try {
      return await this.#watches.watch(this.#prefix + key, onWake)
    } catch (cause) {
      throw unavailable(cause)
    }
  }

  async addMember(set: string, member: string, life: Life, most?: number): Promise<string[]> {
    const added = { member, ttlMs: ttlMsOf(life), most }
    return this.#run(set, (client, name) => client.addMember(name, added))
  }

  async removeMember(set: string, member: string): Promise<void> {
    await this.#run(set, (client, name) => client.removeMember(name, member))
  }

  async members(set: string): Promise<string[]> {
    return this.#run(set, (client, name) => client.members(name))
  }

  async ping(): Promise<void> {
    // In a cluster it asks only one of the servers. If it asked all, the loss of one would make every process count as
    // down.
    await this.#run('ping', (client) => client.ping())
    try {
      this.#clock.requireCertain()
    } catch (cause) {
      throw unavailable(cause)
    }
  }

  async close(): Promise<void> {
    this.#clock.close()
    this.#watches.close()
    this.#servers.close()
  }

  async #run<T>(key: string, step: (client: RedisClient, name: string) => Promise<T>): Promise<T> {
    const name = this.#prefix + key
    const attempt: Attempt = {}
    const run = (): Promise<T> => this.#servers.run(name, (client) => step(client, name), attempt)
    try {
      // What a call decides by the clock afterwards must not rest on a doubtful one. A server that does not tell the time
      // fails no call of another one, and `ping` tells of it.
      return await withinTimeLimit(this.#clock.isCurrent ? run() : this.#clock.measure().then(run, run))
    } catch (cause) {
      // A server that hangs answers no call, and a master that was replaced takes no more writes. The next connection
      // may lead to another server.
      if (cause instanceof TimeLimitError) attempt.connection?.closeIfSilent()
      if (isReadOnly(cause)) attempt.connection?.client.destroy()
      this.#servers.redirect(name, cause)
      throw unavailable(cause)
    }
  }
}

function connectTo(target: RedisTarget, events: ServersEvents): Servers {
  if (target.kind === 'cluster') return new RedisCluster(target, events)
  if (target.kind === 'sentinel') return new SentinelMaster(target, events)
  return new OneServer(target, events)
}

/** Splits an entry such as "1:value". Version and value are stored as one text, so that they change together. */
function parseEntry(entry: string): VersionedValue {
  const colon = entry.indexOf(':')
  return { value: entry.slice(colon + 1), version: Number(entry.slice(0, colon)) }
}

function isReadOnly(cause: unknown): boolean {
  return cause instanceof Error && cause.message.startsWith('READONLY')
}

function unavailable(cause: unknown): CountersignError {
  return new CountersignError('STORE_UNAVAILABLE', 'The store does not answer', { retryAfterMs, cause })
}
