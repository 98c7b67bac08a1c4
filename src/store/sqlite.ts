import { closeSync, openSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { CountersignError } from '../errors.ts'
import { ttlMsOf } from './life.ts'
import { StoreOpenError } from './open-error.ts'
import type { Life, Store, VersionedValue } from './store.ts'
import { Watchers } from './watchers.ts'

const SCHEMA_VERSION = 1
// "CSGN": tells a file of Countersign from anyone else's SQLite file.
const APPLICATION_ID = 0x4353474e
// Waiting for another process's write blocks the event loop, so not for long.
const BUSY_TIMEOUT_MS = 1000
const RETRY_AFTER_MS = 1000
const FOREVER = Number.MAX_SAFE_INTEGER

const SWEEP_EVERY_MS = 5000
// While expired rows are left, slices follow each other with pauses in which the event loop serves requests.
const SWEEP_AGAIN_MS = 10
const ROWS_PER_SWEEP = 200

// Entries have a rowid: their values are too long to move about in the tree of the keys.
const SCHEMA = `
  CREATE TABLE entries (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    version INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX entries_by_expiry ON entries (expires_at);
  CREATE TABLE members (
    set_key TEXT NOT NULL,
    member TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (set_key, member)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX members_by_expiry ON members (expires_at);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`

/**
 * Opens the embedded store: one SQLite file, or memory.
 *
 * It serves one process (`shared` is false). Several may have the file open, as happens for a moment when a service is
 * replaced, and every step stays atomic between them; but a wake-up reaches only the watchers in its own process.
 *
 * A write is safe from a crash of the process at once. A power cut can lose the last moments, never the file.
 *
 * @param location the path of the file, made with mode 0600 if it is missing because it holds secrets; or ':memory:'.
 * @throws StoreOpenError when the file cannot be opened, is not a store of Countersign, or has a newer schema.
 */
export async function openSqliteStore(location: string): Promise<Store> {
  const path = location === ':memory:' ? location : ownFile(location)
  const database = openDatabase(path, location)
  return new SqliteStore(database, location, path === ':memory:' ? new Watchers() : watchersOfFile(path))
}

function ownFile(location: string): string {
  const path = resolve(location)
  try {
    // SQLite would make it readable by everyone; the files beside it get the mode of this one.
    closeSync(openSync(path, 'a', 0o600))
    return realpathSync(path)
  } catch (cause) {
    throw openError(location, describe(cause), cause)
  }
}

function openDatabase(path: string, location: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
    prepareSchema(database)
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

function prepareSchema(database: DatabaseSync): void {
  // Before anything is written, so that a wrong path leaves someone else's file as it was.
  if (!isEmpty(database) && readPragma(database, 'application_id') !== APPLICATION_ID) {
    throw new Error('it is the SQLite file of another application')
  }
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
  database.exec('BEGIN IMMEDIATE')
  try {
    const version = readPragma(database, 'user_version')
    if (version > SCHEMA_VERSION) {
      throw new Error(
        `it has schema version ${version} of a newer Countersign, and this one knows up to ${SCHEMA_VERSION}`,
      )
    }
    // Asked again under the lock: another process may have made the tables in the meantime.
    if (isEmpty(database)) database.exec(SCHEMA)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined
}

function readPragma(database: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name])
}

// Handles of one file in one process share their watchers. An entry stays: a few bytes for each file ever opened.
const watchersByFile = new Map<string, Watchers>()

function watchersOfFile(path: string): Watchers {
  const watchers = watchersByFile.get(path) ?? new Watchers()
  watchersByFile.set(path, watchers)
  return watchers
}

class SqliteStore implements Store {
  readonly description: string
  readonly shared = false
  readonly #database: DatabaseSync
  readonly #watchers: Watchers
  readonly #watches = new Set<() => void>()
  readonly #statements: ReturnType<typeof prepareStatements>
  #sweepTimer: NodeJS.Timeout

  constructor(database: DatabaseSync, location: string, watchers: Watchers) {
    this.description = location === ':memory:' ? 'SQLite in memory' : `SQLite file ${location}`
    this.#database = database
    this.#watchers = watchers
    this.#statements = prepareStatements(database)
    this.#sweepTimer = this.#sweepIn(SWEEP_EVERY_MS)
  }

  async get(key: string): Promise<VersionedValue | undefined> {
    const [row] = this.#step(() => this.#statements.get.all(key, Date.now()))
    return row && { value: String(row.value), version: Number(row.version) }
  }

  async create(key: string, value: string, life: Life): Promise<boolean> {
    const expiresAt = expiryOf(life)
    return this.#step(() => this.#statements.create.run(key, value, expiresAt, Date.now())).changes === 1
  }

  async take(key: string): Promise<string | undefined> {
    const [row] = this.#step(() => this.#statements.take.all(key, Date.now()))
    return row && String(row.value)
  }

  async compareAndSet(
    key: string,
    version: number,
    value: string,
    life: Life,
    options: { wake?: boolean } = {},
  ): Promise<boolean> {
    const expiresAt = expiryOf(life)
    const { changes } = this.#step(() => this.#statements.compareAndSet.run(value, expiresAt, key, version, Date.now()))
    if (changes === 0) return false
    if (options.wake) this.#watchers.wake(key)
    return true
  }

  async watch(key: string, onWake: () => void): Promise<() => void> {
    this.#step(() => undefined)
    const remove = this.#watchers.add(key, onWake)
    const unwatch = () => {
      this.#watches.delete(unwatch)
      remove()
    }
    this.#watches.add(unwatch)
    return unwatch
  }

  async addMember(set: string, member: string, life: Life): Promise<void> {
    const expiresAt = expiryOf(life)
    this.#step(() => this.#statements.addMember.run(set, member, expiresAt))
  }

  async removeMember(set: string, member: string): Promise<void> {
    this.#step(() => this.#statements.removeMember.run(set, member))
  }

  async members(set: string): Promise<string[]> {
    const rows = this.#step(() => this.#statements.members.all(set, Date.now()))
    return rows.map((row) => String(row.member))
  }

  async ping(): Promise<void> {
    this.#step(() => this.#statements.get.all('', 0))
  }

  async close(): Promise<void> {
    if (!this.#database.isOpen) return
    clearTimeout(this.#sweepTimer)
    for (const unwatch of this.#watches) unwatch()
    this.#database.close()
  }

  // Every step is a single statement, and SQLite makes each statement a transaction.
  #step<T>(statement: () => T): T {
    if (!this.#database.isOpen) throw unavailable('The store is closed', undefined)
    try {
      return statement()
    } catch (cause) {
      throw unavailable('The store does not answer', cause)
    }
  }

  #sweepIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#sweepTimer = this.#sweepIn(this.#sweep() ? SWEEP_AGAIN_MS : SWEEP_EVERY_MS)
    }, delayMs).unref()
  }

  #sweep(): boolean {
    const now = Date.now()
    try {
      const { sweepEntries, sweepMembers } = this.#statements
      const swept = [sweepEntries, sweepMembers].map((statement) => Number(statement.run(now, ROWS_PER_SWEEP).changes))
      return swept.includes(ROWS_PER_SWEEP)
    } catch {
      // Expired rows do no harm: nothing reads them. The next sweep gets them.
      return false
    }
  }
}

// A statement with RETURNING is run with all(): get() would end it before its commit and hide a failure of that.
function prepareStatements(database: DatabaseSync): Record<StatementName, StatementSync> {
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
    removeMember: database.prepare('DELETE FROM members WHERE set_key = ? AND member = ?'),
    members: database.prepare('SELECT member FROM members WHERE set_key = ? AND expires_at > ?'),
    sweepEntries: database.prepare(
      'DELETE FROM entries WHERE key IN (SELECT key FROM entries WHERE expires_at <= ? LIMIT ?)',
    ),
    sweepMembers: database.prepare(
      `DELETE FROM members WHERE (set_key, member) IN
       (SELECT set_key, member FROM members WHERE expires_at <= ? LIMIT ?)`,
    ),
  }
}

type StatementName =
  | 'get'
  | 'create'
  | 'take'
  | 'compareAndSet'
  | 'addMember'
  | 'removeMember'
  | 'members'
  | 'sweepEntries'
  | 'sweepMembers'

function expiryOf(life: Life): number {
  const ttlMs = ttlMsOf(life)
  return ttlMs === undefined ? FOREVER : Date.now() + ttlMs
}

function unavailable(message: string, cause: unknown): CountersignError {
  return new CountersignError('STORE_UNAVAILABLE', message, { retryAfterMs: RETRY_AFTER_MS, cause })
}
