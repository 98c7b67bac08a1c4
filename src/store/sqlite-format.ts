import type { DatabaseSync } from 'node:sqlite'

/** Version of the tables and of what is in them, kept in the file as `user_version`. 1 was in use before 0.1.0. */
const schemaVersion = 2

/** "CSGN", kept in the file as `application_id`: tells a file of Countersign from other SQLite files. */
const applicationId = 0x4353474e

// Entries keep their rowid, because values are too long to be stored in the tree of the keys.
const schema = `
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
  PRAGMA application_id = ${applicationId};
  PRAGMA user_version = ${schemaVersion};
`

/**
 * Makes the tables of an empty database. It is one transaction, so a crash leaves the file as it was, and of two
 * processes the second one finds the work done.
 *
 * @throws Error that says what is wrong if the file is not a store of Countersign, or has a newer format. Then nothing
 * was written.
 */
export function prepareFormat(database: DatabaseSync): void {
  // Checked before anything is written, so that a wrong path does not change someone else's file.
  if (!isEmpty(database)) requireKnownFormat(database)
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
  database.exec('BEGIN IMMEDIATE')
  try {
    // Checked again under the lock, because another process may have been faster.
    if (isEmpty(database)) database.exec(schema)
    else requireKnownFormat(database)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/** Throws an error that says what is wrong unless a database is a store in a format that this release reads. */
export function requireKnownFormat(database: DatabaseSync): void {
  if (readPragma(database, 'application_id') !== applicationId) {
    throw new Error(isEmpty(database) ? 'it is empty' : 'it is the SQLite file of another application')
  }
  const version = readPragma(database, 'user_version')
  if (version === schemaVersion) return
  throw new Error(
    version < schemaVersion
      ? 'it was written before version 0.1.0, so begin with an empty one'
      : `it has schema version ${version} of a newer Countersign, and this one knows up to ${schemaVersion}`,
  )
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined
}

/** A number that a pragma has. */
export function readPragma(database: DatabaseSync, name: 'application_id' | 'user_version' | 'page_size'): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name])
}
