import { randomUUID } from 'node:crypto'
import { accessSync, closeSync, constants, existsSync, openSync, realpathSync, statSync } from 'node:fs'
import { totalmem } from 'node:os'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Logger } from '../base/log.ts'
import { CountersignError, refused } from '../shared/errors.ts'
import {
  causeOf,
  exerciseStore,
  lifeOf,
  retryAfterMs,
  StoreOpenError,
  scanInOrder,
  withTtl,
  withValue,
} from './implementation.ts'
import { Batcher } from './sqlite-batcher.ts'
import { prepareFormat, readPragma } from './sqlite-format.ts'
import type { Life, ScannedValue, Store, VersionedValue } from './store.ts'
import { Watchers } from './watchers.ts'

/** The location of a database in the memory of the process. */
const inMemory = ':memory:'

/** Share of the memory of the machine, or of the container, that a database in memory takes at most. */
const shareOfMemory = 0.25
/** Most that a database in memory takes, in bytes. */
const maxMemoryBytes = 2 ** 31

/** How long the opening waits for another process's write, in milliseconds. It blocks the event loop. */
const openTimeoutMs = 1000

/**
 * Size in bytes that the write-ahead log is cut to once it starts over. It is below 5 MB, unless something reads the
 * file for long: meanwhile it grows.
 */
const maxIdleLogBytes = 8 * 2 ** 20

/** Time from one look at the paths of an open file to the next, in milliseconds. */
const fileCheckMs = 100

/** The time at which a value that lives forever expires, in milliseconds since 1970. */
const never = Number.MAX_SAFE_INTEGER

/** Most members that `addMember` names, as the contract has it. */
const maxSurplus = 10

/** Most rows of a table that one step of a sweep removes. */
const rowsPerSweep = 200
/** From the end of one sweep to the next, in milliseconds. */
const sweepIntervalMs = 5000
/** From one step to the next, in milliseconds: a pause in which the event loop serves requests. */
const sweepPauseMs = 10

/** Most values that a scan reads in one step. */
const valuesPerScan = 200

interface SqliteStoreOptions {
  /** Receives a line when the file is deleted or replaced. Default: none. */
  readonly log?: Logger | undefined
  /** Most bytes of a database in memory. Default: a quarter of the machine's or container's memory, 2 GiB at most. */
  readonly memoryBytes?: number
  /** Most steps that are done in one transaction. Default: 100. */
  readonly stepsPerBatch?: number
}

/**
 * Opens the embedded store: one SQLite file, or a database in memory.
 *
 * It is meant for one process (`shared` is false). Several may have the file open, as happens for a moment when a
 * service is replaced, and every step is atomic between them; but a wake-up reaches only the watchers in its own
 * process.
 *
 * A write survives a crash of the process at once. A power cut can lose the last moments, but does not damage the file.
 * If the file is deleted or replaced, calls fail, because what they write would be lost.
 *
 * A database in memory ends with the store. Writes fail while it is full.
 *
 * @param location path of the file, or `:memory:`. A missing file is created with mode 0600, because it contains
 * secrets.
 * @throws StoreOpenError if the file cannot be opened or written, is not a store of Countersign, or has a newer format.
 */
export async function openSqliteStore(location: string, options: SqliteStoreOptions = {}): Promise<Store> {
  const { log, memoryBytes = defaultMemoryBytes(), stepsPerBatch } = options
  const path = location === inMemory ? undefined : ownFile(location)
  const database = openDatabase(path ?? inMemory, location)
  // From here on, Batcher waits for locks without blocking the event loop.
  database.exec(`PRAGMA busy_timeout = 0; PRAGMA journal_size_limit = ${maxIdleLogBytes}`)
  if (path === undefined)
    database.exec(`PRAGMA max_page_count = ${Math.floor(memoryBytes / readPragma(database, 'page_size'))}`)
  const file = path === undefined ? undefined : new OpenFile(resolve(location), path, log)
  const store = new SqliteStore({
    database,
    description: path === undefined ? 'SQLite in memory' : `SQLite file ${location}`,
    watchers: path === undefined ? new Watchers() : watchersOfFile(path),
    file,
    stepsPerBatch,
  })
  try {
    await store.exercise()
    // The first write has made the files beside it.
    file?.remember()
    return store
  } catch (failure) {
    await store.close()
    throw openError(location, causeOf(failure))
  }
}

function defaultMemoryBytes(): number {
  // Without a container's limit it is the largest number that there is.
  return Math.min(Math.min(totalmem(), process.constrainedMemory()) * shareOfMemory, maxMemoryBytes)
}

function ownFile(location: string): string {
  const path = resolve(location)
  try {
    // SQLite would create it readable for everyone. The files that it puts beside it get the mode of this one. One that
    // is there is not opened here: closing it would end the locks that other handles in this process have on it.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
    // Says why it cannot be opened, which SQLite does not.
    else accessSync(path, constants.R_OK | constants.W_OK)
    return realpathSync(path)
  } catch (cause) {
    throw openError(location, cause)
  }
}

function openDatabase(path: string, location: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: openTimeoutMs })
    prepareFormat(database)
    return database
  } catch (cause) {
    database?.close()
    throw openError(location, cause)
  }
}

function openError(location: string, cause: unknown): StoreOpenError {
  const problem = cause instanceof Error ? cause.message : String(cause)
  const advice = 'Repair that or name another file in COUNTERSIGN_STORE.'
  return new StoreOpenError(`Cannot open the store file ${location}: ${problem}`, { advice, cause })
}

/**
 * Checks whether the files that are open are still those at their paths. SQLite writes to deleted ones without an
 * error.
 */
class OpenFile {
  readonly #paths: readonly string[]
  #identities: readonly string[] | undefined
  readonly #location: string
  readonly #log: Logger | undefined
  #isKept = true
  #checkAt = 0

  /**
   * @param location as the operator wrote it, so that a link that leads elsewhere shows.
   * @param path the same with its links followed, where SQLite has the files beside it.
   */
  constructor(location: string, path: string, log: Logger | undefined) {
    this.#location = location
    this.#paths = [location, `${path}-wal`, `${path}-shm`]
    this.#log = log
  }

  /** Takes the files that are there now for those that are open. */
  remember(): void {
    this.#identities = this.#paths.map(identityOf)
  }

  /** Lets the next {@link require} look at the files, however soon it comes. */
  lookAgain(): void {
    this.#checkAt = 0
  }

  /** Throws if one was deleted or replaced. Looks at them every 100 ms at most. */
  require(): void {
    if (performance.now() >= this.#checkAt) {
      this.#checkAt = performance.now() + fileCheckMs
      const wasKept = this.#isKept
      this.#isKept = this.#identities?.every((identity, i) => identity === identityOf(this.#paths[i] ?? '')) ?? true
      if (wasKept && !this.#isKept) this.#log?.error(this.#problem)
    }
    if (!this.#isKept) throw new Error(this.#problem)
  }

  get #problem(): string {
    return (
      `the store file ${this.#location}, or one of the files beside it, was deleted or replaced while it is ` +
      'open; calls fail until it is put back or the service is started again'
    )
  }
}

/** Device and inode of a file. Text, because those of some file systems are too large for numbers. */
function identityOf(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? 'missing' : `${found.dev}:${found.ino}`
}

/**
 * Shared by the handles of one file in this process. Entries are never removed: a few bytes for each file ever opened.
 */
const watchersByFile = new Map<string, Watchers>()

function watchersOfFile(path: string): Watchers {
  const watchers = watchersByFile.get(path) ?? new Watchers()
  watchersByFile.set(path, watchers)
  return watchers
}

interface SqliteStoreParts {
  readonly database: DatabaseSync
  readonly description: string
  readonly watchers: Watchers
  /** Undefined in memory. */
  readonly file: OpenFile | undefined
  readonly stepsPerBatch: number | undefined
}

class SqliteStore implements Store {
  readonly description: string
  readonly kind = 'sqlite'
  readonly shared = false
  readonly #database: DatabaseSync
  readonly #watchers: Watchers
  /** Ends each watch of this handle. */
  readonly #watches = new Set<() => void>()
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #steps: Batcher
  readonly #file: OpenFile | undefined
  #sweepTimer: NodeJS.Timeout
  /** Whether a call has failed, and not all kinds of calls have been seen to succeed since. */
  #failing = false

  constructor({ database, description, watchers, file, stepsPerBatch }: SqliteStoreParts) {
    this.description = description
    this.#database = database
    this.#watchers = watchers
    this.#file = file
    this.#statements = prepareStatements(database)
    this.#steps = new Batcher({
      database,
      requireFile: () => file?.require(),
      errorOf: (cause) => this.#failureOf(cause),
      closedError,
      maxSteps: stepsPerBatch,
    })
    this.#sweepTimer = this.#sweepIn(sweepIntervalMs)
  }

  now(): number {
    return Date.now()
  }

  get(key: string): Promise<VersionedValue | undefined> {
    return this.#steps.read(() => {
      const row = this.#statements.get.get(key, Date.now())
      return row && { value: String(row.value), version: Number(row.version) }
    })
  }

  create(key: string, value: string, life: Life): Promise<boolean> {
    return withValue(value, life, (ttlMs) =>
      this.#steps.write(() => {
        const now = Date.now()
        return this.#statements.create.run(key, value, expiryOf(ttlMs, now), now).changes === 1
      }),
    )
  }

  take(key: string): Promise<string | undefined> {
    return this.#steps.write(() => {
      const [row] = this.#statements.take.all(key, Date.now())
      return row === undefined ? undefined : String(row.value)
    })
  }

  compareAndSet(
    key: string,
    version: number,
    value: string,
    life: Life,
    options: { wake?: boolean } = {},
  ): Promise<boolean> {
    const wake = options.wake === true
    return withValue(value, life, (ttlMs) =>
      this.#steps.write(
        () => {
          const now = Date.now()
          return this.#statements.compareAndSet.run(value, expiryOf(ttlMs, now), key, version, now).changes === 1
        },
        (isSet) => {
          if (isSet && wake) this.#watchers.wake(key)
        },
      ),
    )
  }

  async watch(key: string, onWake: () => void): Promise<() => void> {
    if (!this.#database.isOpen) throw closedError()
    const remove = this.#watchers.add(key, onWake)
    const unwatch = () => {
      this.#watches.delete(unwatch)
      remove()
    }
    this.#watches.add(unwatch)
    return unwatch
  }

  addMember(set: string, member: string, life: Life, most?: number): Promise<string[]> {
    return withTtl(life, (ttlMs) =>
      this.#steps.write(() => {
        this.#statements.addMember.run(set, member, expiryOf(ttlMs, Date.now()))
        return most === undefined ? [] : this.#surplusOf(set, member, most)
      }),
    )
  }

  async removeMember(set: string, member: string): Promise<void> {
    await this.#steps.write(() => this.#statements.removeMember.run(set, member))
  }

  async members(set: string): Promise<string[]> {
    const rows = await this.#steps.read(() => this.#statements.members.all(set, Date.now()))
    return rows.map((row) => String(row.member))
  }

  scan(beginning: string): AsyncGenerator<ScannedValue> {
    const step = async (from: string, end: string): Promise<ScannedValue[]> => {
      const rows = await this.#steps.read(() => this.#statements.scan.all(from, end, Date.now(), valuesPerScan))
      return rows.map((row) => {
        const ttlMs = row.expires_at === never ? undefined : Number(row.expires_at) - Date.now()
        return { key: String(row.key), value: String(row.value), life: lifeOf(ttlMs) }
      })
    }
    return scanInOrder({ beginning, valuesPerStep: valuesPerScan, step })
  }

  /** Makes each kind of call once, so that a file that cannot be written shows it. */
  async exercise(): Promise<void> {
    await exerciseStore(this, `ping:${randomUUID()}`)
  }

  async ping(): Promise<void> {
    this.#file?.lookAgain()
    await this.#steps.read(() => this.#statements.get.get('', 0))
    if (!this.#failing) return
    // A disk that is full can still be read. A failure from here on sets it again.
    this.#failing = false
    await this.exercise()
  }

  /** Does what was begun before. */
  async close(): Promise<void> {
    if (!this.#database.isOpen) return
    clearTimeout(this.#sweepTimer)
    for (const unwatch of this.#watches) unwatch()
    this.#steps.finish()
    this.#database.close()
  }

  /** The members beyond `most`, without the one that was just added; drops those beyond twice as many. */
  #surplusOf(set: string, added: string, most: number): string[] {
    const now = Date.now()
    const { countMembers, soonestMembers, dropSoonestMembers } = this.#statements
    const count = Number(countMembers.get(set, now)?.count)
    if (count <= most) return []
    const surplus = soonestMembers.all(set, now, added, Math.min(count - most, maxSurplus))
    if (count > 2 * most) dropSoonestMembers.run(set, set, now, added, count - 2 * most)
    return surplus.map((row) => String(row.member))
  }

  #failureOf(cause: unknown): CountersignError {
    this.#failing = true
    return refused('STORE_UNAVAILABLE', { retryAfterMs, cause })
  }

  #sweepIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#sweepTimer = this.#sweepIn(this.#sweepOnce())
    }, delayMs).unref()
  }

  /** Removes some of the rows that have expired, and returns the time until the next step. */
  #sweepOnce(): number {
    try {
      const { sweepEntries, sweepMembers } = this.#statements
      const removed = [sweepEntries, sweepMembers].map((sweep) => Number(sweep.run(Date.now(), rowsPerSweep).changes))
      return Math.max(...removed) < rowsPerSweep ? sweepIntervalMs : sweepPauseMs
    } catch {
      // Expired rows do no harm, because no statement reads them. The next sweep removes them.
      return sweepIntervalMs
    }
  }
}

function closedError(): CountersignError {
  return new CountersignError('STORE_UNAVAILABLE', 'The store is closed', { retryAfterMs })
}

// A statement with RETURNING is run with all(), because get() would stop it before its commit and hide a failure of
// that.
function prepareStatements(database: DatabaseSync) {
  const soonestMembers =
    'SELECT member FROM members WHERE set_key = ? AND expires_at > ? AND member <> ? ORDER BY expires_at LIMIT ?'
  return {
    get: database.prepare('SELECT value, version FROM entries WHERE key = ? AND expires_at > ?'),
    create: database.prepare(
      `INSERT INTO entries (key, value, version, expires_at) VALUES (?, ?, 1, ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = 1, expires_at = excluded.expires_at
       WHERE entries.expires_at <= ?`,
    ),
    take: database.prepare('DELETE FROM entries WHERE key = ? AND expires_at > ? RETURNING value'),
    compareAndSet: database.prepare(
      `UPDATE entries SET value = ?, version = version + 1, expires_at = ?
       WHERE key = ? AND version = ? AND expires_at > ?`,
    ),
    addMember: database.prepare(
      `INSERT INTO members (set_key, member, expires_at) VALUES (?, ?, ?)
       ON CONFLICT (set_key, member) DO UPDATE SET expires_at = excluded.expires_at`,
    ),
    countMembers: database.prepare('SELECT count(*) AS count FROM members WHERE set_key = ? AND expires_at > ?'),
    soonestMembers: database.prepare(soonestMembers),
    dropSoonestMembers: database.prepare(`DELETE FROM members WHERE set_key = ? AND member IN (${soonestMembers})`),
    removeMember: database.prepare('DELETE FROM members WHERE set_key = ? AND member = ?'),
    members: database.prepare('SELECT member FROM members WHERE set_key = ? AND expires_at > ?'),
    scan: database.prepare(
      'SELECT key, value, expires_at FROM entries WHERE key >= ? AND key < ? AND expires_at > ? ORDER BY key LIMIT ?',
    ),
    sweepEntries: database.prepare(
      'DELETE FROM entries WHERE key IN (SELECT key FROM entries WHERE expires_at <= ? LIMIT ?)',
    ),
    sweepMembers: database.prepare(
      `DELETE FROM members WHERE (set_key, member) IN
       (SELECT set_key, member FROM members WHERE expires_at <= ? LIMIT ?)`,
    ),
  }
}

function expiryOf(ttlMs: number | undefined, now: number): number {
  return ttlMs === undefined ? never : now + ttlMs
}
