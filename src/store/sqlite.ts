import { randomUUID } from 'node:crypto'
import { accessSync, closeSync, constants, existsSync, openSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite'
import { CountersignError } from '../errors.ts'
import { exerciseStore } from './exercise.ts'
import { withTtl } from './life.ts'
import { StoreOpenError } from './open-error.ts'
import { prepareFormat } from './sqlite-format.ts'
import { StepQueue } from './sqlite-steps.ts'
import type { Life, ScannedValue, Store, VersionedValue } from './store.ts'
import { storeClosed, storeUnavailable } from './unavailable.ts'
import { Watchers } from './watchers.ts'

/** How long a step waits for another process's write, in milliseconds. It blocks the event loop, so not for long. */
const busyTimeoutMs = 1000

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

/**
 * Opens the embedded store: one SQLite file.
 *
 * A file of an older release is brought to the current format, see {@link prepareFormat}.
 *
 * It is meant for one process (`shared` is false). Several may have the file open, as happens for a moment when a
 * service is replaced, and every step is atomic between them; but a wake-up reaches only the watchers in its own
 * process.
 *
 * A write survives a crash of the process at once. A power cut can lose the last moments, but does not damage the file.
 *
 * @param location path of the file. A missing one is created with mode 0600, because it contains secrets.
 * @throws StoreOpenError if the file cannot be opened or written, is not a store of Countersign, or has a newer format.
 */
export async function openSqliteStore(location: string): Promise<Store> {
  const path = ownFile(location)
  const database = openDatabase(path, location)
  const store = new SqliteStore({ database, location, watchers: watchersOfFile(path) })
  try {
    await store.prove()
    return store
  } catch (failure) {
    await store.close()
    const cause = failure instanceof CountersignError ? failure.cause : failure
    throw openError(location, describe(cause), cause)
  }
}

function ownFile(location: string): string {
  const path = resolve(location)
  try {
    // SQLite would create it readable for everyone. The files that it puts beside it get the mode of this one.
    // One that is there is not opened here: closing it would end the locks that other handles in this process have on it.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
    // Says why it cannot be opened, which SQLite does not.
    else accessSync(path, constants.R_OK | constants.W_OK)
    return realpathSync(path)
  } catch (cause) {
    throw openError(location, describe(cause), cause)
  }
}

function openDatabase(path: string, location: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: busyTimeoutMs })
    prepareFormat(database)
    return database
  } catch (cause) {
    database?.close()
    throw openError(location, describe(cause), cause)
  }
}

function openError(location: string, problem: string, cause: unknown): StoreOpenError {
  const message = `Cannot open the store file ${location}: ${problem}. Repair that or name another file in COUNTERSIGN_STORE.`
  return new StoreOpenError(message, { cause })
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
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
  /** As the operator wrote it. */
  readonly location: string
  readonly watchers: Watchers
}

class SqliteStore implements Store {
  readonly description: string
  readonly shared = false
  readonly #database: DatabaseSync
  readonly #watchers: Watchers
  /** Ends each watch of this handle. */
  readonly #watches = new Set<() => void>()
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #steps: StepQueue
  #sweepTimer: NodeJS.Timeout
  /** Whether a call has failed, and not all kinds of calls have been seen to succeed since. */
  #failing = false

  constructor({ database, location, watchers }: SqliteStoreParts) {
    this.description = `SQLite file ${location}`
    this.#database = database
    this.#watchers = watchers
    this.#statements = prepareStatements(database)
    this.#steps = new StepQueue({
      database,
      errorOf: (cause) => this.#failureOf(cause),
      closedError: storeClosed,
    })
    this.#sweepTimer = this.#sweepIn(sweepIntervalMs)
  }

  now(): number {
    return Date.now()
  }

  get(key: string): Promise<VersionedValue | undefined> {
    return this.#steps.read(() => {
      const row = rowOf(this.#statements.get.get(key, Date.now()))
      return row && { value: String(row[0]), version: Number(row[1]) }
    })
  }

  create(key: string, value: string, life: Life): Promise<boolean> {
    return withTtl(life, (ttlMs) =>
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
    return withTtl(life, (ttlMs) =>
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
    this.#requireOpen()
    const remove = this.#watchers.add(key, onWake)
    const unwatch = () => {
      this.#watches.delete(unwatch)
      remove()
    }
    this.#watches.add(unwatch)
    return unwatch
  }

  addMember(set: string, member: string, life: Life, most?: number): Promise<string[]> {
    return withTtl(life, (ttlMs) => {
      const add = (): string[] => {
        this.#statements.addMember.run(set, member, expiryOf(ttlMs, Date.now()))
        return []
      }
      if (most === undefined) return this.#steps.write(add)
      return this.#steps.transaction(() => {
        add()
        return this.#surplusOf(set, member, most)
      })
    })
  }

  async removeMember(set: string, member: string): Promise<void> {
    await this.#steps.write(() => this.#statements.removeMember.run(set, member))
  }

  async members(set: string): Promise<string[]> {
    const rows = await this.#steps.read(() => this.#statements.members.all(set, Date.now()))
    return rows.map((row) => String(row.member))
  }

  async *scan(beginning: string): AsyncGenerator<ScannedValue> {
    // Keys are ASCII, so DEL comes after whatever a key can have there.
    const end = `${beginning}\x7f`
    for (let last = beginning; ; ) {
      const after = last
      const rows = await this.#steps.read(() => this.#statements.scan.all(after, end, Date.now(), valuesPerScan))
      for (const row of rows) yield { key: String(row.key), value: String(row.value) }
      if (rows.length < valuesPerScan) return
      last = String(rows.at(-1)?.key)
    }
  }

  /** Makes each kind of call once, so that a file that cannot be written shows it. */
  async prove(): Promise<void> {
    await exerciseStore(this, `ping:${randomUUID()}`)
  }

  async ping(): Promise<void> {
    await this.#steps.read(() => this.#statements.get.get('', 0))
    if (!this.#failing) return
    // A disk that is full can still be read. A failure from here on sets it again.
    this.#failing = false
    this.#requireUnlocked()
    await this.prove()
  }

  /** Throws if another process has the lock. Does not wait for it, because that would keep everybody waiting. */
  #requireUnlocked(): void {
    this.#requireOpen()
    this.#database.exec('PRAGMA busy_timeout = 0')
    try {
      this.#database.exec('BEGIN IMMEDIATE; ROLLBACK')
    } catch (cause) {
      throw this.#failureOf(cause)
    } finally {
      this.#database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    }
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
    const count = Number(rowOf(countMembers.get(set, now))?.[0])
    if (count <= most) return []
    const surplus = soonestMembers.all(set, now, added, Math.min(count - most, maxSurplus))
    if (count > 2 * most) dropSoonestMembers.run(set, set, now, added, count - 2 * most)
    return surplus.map((row) => String(row.member))
  }

  #requireOpen(): void {
    if (!this.#database.isOpen) throw storeClosed()
  }

  #failureOf(cause: unknown): CountersignError {
    this.#failing = true
    return storeUnavailable('The store does not answer', cause)
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

/** A row of a statement that returns arrays, which its type does not say. */
function rowOf(row: unknown): readonly SQLOutputValue[] | undefined {
  return row as readonly SQLOutputValue[] | undefined
}

// A statement with RETURNING is run with all(), because get() would stop it before its commit and hide a failure of
// that.
function prepareStatements(database: DatabaseSync): Record<StatementName, StatementSync> {
  const soonestMembers =
    'SELECT member FROM members WHERE set_key = ? AND expires_at > ? AND member <> ? ORDER BY expires_at LIMIT ?'
  return {
    get: inArrays(database.prepare('SELECT value, version FROM entries WHERE key = ? AND expires_at > ?')),
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
    countMembers: inArrays(database.prepare('SELECT count(*) FROM members WHERE set_key = ? AND expires_at > ?')),
    soonestMembers: database.prepare(soonestMembers),
    dropSoonestMembers: database.prepare(`DELETE FROM members WHERE set_key = ? AND member IN (${soonestMembers})`),
    removeMember: database.prepare('DELETE FROM members WHERE set_key = ? AND member = ?'),
    members: database.prepare('SELECT member FROM members WHERE set_key = ? AND expires_at > ?'),
    scan: database.prepare(
      'SELECT key, value FROM entries WHERE key > ? AND key < ? AND expires_at > ? ORDER BY key LIMIT ?',
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

/** Without the names of the columns: for a row or two, they take longer than to find it. */
function inArrays(statement: StatementSync): StatementSync {
  statement.setReturnArrays(true)
  return statement
}

type StatementName =
  | 'get'
  | 'create'
  | 'take'
  | 'compareAndSet'
  | 'addMember'
  | 'countMembers'
  | 'soonestMembers'
  | 'dropSoonestMembers'
  | 'removeMember'
  | 'members'
  | 'scan'
  | 'sweepEntries'
  | 'sweepMembers'

function expiryOf(ttlMs: number | undefined, now: number): number {
  return ttlMs === undefined ? never : now + ttlMs
}
