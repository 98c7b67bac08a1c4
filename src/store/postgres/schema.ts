import type { ClientBase } from 'pg'
import { UnfitServerError } from './connection.ts'

/** Version of the tables and their content. Releases after 0.1.0 only add to it, so that they can run side by side. */
const schemaVersion = 2

/** Size from which that of a set is kept: smaller ones are counted in a moment. */
const leastKeptSize = 100

/**
 * Without it, names in the statements could be those of another user's functions in the schema `public`. The service's
 * own sessions have this `search_path`, an administrator's have not.
 */
const builtInNamesOnly = 'SET LOCAL search_path = pg_catalog'

/**
 * The tables. Names are qualified, because the `search_path` of a session names no schema of ours. Literals have types,
 * because one without fits functions of any argument.
 *
 * `sweep_at` is the expiry in steps of ten minutes: an index on the expiry itself would change with each update of a
 * live key, and PostgreSQL could then not update the row in place (HOT). Of two tables the second is for sets, whose
 * members have keys and lives of their own. Values are bytes, because text refuses NUL and depends on the database's
 * encoding; keys compare by their bytes, whatever the collation of the database is.
 */
const statements: readonly string[] = [
  'CREATE SCHEMA IF NOT EXISTS countersign',
  `CREATE TABLE countersign.entries (
  key text COLLATE "C" PRIMARY KEY,
  value bytea NOT NULL,
  version integer NOT NULL,
  expires_at timestamptz NOT NULL,
  sweep_at timestamptz NOT NULL GENERATED ALWAYS AS (
    date_bin(interval '10 minutes', expires_at, timestamptz 'epoch')
  ) STORED
) WITH (fillfactor = 70, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02)`,
  `CREATE INDEX entries_sweep ON countersign.entries (sweep_at) WHERE sweep_at < timestamptz 'infinity'`,
  `CREATE TABLE countersign.members (
  set_key text COLLATE "C" NOT NULL,
  member text COLLATE "C" NOT NULL,
  expires_at timestamptz NOT NULL,
  sweep_at timestamptz NOT NULL GENERATED ALWAYS AS (
    date_bin(interval '10 minutes', expires_at, timestamptz 'epoch')
  ) STORED,
  PRIMARY KEY (set_key, member)
) WITH (autovacuum_vacuum_scale_factor = 0.02)`,
  `CREATE INDEX members_sweep ON countersign.members (sweep_at) WHERE sweep_at < timestamptz 'infinity'`,
  `CREATE FUNCTION countersign.expiry(ttl_ms bigint) RETURNS timestamptz LANGUAGE sql VOLATILE AS
  $$ SELECT CASE WHEN ttl_ms IS NULL THEN timestamptz 'infinity'
    ELSE clock_timestamp() + ttl_ms * interval '1 ms' END $$`,
  'CREATE INDEX members_soonest ON countersign.members (set_key, expires_at, member)',
  // Sizes of large sets, each exact until the first of the members that were counted expires; those after that are
  // counted anew. Sets below the size that is kept are counted each time.
  `CREATE TABLE countersign.sets (
  set_key text COLLATE "C" PRIMARY KEY,
  size integer NOT NULL,
  exact_until timestamptz NOT NULL
) WITH (fillfactor = 70)`,
  // The lock is a statement of its own: the snapshot of the statements after it is taken once it is held.
  `CREATE FUNCTION countersign.add_member(
  added_set text, added text, ttl_ms bigint, most integer, lock_class integer, lock_key integer
) RETURNS SETOF text LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog AS $$
DECLARE
  added_until timestamptz := countersign.expiry(ttl_ms);
  is_new boolean;
  counted integer;
  bound timestamptz;
  surplus integer;
BEGIN
  PERFORM pg_advisory_xact_lock(lock_class, lock_key);
  is_new := NOT EXISTS (SELECT FROM countersign.members
    WHERE set_key = added_set AND member = added AND expires_at > clock_timestamp());
  INSERT INTO countersign.members (set_key, member, expires_at) VALUES (added_set, added, added_until)
    ON CONFLICT (set_key, member) DO UPDATE SET expires_at = excluded.expires_at;
  SELECT size + is_new::integer, least(exact_until, added_until) INTO counted, bound FROM countersign.sets
    WHERE set_key = added_set AND exact_until > clock_timestamp();
  IF counted IS NULL THEN
    IF most IS NULL THEN RETURN; END IF;
    SELECT count(*), coalesce(min(expires_at), timestamptz 'infinity') INTO counted, bound FROM countersign.members
      WHERE set_key = added_set AND expires_at > clock_timestamp();
  END IF;
  surplus := counted - most;
  IF surplus > 0 THEN
    RETURN QUERY SELECT member FROM countersign.members
      WHERE set_key = added_set AND member <> added AND expires_at > clock_timestamp()
      ORDER BY expires_at, member LIMIT least(surplus, 10);
  END IF;
  IF surplus > most THEN
    DELETE FROM countersign.members WHERE set_key = added_set AND member IN (
      SELECT member FROM countersign.members
      WHERE set_key = added_set AND member <> added AND expires_at > clock_timestamp()
      ORDER BY expires_at, member LIMIT surplus - most);
    counted := 2 * most;
  END IF;
  IF counted < ${leastKeptSize} THEN
    DELETE FROM countersign.sets WHERE set_key = added_set;
  ELSE
    INSERT INTO countersign.sets VALUES (added_set, counted, bound)
      ON CONFLICT (set_key) DO UPDATE SET size = excluded.size, exact_until = excluded.exact_until;
  END IF;
END $$`,
  `CREATE FUNCTION countersign.remove_member(
  removed_set text, removed text, lock_class integer, lock_key integer
) RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog AS $$
DECLARE
  removed_until timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(lock_class, lock_key);
  DELETE FROM countersign.members WHERE set_key = removed_set AND member = removed
    RETURNING expires_at INTO removed_until;
  IF removed_until > clock_timestamp() THEN
    UPDATE countersign.sets SET size = size - 1 WHERE set_key = removed_set;
  END IF;
END $$`,
  'CREATE TABLE countersign.format (version integer NOT NULL)',
  `INSERT INTO countersign.format VALUES (${schemaVersion})`,
]

/** The statements that make the tables and give a user what the service needs, for an operator who may make them. */
export function schemaSql(user: string): string {
  const role = `"${user.replaceAll('"', '""')}"`
  const grants = [
    `GRANT USAGE ON SCHEMA countersign TO ${role}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON countersign.entries, countersign.members, countersign.sets TO ${role}`,
    `GRANT SELECT ON countersign.format TO ${role}`,
  ]
  return ['BEGIN', builtInNamesOnly, ...statements, ...grants, 'COMMIT'].map((statement) => `${statement};\n`).join('')
}

/** Class of the advisory locks of Countersign: "CSGN". The second number is of what is locked. */
export const lockClass = 0x4353474e

/** The lock under which the tables are made. Sets use the same lock numbers; a collision only delays. */
const schemaLock = 0

/**
 * Makes the tables if they are missing, in one transaction under a lock: of several first starts, the others find the
 * work done.
 *
 * @throws UnfitServerError if the tables have a newer format, or the schema is not ours.
 */
export async function prepareSchema(client: ClientBase): Promise<void> {
  if (await isPrepared(client)) return
  await client.query('BEGIN')
  try {
    await client.query('SELECT pg_advisory_xact_lock($1, $2)', [lockClass, schemaLock])
    if (!(await isPrepared(client))) for (const statement of statements) await client.query(statement)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

async function isPrepared(client: ClientBase): Promise<boolean> {
  // Not to_regclass, which can answer from a cache that another session's tables are not in yet.
  const { rowCount } = await client.query(
    "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'countersign' AND tablename = 'format'",
  )
  if (rowCount === 0) return false
  const format = await client.query<{ version: number }>('SELECT version FROM countersign.format')
  const version = format.rows[0]?.version
  if (version === schemaVersion) return true
  if (version === undefined) {
    throw new UnfitServerError('the schema countersign is of another application, or was not made whole')
  }
  throw new UnfitServerError(
    version < schemaVersion
      ? 'the schema was written before version 0.1.0, so begin with an empty database'
      : `the schema has version ${version} of a newer Countersign, and this one reads up to ${schemaVersion}`,
  )
}
