import { CountersignError } from '../errors.ts'
import { ttlMsOf } from './life.ts'
import { StoreOpenError } from './open-error.ts'
import { RedisCluster } from './redis-cluster.ts'
import { type RedisClient, TimeLimitError, withinTimeLimit } from './redis-connection.ts'
import { type Attempt, OneServer, type Servers } from './redis-servers.ts'
import { describeTarget, parseRedisUrl, type RedisTarget } from './redis-url.ts'
import { RedisWatches } from './redis-watches.ts'
import type { Life, Store, VersionedValue } from './store.ts'

const PREFIX = 'countersign:'
const RETRY_AFTER_MS = 1000

/**
 * Opens a store in Redis 7 or newer: a single server, a cluster, or the master that sentinels name. The forms of the URL
 * are told at `openStore`.
 *
 * A process has one connection to each server for its calls and another for what it watches. Each call is answered or
 * fails within 2.5 seconds; while there is no connection it fails at once. A call is never repeated behind the caller's
 * back: a `take` whose answer was lost would find nothing the second time.
 *
 * A user that an access list restricts needs the keys and the channels `countersign:*`.
 *
 * @throws TypeError when the URL is malformed.
 * @throws StoreOpenError when no fitting server answers within 2.5 seconds. No message holds a credential.
 */
export async function openRedisStore(url: string): Promise<Store> {
  const target = parseRedisUrl(url)
  const store = new RedisStore(target)
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

  constructor(target: RedisTarget) {
    this.description = describeTarget(target)
    const onServerLost = (server: string) => this.#watches.renew(server)
    this.#servers =
      target.kind === 'cluster' ? new RedisCluster(target, onServerLost) : new OneServer(target, onServerLost)
    this.#watches = new RedisWatches(this.#servers)
  }

  get opened(): Promise<unknown> {
    return this.#servers.opened
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

  async compareAndSet(
    key: string,
    version: number,
    value: string,
    life: Life,
    options: { wake?: boolean } = {},
  ): Promise<boolean> {
    const ttlMs = ttlMsOf(life)
    return this.#run(key, (client, name) => client.compareAndSet(name, version, value, ttlMs, options.wake))
  }

  async watch(key: string, onWake: () => void): Promise<() => void> {
    try {
      return await this.#watches.watch(PREFIX + key, onWake)
    } catch (cause) {
      throw unavailable(cause)
    }
  }

  async addMember(set: string, member: string, life: Life): Promise<void> {
    const ttlMs = ttlMsOf(life)
    await this.#run(set, (client, name) => client.addMember(name, member, ttlMs))
  }

  async removeMember(set: string, member: string): Promise<void> {
    await this.#run(set, (client, name) => client.removeMember(name, member))
  }

  async members(set: string): Promise<string[]> {
    return this.#run(set, (client, name) => client.members(name))
  }

  async ping(): Promise<void> {
    // In a cluster it asks one of the servers: were it all, the loss of one would take every process out of service.
    await this.#run('ping', (client) => client.ping())
  }

  async close(): Promise<void> {
    this.#watches.close()
    this.#servers.close()
  }

  async #run<T>(key: string, step: (client: RedisClient, name: string) => Promise<T>): Promise<T> {
    const name = PREFIX + key
    const attempt: Attempt = {}
    try {
      return await withinTimeLimit(this.#servers.run(name, (client) => step(client, name), attempt))
    } catch (cause) {
      // A server that hangs answers nobody, and a master that was replaced takes no more writes: the next connection may
      // lead to a better one.
      if (cause instanceof TimeLimitError || isReadOnly(cause)) attempt.client?.destroy()
      this.#servers.redirect(name, cause)
      throw unavailable(cause)
    }
  }
}

// The version is kept before the value, so that both change in one step: "1:value".
function parseEntry(entry: string): VersionedValue {
  const colon = entry.indexOf(':')
  return { value: entry.slice(colon + 1), version: Number(entry.slice(0, colon)) }
}

function isReadOnly(cause: unknown): boolean {
  return cause instanceof Error && cause.message.startsWith('READONLY')
}

function unavailable(cause: unknown): CountersignError {
  return new CountersignError('STORE_UNAVAILABLE', 'The store does not answer', { retryAfterMs: RETRY_AFTER_MS, cause })
}
