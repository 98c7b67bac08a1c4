import { randomUUID } from 'node:crypto'
import { ErrorReply } from 'redis'
import type { Logger } from '../../base/log.ts'
import { TimeLimit } from '../../base/timing/time-limit.ts'
import { type CountersignError, refused } from '../../shared/errors.ts'
import { ServerClock } from '../clock.ts'
import {
  causeOf,
  exerciseStore,
  lifeOf,
  retryAfterMs,
  type StoreOptions,
  withTtl,
  withValue,
} from '../implementation.ts'
import { defaultKeyPrefix } from '../map-store.ts'
import { proven } from '../problem.ts'
import { TimeLimitError, withinTimeLimit } from '../reconnecting-link.ts'
import type { Life, ScannedValue, Store, VersionedValue } from '../store.ts'
import { connectTo, keyOfEachServer } from './cluster.ts'
import type { Attempt, RedisClient, Servers, ServersEvents } from './connection.ts'
import { evictionPolicyOf, evictionWarning } from './examine.ts'
import { explainProblem, withoutArguments } from './problem.ts'
import { formerSeparator, separator } from './scripts.ts'
import { readTls } from './tls.ts'
import { describeTarget, parseRedisUrl, type RedisTarget } from './url.ts'
import { RedisWatches } from './watches.ts'

/**
 * Opens a store in Redis 7 or newer: a single server or a cluster. `openStore` describes the forms of the URL.
 *
 * A process has one connection to each server for its calls and another for its watches. Each call is answered or fails
 * within 2.5 seconds; while there is no connection it fails at once. A call whose answer was lost is not repeated,
 * because a second `take` would find nothing.
 *
 * The names of all keys and channels begin with `keyPrefix` and a colon. Before the store is handed out, each kind of
 * call is made once, so that a server that is full or a user that lacks a permission shows at once. docs/operations.md
 * lists the permissions that a restricted user needs.
 *
 * @throws TypeError if the URL is malformed, or a file of `redisTls` is missing or not what it should be.
 * @throws StoreOpenError if no suitable server answers in time, or none can be used. The message is one line that says
 * what to do, without credentials.
 */
export async function openRedisStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const { keyPrefix = defaultKeyPrefix, redisTls: tls, log } = options
  const target = parseRedisUrl(url, tls)
  // A missing file stops the start by its own name, not as a server that cannot be reached.
  if (target.tls !== undefined) await readTls(target.tls)
  const store = new RedisStore(target, keyPrefix)
  return proven({
    store,
    proof: store.prove(log),
    explain: (cause) => explainProblem(cause, target.tls !== undefined),
  })
}

/** How long a call waits for the clock. It leaves a server that works more than a second to answer. */
const clockTime = new TimeLimit(900, 100)

/** About how many keys a server looks at in one step of a scan. */
const keysPerScan = 500

/** Asks a server for something; `name` is the key with the prefix of all keys. */
type RedisCommand<Result> = (client: RedisClient, name: string) => Promise<Result>

class RedisStore implements Store {
  readonly description: string
  readonly kind = 'redis'
  readonly shared = true
  readonly #tls: boolean
  readonly #servers: Servers
  readonly #watches: RedisWatches
  readonly #clock: ServerClock
  /** Begins the name of every key and channel. */
  readonly #prefix: string
  /** Begins the keys that {@link ping} uses. In a cluster they are on the server whose clock counts. */
  readonly #ownKey: string
  /** Whether a call has failed, and not all kinds of calls have been seen to succeed since. */
  #failing = false

  constructor(target: RedisTarget, keyPrefix: string) {
    this.#prefix = `${keyPrefix}:`
    this.description = describeTarget(target)
    this.#tls = target.tls !== undefined
    const events: ServersEvents = {
      onLost: (server) => this.#watches.renew(server),
      onUp: (server) => this.#clock.serverUp(server),
      onMoved: () => this.#clock.serversMoved(),
    }
    this.#servers = connectTo(target, events)
    this.#watches = new RedisWatches(this.#servers)
    const clockKey = `${this.#prefix}clock`
    this.#clock = new ServerClock({
      name: 'the Redis server',
      ask: (sent) => this.#askTime(clockKey, sent),
      locate: () => this.#servers.locate(clockKey),
    })
    this.#ownKey = `ping:{${clockKey}}`
  }

  /**
   * Resolves once the clock of the servers is known and they have done each kind of call. In a cluster the server that
   * tells the time and one that has done them are enough, because the loss of one must not keep the others from being
   * used; those that failed are logged.
   */
  async prove(log: Logger | undefined): Promise<void> {
    await withinTimeLimit(this.#servers.opened.then(() => this.#clock.measure()))
    const keys = keyOfEachServer(this.#servers, this.#prefix, this.#ownKey)
    const proofs = await Promise.allSettled(keys.map((key) => this.#proveServerOf(key)))
    const failures = proofs.flatMap((proof) => (proof.status === 'rejected' ? [causeOf(proof.reason)] : []))
    if (failures.length === proofs.length) throw failures[0]
    for (const failure of failures) {
      const { problem, advice } = explainProblem(failure, this.#tls)
      log?.warn(`a server of the Redis cluster cannot be used: ${problem}. ${advice}`)
    }
    if (log !== undefined) await this.#warnOfEviction(keys, log)
  }

  async #proveServerOf(key: string): Promise<void> {
    const name = `${key}:${randomUUID()}`
    await exerciseStore(this, name)
    await this.#requireFormat(key)
    // On the connection of the calls, so that no other one has to be made.
    const subscribe: RedisCommand<void> = async (client, channel) => {
      await client.sSubscribe(channel, ignore)
      await client.sUnsubscribe(channel, ignore)
    }
    await this.#run(name, subscribe)
  }

  /**
   * Reads the first of the server's entries that a step of a scan finds: it throws for one that was written before
   * 0.1.0. A user without the permission for it learns of such entries when they are read.
   */
  async #requireFormat(key: string): Promise<void> {
    const [found] = (await this.#scanStep(key, '', '0').catch(() => undefined))?.keys ?? []
    if (found !== undefined) await this.get(found)
  }

  async #warnOfEviction(keys: readonly string[], log: Logger): Promise<void> {
    const asked = keys.map((key) => this.#run(key, evictionPolicyOf).catch(() => 'unknown'))
    const warning = evictionWarning(await Promise.all(asked))
    if (warning !== undefined) log.warn(warning, { store: this.description })
  }

  now(): number {
    return this.#clock.now()
  }

  get(key: string): Promise<VersionedValue | undefined> {
    return this.#run(key, (client, name) => client.sendCommand<string | null>(['GET', name]).then(readEntry))
  }

  create(key: string, value: string, life: Life): Promise<boolean> {
    return withValue(value, life, (ttlMs) => {
      const expiry = ttlMs === undefined ? [] : ['PX', String(ttlMs)]
      return this.#run(key, async (client, name) => {
        const reply = await client.sendCommand<string | null>(['SET', name, `1${separator}${value}`, 'NX', ...expiry])
        return reply === 'OK'
      })
    })
  }

  take(key: string): Promise<string | undefined> {
    return this.#run(key, async (client, name) => {
      const entry = await client.sendCommand<string | null>(['GETDEL', name])
      return readEntry(entry)?.value
    })
  }

  compareAndSet(
    key: string,
    version: number,
    value: string,
    life: Life,
    options: { wake?: boolean } = {},
  ): Promise<boolean> {
    return withValue(value, life, (ttlMs) => {
      const change = { version, value, ttlMs, wake: options.wake === true }
      return this.#run(key, (client, name) => client.compareAndSet(name, change))
    })
  }

  async watch(key: string, onWake: () => void): Promise<() => void> {
    try {
      return await this.#watches.watch(this.#prefix + key, onWake)
    } catch (cause) {
      throw unavailable(cause)
    }
  }

  addMember(set: string, member: string, life: Life, most?: number): Promise<string[]> {
    return withTtl(life, (ttlMs) => {
      const added = { member, ttlMs, most }
      return this.#run(set, (client, name) => client.addMember(name, added))
    })
  }

  removeMember(set: string, member: string): Promise<void> {
    return this.#run(set, (client, name) => client.removeMember(name, member))
  }

  members(set: string): Promise<string[]> {
    return this.#run(set, (client, name) => client.members(name))
  }

  async *scan(beginning: string): AsyncGenerator<ScannedValue> {
    for (const ofServer of keyOfEachServer(this.#servers, this.#prefix, this.#ownKey)) {
      let from = '0'
      do {
        const { keys, cursor } = await this.#scanStep(ofServer, beginning, from)
        const found = await Promise.all(keys.map((key) => this.#found(key)))
        yield* found.filter((each) => each !== undefined)
        from = cursor
      } while (from !== '0')
    }
  }

  async #found(key: string): Promise<ScannedValue | undefined> {
    const [stored, ttlMs] = await Promise.all([this.get(key), this.#run(key, (client, name) => client.pTTL(name))])
    // Below -1, it has expired in between.
    if (stored === undefined || ttlMs < -1) return undefined
    return { key, value: stored.value, life: lifeOf(ttlMs === -1 ? undefined : ttlMs) }
  }

  /** One step of a scan of the server of a key: the keys of some values, and where the next step begins. */
  async #scanStep(ofServer: string, beginning: string, from: string): Promise<{ keys: string[]; cursor: string }> {
    const literally = `${this.#prefix}${beginning}`.replace(/[\\*?[\]]/g, '\\$&')
    const scanned = { MATCH: `${literally}*`, COUNT: keysPerScan, TYPE: 'string' }
    const { keys, cursor } = await this.#run(ofServer, (client) => client.scan(from, scanned))
    return { keys: keys.map((name) => name.slice(this.#prefix.length)), cursor }
  }

  async ping(): Promise<void> {
    // In a cluster it asks only one of the servers. If it asked all, the loss of one would make every process count as
    // down.
    await this.#run(this.#ownKey, (client) => client.ping())
    try {
      this.#clock.requireCertain()
    } catch (cause) {
      throw unavailable(cause)
    }
    if (!this.#failing) return
    // A server that is full still answers. A failure from here on sets it again.
    this.#failing = false
    await exerciseStore(this, `${this.#ownKey}:${randomUUID()}`)
  }

  async close(): Promise<void> {
    this.#clock.close()
    this.#watches.close()
    this.#servers.close()
  }

  /** Runs a step on the server of a key. */
  async #run<Result>(key: string, step: RedisCommand<Result>): Promise<Result> {
    const name = this.#prefix + key
    const attempt: Attempt = {}
    // What the caller decides by the clock afterwards must not rest on a doubtful one. A server that does not tell the
    // time fails no call of another one, and `ping` reports it.
    const isCurrent = this.#clock.isCurrent
    const run = (): Promise<Result> => this.#servers.run(name, (client) => step(client, name), attempt)
    const answering = isCurrent ? run() : this.#measured().then(run)
    try {
      const result = await withinTimeLimit(answering)
      attempt.connection?.heard()
      // The step may have waited for another server, or through a suspend.
      if (isCurrent && !this.#clock.isCurrent) await this.#measured()
      return result
    } catch (cause) {
      this.#learnFrom(cause, name, attempt, answering)
      throw unavailable(cause)
    }
  }

  async #askTime(key: string, sent: () => void): Promise<number> {
    const ask = (client: RedisClient): Promise<number> => {
      sent()
      return client.serverTime(key)
    }
    try {
      return await this.#servers.run(key, ask, {})
    } catch (error) {
      this.#servers.redirect(key, error)
      throw error
    }
  }

  #learnFrom(cause: unknown, name: string, { connection }: Attempt, answering: Promise<unknown>): void {
    this.#failing = true
    // A server that hangs answers no call, and a master that was replaced takes no more writes. The next connection
    // may lead to another server.
    if (cause instanceof ErrorReply) connection?.heard()
    if (cause instanceof TimeLimitError) connection?.closeIfSilent(answering)
    // A server that has become a replica, or has lost its master: that one may refuse even to read.
    if (cause instanceof Error && /^(READONLY|MASTERDOWN)/.test(cause.message)) connection?.client.destroy()
    this.#servers.redirect(name, cause)
  }

  /** Measures the clock, but not for so long that the call has no time left: the server of the clock may hang. */
  async #measured(): Promise<void> {
    const late = (): Error => new Error('the clock was not measured within a second')
    await clockTime.within(this.#clock.measure(), late).catch(() => {})
  }
}

/** Splits an entry such as "1=value". Version and value are stored as one text, so that they change together. */
function readEntry(entry: string | null): VersionedValue | undefined {
  if (entry === null) return undefined
  const end = entry.search(/\D/)
  if (entry[end] === formerSeparator) throw new Error('an entry was written before version 0.1.0')
  return { value: entry.slice(end + 1), version: Number(entry.slice(0, end)) }
}

function unavailable(cause: unknown): CountersignError {
  return refused('STORE_UNAVAILABLE', { retryAfterMs, cause: withoutArguments(cause) })
}

function ignore(): void {}
