import { chownSync, closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isBusy } from './sqlite-batcher.ts'
import { requireKnownFormat } from './sqlite-format.ts'

/** How long a step waits for another process, in milliseconds. */
const busyTimeoutMs = 1000

/**
 * Copies a store to a new file of mode 0600, as it is at one moment, while other processes read and write it. They do
 * not wait for this. The copy is one file, compact, and on the disk when this returns. If it fails, there is no copy.
 *
 * @param from path of the store, or of another copy. It is not changed.
 * @param to path of the copy.
 * @throws Error that says what is wrong with `from`, or that `to` is there or cannot be written.
 */
export function copyStore(from: string, to: string): void {
  closeSync(openSync(to, 'wx', 0o600))
  try {
    withDatabase(from, { readOnly: true }, (database) => {
      requireKnownFormat(database)
      database.prepare('VACUUM INTO ?').run(to)
    })
    syncToDisk(to)
  } catch (error) {
    rmSync(to, { force: true })
    throw error
  }
}

/** Throws an error that says what is wrong if a file is damaged, or is no store in a format that this release reads. */
export function checkStore(path: string): void {
  withDatabase(path, { readOnly: true }, (database) => {
    requireKnownFormat(database)
    const [first] = database.prepare('PRAGMA integrity_check(1)').all()
    if (first?.integrity_check !== 'ok') throw new Error(`it is damaged: ${String(first?.integrity_check)}`)
  })
}

/** Whether a store that no other process has open has a value under a key that matches. */
export function hasKey(path: string, matches: (key: string) => boolean): boolean {
  return withDatabase(path, { readOnly: true }, (database) => {
    for (const { key } of database.prepare('SELECT key FROM entries').iterate()) if (matches(String(key))) return true
    return false
  })
}

/** When the value or member of a store ended that ended first of those that are there, in epoch milliseconds. */
export function oldestEnd(path: string): number | undefined {
  return withDatabase(path, { readOnly: true }, (database) => {
    const [row] = database
      .prepare(`
        SELECT min(expires_at) AS oldest
        FROM (SELECT min(expires_at) AS expires_at FROM entries UNION ALL SELECT min(expires_at) FROM members)
      `)
      .all()
    const oldest = Number(row?.oldest ?? Number.POSITIVE_INFINITY)
    return oldest < Date.now() ? oldest : undefined
  })
}

/**
 * Removes the values and sets whose keys match from a store that no other process has open, and leaves no trace of
 * them.
 */
export function removeKeys(path: string, matches: (key: string) => boolean): void {
  withDatabase(path, {}, (database) => {
    database.function('matches', { deterministic: true }, (key) => (matches(String(key)) ? 1 : 0))
    database.exec(`
      BEGIN;
      DELETE FROM entries WHERE matches(key);
      DELETE FROM members WHERE matches(set_key);
      COMMIT;
      VACUUM;
    `)
  })
}

/** What takes the place of what. All paths are in one folder. */
interface Replacement {
  /** Path of the store. Nothing may be there. */
  readonly path: string
  /** Path of the file that becomes the store. */
  readonly by: string
  /** Path under which the former store is kept, with all that it has. */
  readonly aside: string
}

/**
 * Puts a file in the place of a store that no process has open, in one step: a crash leaves the one or the other. No
 * process can open the former one in the meantime. Returns whether there was one.
 *
 * @throws Error that says what is wrong if the store is open, cannot be opened, or cannot be kept. Then nothing has
 * changed.
 */
export function replaceStore({ path, by, aside }: Replacement): boolean {
  if (!existsSync(path)) {
    requireNoRemains(path)
    putInPlace(by, path)
    return false
  }
  withDatabase(path, {}, (database) => {
    takeAlone(database)
    requireNoRemains(path)
    keepOwner(by, path)
    // Not a copy: closing any other handle of the file would end the lock.
    linkSync(path, aside)
    putInPlace(by, path)
  })
  return true
}

/** Locks a database for everyone else, with all that it has in its one file. */
function takeAlone(database: DatabaseSync): void {
  const isOpen = new Error('it is open: stop the service, and all else that uses it')
  try {
    // Refused while others have it open, and they would open it in the other mode.
    database.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
  } catch (error) {
    throw isBusy(error) ? isOpen : error
  }
  if (database.prepare('PRAGMA journal_mode').get()?.journal_mode !== 'delete') throw isOpen
}

/** SQLite would put what it finds there into the file that takes the place of the store. */
function requireNoRemains(path: string): void {
  for (const remains of [`${path}-wal`, `${path}-journal`]) {
    if (existsSync(remains)) throw new Error(`${remains} is left of a store that is gone; move it away`)
  }
}

/** A file that root makes for the service has to stay the service's. */
function keepOwner(file: string, former: string): void {
  const { uid, gid } = statSync(former)
  if (process.getuid?.() === 0) chownSync(file, uid, gid)
}

/** Renames a file, and returns once that is on the disk. */
export function putInPlace(file: string, path: string): void {
  renameSync(file, path)
  syncToDisk(dirname(path))
}

function syncToDisk(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

function withDatabase<T>(path: string, { readOnly = false }, use: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs, readOnly })
  try {
    return use(database)
  } finally {
    database.close()
  }
}
