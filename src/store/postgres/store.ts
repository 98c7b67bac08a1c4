import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { QueryResult } from 'pg'
import type { Logger } from '../../base/log.ts'
import { CountersignError, refused } from '../../shared/errors.ts'
import { ServerClock } from '../clock.ts'
import {
  exerciseStore,
  lifeOf,
  retryAfterMs,
  type StoreOptions,
  scanInOrder,
  withTtl,
  withValue,
} from '../implementation.ts'
import { defaultKeyPrefix } from '../map-store.ts'
import { proven } from '../problem.ts'
import { withinTimeLimit } from '../reconnecting-link.ts'
import type { Life, ScannedValue, Store, VersionedValue } from '../store.ts'
import { Batches } from './batches.ts'
import { type Access, accessOf, Calls, type Statement, sqlStateOf, UnfitServerError } from './connection.ts'
import { concernsOf, describeOwners, factsOf } from './examine.ts'
import { Notifications, payloadOf } from './notifications.ts'
import { explainProblem, refusedNotifications, roomWarning, withoutDetails } from './problem.ts'
import { lockClass, prepareSchema } from './schema.ts'
import { rowsPerStep, statements } from './statements.ts'
import { readTls } from './tls.ts'
import { describeTarget } from './url.ts'

/** Codes of steps that the server took back because of others at the same time, and how often they are tried. */
const takenBack = /^(?:40001|40P01)$/
const maxTries = 5

/** From one look whether sessions of the server are its own to the next, in milliseconds; and while they are not. */
const fitnessIntervalMs = 60_000
const unfitIntervalMs = 5000

/** From the end of one sweep to the next, in milliseconds; between two steps of one, there is more to remove. */
const sweepIntervalMs = 5000
const sweepPauseMs = 50

/** Largest version of an entry: that of an integer of the server. */
const maxVersion = 2 ** 31 - 1

/**
 * Opens a store in PostgreSQL 14 or newer. Its tables are in the schema `countersign`, which is made if it is missing;
 * all keys begin with `keyPrefix` and a colon.
 *
 * A process has up to `connections` of the URL for its calls and another for its watches. Each call is answered or
 * fails within 2.5 seconds.
 *
 * @throws TypeError if the URL is malformed, a file that it names is missing or not what it should be, or the package
 * pg is not installed.
 * @throws StoreOpenError if no suitable server answers in time, or it cannot be used. The message is one line that says
 * what to do, without credentials.
 */
export async function openPostgresStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const { keyPrefix = defaultKeyPrefix, log } = options
  const store = new PostgresStore(await accessOf(url), keyPrefix)
  return proven({ store, proof: store.prove(log), explain: explainProblem })
}

interface ValueRow {
  readonly key: string
  readonly value: Buffer
}

class PostgresStore implements Store {
  readonly description: string
  readonly kind = 'postgresql'
  readonly shared = true
  /** Begins every key. */
  readonly #prefix: string
  readonly #access: Access
  readonly #calls: Calls
  readonly #notifications: Notifications
  readonly #clock: ServerClock
  readonly #get = this.#batched<ValueRow & { version: number }>(statements.get, { isShared: true })
  readonly #create = this.#batched(statements.create)
  readonly #take = this.#batched<ValueRow>(statements.take)
  readonly #compareAndSet = this.#batched(statements.compareAndSet)
  readonly #addMember = this.#batched<{ key: string; members: string[] }>(statements.addMember)
  readonly #closing = new AbortController()
  /** Why the server cannot be used although it answers. */
  #unfit: UnfitServerError | undefined
  /** Whether a call has failed, and not all kinds of calls have been seen to succeed since. */
  #failing = false
  #log: Logger | undefined
  #isRoomWarned = false

  constructor(access: Access, keyPrefix: string) {
    this.#prefix = `${keyPrefix}:`
    this.#access = access
    this.description = describeTarget(access.target)
    this.#calls = new Calls(access, {
      // The server that is listened to has lost its address, and may go on without it: nothing of it counts any more.
      onServer: (server) => {
        const { link } = this.#notifications
        if (link.up !== undefined && link.up.server !== server) link.drop()
      },
      onFull: () => {
        if (!this.#isRoomWarned) this.#warn(roomWarning)
        this.#isRoomWarned = true
      },
    })
    this.#clock = new ServerClock({
      name: 'the PostgreSQL server',
      ask: async (sent) => {
        const { rows } = await this.#calls.run<{ now: number }>(statements.time, () => {
          sent()
          return []
        })
        return Number(rows[0]?.now)
      },
      locate: () => this.description,
    })
    this.#notifications = new Notifications(access, {
      onUp: () => this.#clock.serverUp(this.description),
      // The network may have broken unnoticed, or another server taken the place of this one.
      onLost: () => this.#calls.renew(),
      onDown: (cause) => {
        if (sqlStateOf(cause) === '53300') this.#calls.giveUpOne()
      },
      onRefused: () => this.#warn(refusedNotifications),
    })
    void this.#repeat(fitnessIntervalMs, () => this.#lookAfterServer())
    void this.#repeat(sweepIntervalMs, () => this.#sweepOnce())
  }

  /** Makes the tables if need be, and resolves once the server has done each kind of call. */
  async prove(log: Logger | undefined): Promise<void> {
    this.#log = log
    await this.#calls.on(prepareSchema)
    await withinTimeLimit(this.#notifications.link.connection)
    await withinTimeLimit(this.#clock.measure())
    const unfit = await this.#findUnfit()
    if (unfit !== undefined) throw unfit
    await exerciseStore(this, `ping:${randomUUID()}`)
    if (log === undefined) return
    const facts = await this.#calls.on(factsOf)
    for (const [applies, saw, fix] of concernsOf(facts)) if (applies) this.#warn(`${saw}. ${fix}`)
    const { owners } = facts
    if (owners.length > 0 && owners.every(({ isSuperuser }) => isSuperuser)) {
      log.info(describeOwners(owners), { store: this.description })
    }
  }

  now(): number {
    return this.#clock.now()
  }

  async get(key: string): Promise<VersionedValue | undefined> {
    const row = await this.#get(key)
    return row && { value: row.value.toString(), version: row.version }
  }

  create(key: string, value: string, life: Life): Promise<boolean> {
    return withValue(value, life, async (ttlMs) => (await this.#create(key, Buffer.from(value), ttlMs)) !== undefined)
  }

  async take(key: string): Promise<string | undefined> {
    return (await this.#take(key))?.value.toString()
  }

  compareAndSet(
    key: string,
    version: number,
    value: string,
    life: Life,
    options: { wake?: boolean } = {},
  ): Promise<boolean> {
    return withValue(value, life, async (ttlMs) => {
      if (!Number.isInteger(version) || version < 1 || version >= maxVersion) return false
      // It may also be so if the answer is lost.
      let isChanged = true
      try {
        isChanged = (await this.#compareAndSet(key, version, Buffer.from(value), ttlMs)) !== undefined
        return isChanged
      } finally {
        if (options.wake && isChanged) this.#notifications.wake(payloadOf(this.#prefix + key))
      }
    })
  }

  async watch(key: string, onWake: () => void): Promise<() => void> {
    try {
      if (this.#closing.signal.aborted) throw new Error('the store is closed')
      if (this.#unfit !== undefined) throw this.#unfit
      return await this.#notifications.watch(payloadOf(this.#prefix + key), onWake)
    } catch (cause) {
      throw unavailable(cause)
    }
  }

  addMember(set: string, member: string, life: Life, most?: number): Promise<string[]> {
    return withTtl(life, async (ttlMs) => {
      const name = this.#prefix + set
      // By both, so that a set which is much in use takes one statement and not one for each member.
      const row = await this.#addMember(`${set}\n${member}`, name, member, ttlMs, most, lockKeyOf(name))
      return row?.members ?? []
    })
  }

  async removeMember(set: string, member: string): Promise<void> {
    const name = this.#prefix + set
    await this.#run(statements.removeMember, [name, member, lockClass, lockKeyOf(name)])
  }

  async members(set: string): Promise<string[]> {
    const { rows } = await this.#run<{ member: string }>(statements.members, [this.#prefix + set])
    return rows.map((row) => row.member)
  }

  scan(beginning: string): AsyncGenerator<ScannedValue> {
    const step = async (from: string, end: string): Promise<ScannedValue[]> => {
      const range = [this.#prefix + from, this.#prefix + end]
      const { rows } = await this.#run<ValueRow & { ttl: number | null }>(statements.scan, range)
      return rows.map(({ key, value, ttl }) => {
        return { key: key.slice(this.#prefix.length), value: value.toString(), life: lifeOf(ttl ?? undefined) }
      })
    }
    return scanInOrder({ beginning, valuesPerStep: rowsPerStep, step })
  }

  async ping(): Promise<void> {
    await this.#run(statements.time, [])
    try {
      this.#clock.requireCertain()
    } catch (cause) {
      throw unavailable(cause)
    }
    if (!this.#failing) return
    // A server that is full still answers. A failure from here on sets it again.
    this.#failing = false
    await exerciseStore(this, `ping:${randomUUID()}`)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#clock.close()
    this.#calls.close()
    await this.#notifications.close()
  }

  /** Steps of a kind, done by a statement for many. */
  #batched<Row extends { readonly key: string } = { key: string }>(statement: Statement, { isShared = false } = {}) {
    const batches = new Batches<Row>({
      run: async (columns, isOver) => (await this.#attempt<Row>(statement, columns, isOver)).rows,
      failureOf: (cause) => this.#learnFrom(cause),
      isShared,
    })
    return async (key: string, ...values: readonly unknown[]): Promise<Row | undefined> => {
      // No entry has such a key, and the server would refuse the steps beside it, too.
      if (key.includes('\0')) throw unavailable(new Error('a key cannot have NUL in it'))
      return await batches.do([this.#prefix + key, ...values])
    }
  }

  /** Runs a statement, again if the server took it back. */
  #run<Row extends object>(statement: Statement, values: readonly unknown[]): Promise<QueryResult<Row>> {
    return this.#attempt<Row>(statement, () => [...values]).catch((cause) => {
      throw this.#learnFrom(cause)
    })
  }

  /** The same, with pg's own errors. */
  async #attempt<Row extends object>(
    statement: Statement,
    values: () => unknown[],
    isOver?: () => boolean,
  ): Promise<QueryResult<Row>> {
    // Not as a failed call, which closes connections: the look at the sessions needs them to find the server fit again.
    if (this.#unfit !== undefined) throw unavailable(this.#unfit)
    // What the caller decides by the clock afterwards must not rest on a doubtful one.
    if (!this.#clock.isCurrent) await withinTimeLimit(this.#clock.measure())
    for (let tries = 1; ; tries++) {
      try {
        const result = await this.#calls.run<Row>(statement, values, isOver)
        if (!this.#clock.isCurrent) await withinTimeLimit(this.#clock.measure())
        return result
      } catch (cause) {
        if (tries >= maxTries || !takenBack.test(sqlStateOf(cause) ?? '')) throw cause
      }
    }
  }

  #learnFrom(cause: unknown): CountersignError {
    if (cause instanceof CountersignError) return cause
    this.#failing = true
    const state = sqlStateOf(cause)
    // A lock was not to be had in time.
    if (state === '55P03') return refused('SERVER_BUSY', { retryAfterMs, cause: withoutDetails(cause) })
    // It takes no writes any more: another server may be the primary by now.
    if (state === '25006' || cause instanceof UnfitServerError) {
      this.#calls.renew()
      this.#notifications.link.drop()
    }
    return unavailable(cause)
  }

  /** Does work again and again until the store is closed. It resolves with the milliseconds to the next time. */
  async #repeat(firstMs: number, work: () => Promise<number>): Promise<void> {
    const { signal } = this.#closing
    for (let ms = firstMs; !signal.aborted; ) {
      await pause(ms, undefined, { ref: false, signal }).catch(() => undefined)
      if (!signal.aborted) ms = await work()
    }
  }

  /** Looks whether the server is fit, and what it takes now; resolves with the milliseconds to the next look. */
  async #lookAfterServer(): Promise<number> {
    this.#calls.tryMore()
    // Files of TLS that cannot be read leave those before in use.
    await readTls(this.#access).catch(() => undefined)
    const before = this.#unfit
    try {
      this.#unfit = await this.#findUnfit()
    } catch {
      // A server that cannot be reached makes calls fail anyway, and is found again by them.
      return unfitIntervalMs
    }
    // What was prepared, set or listened to may be lost with the sessions: the next look and calls take new ones.
    if (before !== undefined || this.#unfit !== undefined) this.#calls.renew()
    if (this.#unfit === undefined) return fitnessIntervalMs
    this.#notifications.link.drop()
    return unfitIntervalMs
  }

  /**
   * Finds out whether a connection here is a session there, and notifications come. Behind a pooler that gives each
   * transaction another session, watchers would sleep and settings would be lost. Resolves with what is wrong; rejects
   * if the server cannot be asked.
   */
  async #findUnfit(): Promise<UnfitServerError | undefined> {
    const probe = randomUUID()
    const heard = Promise.withResolvers<boolean>()
    const unwatch = await this.#notifications.watch(probe, () => heard.resolve(true))
    const { up } = this.#notifications.link
    try {
      const lasts = await this.#calls.on(async (client) => {
        await client.query("SELECT set_config('countersign.probe', $1, false)", [probe])
        const { rows } = await client.query<{ kept: string }>(
          "SELECT current_setting('countersign.probe', true) AS kept",
        )
        await client.query(statements.notify.text, [[probe]])
        return rows[0]?.kept === probe
      })
      if (!lasts) return pooled('a setting of a session does not last')
      const isHeard = await withinTimeLimit(heard.promise).catch(() => false)
      // A new connection wakes all watchers.
      if (this.#notifications.link.up !== up) throw new Error('the connection that listens was lost')
      return isHeard ? undefined : pooled('notifications do not arrive')
    } finally {
      unwatch()
    }
  }

  #warn(text: string): void {
    this.#log?.warn(text, { store: this.description })
  }

  /** Removes expired rows, which no statement reads; resolves with the time to the next sweep in milliseconds. */
  async #sweepOnce(): Promise<number> {
    try {
      const { rowCount: entries } = await this.#calls.run(statements.sweepEntries)
      const { rowCount: members } = await this.#calls.run(statements.sweepMembers)
      await this.#calls.run(statements.sweepSets)
      return Math.max(entries ?? 0, members ?? 0) < rowsPerStep ? sweepIntervalMs : sweepPauseMs
    } catch (cause) {
      // So an instance that only reads finds out, too, that its server takes no writes any more.
      this.#learnFrom(cause)
      return sweepIntervalMs
    }
  }
}

function pooled(what: string): UnfitServerError {
  return new UnfitServerError(`${what}, as behind a pooler in transaction mode`)
}

/** Number of the advisory lock of a set. */
function lockKeyOf(name: string): number {
  return createHash('sha256').update(name).digest().readInt32BE()
}

function unavailable(cause: unknown): CountersignError {
  return refused('STORE_UNAVAILABLE', { retryAfterMs, cause: withoutDetails(cause) })
}
