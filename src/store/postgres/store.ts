import { createHash, randomUUID } from 'node:crypto'
import type { QueryResult } from 'pg'
import type { Logger } from '../../base/log.ts'
import { CountersignError, refused } from '../../shared/errors.ts'
import { ServerClock } from '../clock.ts'
import { causeOf, exerciseStore, lifeOf, StoreOpenError, withTtl, withValue } from '../implementation.ts'
import { defaultKeyPrefix } from '../map-store.ts'
import type { StoreOptions } from '../open.ts'
import { ReconnectingLink, withinTimeLimit } from '../reconnecting-link.ts'
import type { Life, ScannedValue, Store, VersionedValue } from '../store.ts'
import { Watchers } from '../watchers.ts'
import { Batches } from './batches.ts'
import { type Access, accessOf, Calls, Listener, type Statement, sqlStateOf, UnfitServerError } from './connection.ts'
import { explainProblem, refusedNotifications, roomWarning, withoutDetails } from './problem.ts'
import { describeOwners, lockClass, type Owner, otherOwners, ownersAdvice, prepareSchema } from './schema.ts'
import { channel, rowsPerSweep, statements, valuesPerScan } from './statements.ts'
import type { TlsFiles } from './tls.ts'
import { describeTarget } from './url.ts'

/** Time in ms after which a caller may try again when the store does not answer. */
const retryAfterMs = 1000

/** How often a step is done again that the server took back because of another one. */
const maxTries = 5

/** From one look whether sessions of the server are its own to the next, in milliseconds; and while they are not. */
const fitnessIntervalMs = 60_000
const unfitIntervalMs = 5000

/** From the end of one sweep to the next, in milliseconds; between two steps of one, there is more to remove. */
const sweepIntervalMs = 5000
const sweepPauseMs = 50

/** Largest version of an entry: that of an integer of the server. */
const maxVersion = 2 ** 31 - 1

/** Most payloads that wait to be sent again. Watchers of others read again at their next heartbeat. */
const mostUnsent = 10_000

/** Most payloads that go with a change because they could not be sent before. */
const mostAgain = 99

/**
 * Opens a store in PostgreSQL 14 or newer. Its tables are in the schema `countersign`, which is made if it is missing;
 * all keys begin with `keyPrefix` and a colon.
 *
 * A process has up to `connections` of the URL for its calls and another for its watches. Each call is answered or
 * fails within 2.5 seconds. A call whose answer was lost is not repeated, because a second `take` would find nothing.
 *
 * @throws TypeError if the URL is malformed, a file that it names is missing or not what it should be, or the package pg is
 * not installed.
 * @throws StoreOpenError if no suitable server answers in time, or it cannot be used. The message is one line that says
 * what to do, without credentials.
 */
export async function openPostgresStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const { keyPrefix = defaultKeyPrefix, log } = options
  const store = new PostgresStore(await accessOf(url), keyPrefix)
  try {
    await store.prove(log)
    return store
  } catch (cause) {
    await store.close()
    const { problem, advice } = explainProblem(causeOf(cause))
    throw new StoreOpenError(`Cannot open the store, ${store.description}: ${problem}`, { advice, cause })
  }
}

/** What the server answers of a step. */
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
  readonly #tls: TlsFiles | undefined
  readonly #calls: Calls
  readonly #watchers = new Watchers()
  readonly #link: ReconnectingLink<Listener>
  readonly #clock: ServerClock
  readonly #get = this.#batched<ValueRow & { version: number }>(statements.get, { isShared: true })
  readonly #create = this.#batched(statements.create)
  readonly #take = this.#batched<ValueRow>(statements.take)
  readonly #compareAndSet = this.#batched(statements.compareAndSet)
  readonly #addMember = this.#batched<{ key: string; members: string[] }>(statements.addMember)
  /**
   * What others are notified of, after its commit and in statements that write nothing: PostgreSQL makes commits that
   * write and notify one after another.
   */
  readonly #notifications = new Batches<{ key: string }>({
    run: async (columns) => {
      if (this.#link.up === undefined) throw new Error('there is no connection to notify by')
      try {
        await this.#link.up.run(statements.notify.text, columns())
        this.#warned.delete(refusedNotifications)
        return []
      } catch (error) {
        if (sqlStateOf(error) !== undefined) this.#warnOnce(refusedNotifications)
        throw error
      }
    },
    isShared: true,
    mostAtOnce: 1,
  })
  /** Payloads that could not be sent. They go with the next one, or once there is a connection. */
  readonly #unsent = new Set<string>()
  /** Resolves once all payloads have been sent, or could not be. */
  #notified: Promise<unknown> | undefined
  #fitnessTimer: NodeJS.Timeout
  #sweepTimer: NodeJS.Timeout
  /** Resolves once notifications are heard. */
  #listening = Promise.withResolvers<void>()
  /** Called when the notification of a probe comes. */
  readonly #probes = new Map<string, () => void>()
  /** Why the server cannot be used although it answers. */
  #unfit: UnfitServerError | undefined
  /** Whether a call has failed, and not all kinds of calls have been seen to succeed since. */
  #failing = false
  #closed = false
  #log: Logger | undefined
  readonly #warned = new Set<string>()

  constructor(access: Access, keyPrefix: string) {
    this.#prefix = `${keyPrefix}:`
    this.#tls = access.tls
    this.description = describeTarget(access.target)
    const onServer = (server: string): void => {
      // The server that is listened to has lost its address, and may go on without it: nothing of it counts any more.
      if (this.#link.up !== undefined && this.#link.up.server !== server) this.#link.drop()
    }
    this.#calls = new Calls(access, onServer, () => this.#warnOnce(roomWarning))
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
    const dial = (): Promise<Listener> =>
      Listener.dial(access, channel, this.#onPayload).catch((error) => {
        if (sqlStateOf(error) === '53300') this.#calls.giveUpOne()
        throw error
      })
    this.#link = new ReconnectingLink(dial, {
      onUp: () => {
        this.#listening.resolve()
        this.#clock.serverUp(this.description)
        // Notifications may have been missed.
        this.#watchers.wakeAll()
        this.#notify()
      },
      onLost: () => {
        this.#listening = Promise.withResolvers()
        // The network may have broken unnoticed, or another server taken the place of this one.
        this.#calls.renew()
      },
    })
    this.#fitnessTimer = this.#lookIn(fitnessIntervalMs)
    this.#sweepTimer = this.#sweepIn(sweepIntervalMs)
  }

  /** Makes the tables if need be, and resolves once the server has done each kind of call. */
  async prove(log: Logger | undefined): Promise<void> {
    this.#log = log
    await this.#calls.on(prepareSchema)
    await withinTimeLimit(this.#link.connection)
    await withinTimeLimit(this.#clock.measure())
    const unfit = await this.#findUnfit()
    if (unfit !== undefined) throw unfit
    await exerciseStore(this, `ping:${randomUUID()}`)
    if (log === undefined) return
    await this.#warnOfStandbys(log)
    await this.#tellOwners(log)
  }

  now(): number {
    return this.#clock.now()
  }

  async get(key: string): Promise<VersionedValue | undefined> {
    const row = await this.#get(key)
    return row && { value: row.value.toString(), version: row.version }
  }

  create(key: string, value: string, life: Life): Promise<boolean> {
    return withValue(value, life, async (ttlMs) => {
      return (await this.#create(key, Buffer.from(value), ttlMs)) !== undefined
    })
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
        if (options.wake && isChanged) this.#wake(payloadOf(this.#prefix + key))
      }
    })
  }

  async watch(key: string, onWake: () => void): Promise<() => void> {
    const unwatch = this.#watchers.add(payloadOf(this.#prefix + key), onWake)
    try {
      if (this.#closed) throw new Error('the store is closed')
      if (this.#unfit !== undefined) throw this.#unfit
      await withinTimeLimit(this.#listening.promise)
      return unwatch
    } catch (cause) {
      unwatch()
      throw unavailable(cause)
    }
  }

  addMember(set: string, member: string, life: Life, most?: number): Promise<string[]> {
    return withTtl(life, async (ttlMs) => {
      const name = this.#prefix + set
      // By both, so that a set which is much in use takes one statement and not one for each member.
      const row = await this.#addMember(`${set}\n${member}`, name, member, ttlMs, most, digest(name).readInt32BE())
      return row?.members ?? []
    })
  }

  async removeMember(set: string, member: string): Promise<void> {
    const name = this.#prefix + set
    await this.#run(statements.removeMember, [name, member, lockClass, digest(name).readInt32BE()])
  }

  async members(set: string): Promise<string[]> {
    const { rows } = await this.#run<{ member: string }>(statements.members, [this.#prefix + set])
    return rows.map((row) => row.member)
  }

  async *scan(beginning: string): AsyncGenerator<ScannedValue> {
    // Keys are printable ASCII: DEL comes after every character that one can have, and U+0001 before.
    let from = this.#prefix + beginning
    const end = `${from}\x7f`
    for (;;) {
      const { rows } = await this.#run<ValueRow & { ttl: number | null }>(statements.scan, [from, end])
      for (const { key, value, ttl } of rows) {
        yield { key: key.slice(this.#prefix.length), value: value.toString(), life: lifeOf(ttl ?? undefined) }
      }
      if (rows.length < valuesPerScan) return
      from = `${rows.at(-1)?.key}\x01`
    }
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
    this.#closed = true
    clearTimeout(this.#fitnessTimer)
    clearTimeout(this.#sweepTimer)
    this.#clock.close()
    this.#watchers.clear()
    this.#calls.close()
    await this.#notified
    this.#link.close()
  }

  /** Steps of a kind, done by a statement for many. */
  #batched<Row extends { readonly key: string } = { key: string }>(statement: Statement, { isShared = false } = {}) {
    const batches = new Batches<Row>({
      run: async (columns, isOver) => {
        try {
          return (await this.#attempt<Row>(statement, columns, isOver)).rows
        } catch (cause) {
          throw isOfOneStep(cause) ? cause : this.#learnFrom(cause)
        }
      },
      isShared,
      isOfOne: isOfOneStep,
    })
    return async (key: string, ...values: readonly unknown[]): Promise<Row | undefined> => {
      // No entry has such a key, and the server would refuse the steps beside it, too.
      if (key.includes('\0')) throw unavailable(new Error('a key cannot have NUL in it'))
      return await batches.do([this.#prefix + key, ...values]).catch((cause) => {
        throw this.#learnFrom(cause)
      })
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
    isOver?: AbortSignal,
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
        if (tries >= maxTries || !isTakenBack(cause) || isOver?.aborted) throw cause
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
      this.#link.drop()
    }
    return unavailable(cause)
  }

  /** Wakes the watchers of a change, here and elsewhere. */
  #wake(payload: string): void {
    this.#watchers.wake(payload)
    this.#notify(payload)
  }

  /**
   * Notifies others of a change, and of some of those before that could not be notified of; of further ones after each
   * success, so that refusals do not grow with what waits.
   */
  #notify(...changes: string[]): void {
    const keep = (payload: string): void => {
      if (this.#unsent.size < mostUnsent) this.#unsent.add(payload)
    }
    if (this.#link.up === undefined) {
      for (const payload of changes) keep(payload)
      return
    }
    for (const payload of [...[...this.#unsent].slice(0, mostAgain), ...changes]) {
      this.#unsent.delete(payload)
      const sent = this.#notifications.do([payload]).then(
        () => {
          if (this.#unsent.size > 0) this.#notify()
        },
        () => keep(payload),
      )
      this.#notified = Promise.all([this.#notified, sent])
    }
  }

  readonly #onPayload = (payload: string): void => {
    this.#probes.get(payload)?.()
    this.#watchers.wake(payload)
  }

  #lookIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(async () => {
      // A file that cannot be read leaves the one before in use.
      await this.#tls?.read().catch(() => undefined)
      // A server that cannot be reached makes calls fail anyway, and is found again by them.
      const isFit = await this.#lookAfterSessions().then(
        () => this.#unfit === undefined,
        () => false,
      )
      const next = isFit ? fitnessIntervalMs : unfitIntervalMs
      if (!this.#closed) this.#fitnessTimer = this.#lookIn(next)
    }, delayMs).unref()
  }

  async #lookAfterSessions(): Promise<void> {
    const before = this.#unfit
    this.#unfit = await this.#findUnfit()
    if (before === undefined && this.#unfit === undefined) return
    // What was prepared, set or listened to may be lost with the sessions: the next look and calls take new ones.
    this.#calls.renew()
    if (this.#unfit !== undefined) this.#link.drop()
  }

  /**
   * Finds out whether a connection here is a session there, and notifications come. Behind a pooler that gives each
   * transaction another session, watchers would sleep and settings would be lost. Resolves with what is wrong; rejects
   * if the server cannot be asked.
   */
  async #findUnfit(): Promise<UnfitServerError | undefined> {
    await withinTimeLimit(this.#listening.promise)
    const link = this.#link.up
    const probe = randomUUID()
    const { promise: heard, resolve } = Promise.withResolvers<void>()
    this.#probes.set(probe, resolve)
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
      const arrives = await withinTimeLimit(heard).then(
        () => true,
        () => false,
      )
      if (arrives) return undefined
      if (this.#link.up !== link) throw new Error('the connection that listens was lost')
      return pooled('notifications do not arrive')
    } finally {
      this.#probes.delete(probe)
    }
  }

  #warnOnce(text: string): void {
    if (!this.#warned.has(text)) this.#log?.warn(text, { store: this.description })
    this.#warned.add(text)
  }

  async #warnOfStandbys(log: Logger): Promise<void> {
    const { rows } = await this.#calls.on((client) =>
      client.query<{ standbys: boolean; names: string }>(
        `SELECT EXISTS (SELECT FROM pg_stat_replication) AS standbys,
          current_setting('synchronous_standby_names') AS names`,
      ),
    )
    if (rows[0]?.standbys !== true || rows[0].names !== '') return
    log.warn(
      'PostgreSQL has standbys and waits for none of them, so a fail-over can lose what was acknowledged: set ' +
        'synchronous_standby_names',
      { store: this.description },
    )
  }

  async #tellOwners(log: Logger): Promise<void> {
    const { rows } = await this.#calls.on((client) => client.query<{ owners: Owner[] }>(otherOwners))
    const [{ owners } = { owners: [] }] = rows
    if (owners.length === 0) return
    const said = `In PostgreSQL, ${describeOwners(owners)}`
    const fields = { store: this.description }
    if (owners.every(({ isSuperuser }) => isSuperuser)) log.info(said, fields)
    else log.warn(`${said}. ${ownersAdvice}`, fields)
  }

  #sweepIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(async () => {
      const next = await this.#sweepOnce()
      if (!this.#closed) this.#sweepTimer = this.#sweepIn(next)
    }, delayMs).unref()
  }

  /** Removes expired rows, which no statement reads; resolves with the time to the next sweep in milliseconds. */
  async #sweepOnce(): Promise<number> {
    try {
      const { rowCount: entries } = await this.#calls.run(statements.sweepEntries)
      const { rowCount: members } = await this.#calls.run(statements.sweepMembers)
      await this.#calls.run(statements.sweepSets)
      return Math.max(entries ?? 0, members ?? 0) < rowsPerSweep ? sweepIntervalMs : sweepPauseMs
    } catch (cause) {
      // So an instance that only reads finds out, too, that its server takes no writes any more.
      this.#learnFrom(cause)
      return sweepIntervalMs
    }
  }
}

/** Whether the server did not do a step because of another one at the same time. */
function isTakenBack(cause: unknown): boolean {
  const state = sqlStateOf(cause)
  return state === '40001' || state === '40P01'
}

/**
 * Whether the server undid a statement at once for what can be the fault of one of its steps: another transaction, or a
 * value that it cannot take. One behind a lock has used up the time of those beside it.
 */
function isOfOneStep(cause: unknown): boolean {
  return /^(?:40|22|21000)/.test(sqlStateOf(cause) ?? '')
}

function pooled(what: string): UnfitServerError {
  return new UnfitServerError(`${what}, as behind a pooler in transaction mode`)
}

/** What is notified of a change: any user of the database may listen, so it tells no key. */
function payloadOf(name: string): string {
  return digest(name).toString('base64url')
}

function digest(name: string): Buffer {
  return createHash('sha256').update(name).digest()
}

function unavailable(cause: unknown): CountersignError {
  return refused('STORE_UNAVAILABLE', { retryAfterMs, cause: withoutDetails(cause) })
}
