import type { Statement } from './connection.ts'
import { lockClass } from './schema.ts'

/** How many rows a step of a scan reads, and one of a sweep removes of a table. */
export const rowsPerStep = 500

/** The channel of all wake-ups. Names of channels are cut at 63 bytes, so a prefix could not be part of one. */
export const channel = 'countersign'

// `clock_timestamp()` and not `now()`, which is the beginning of the transaction: a statement can wait for a lock.
// Each statement is a transaction of its own under READ COMMITTED. A statement that has waited for another one's change
// of its row judges the row as it is then, so of two takes the second finds nothing. The statements of batches get a
// list for each column, and answer with the keys of the steps that came to something.
const all = {
  get: `SELECT key, value, version FROM countersign.entries
    WHERE key = ANY ($1::text[]) AND expires_at > clock_timestamp()`,
  create: `INSERT INTO countersign.entries AS old (key, value, version, expires_at)
    SELECT key, value, 1, countersign.expiry(ttl)
    FROM unnest($1::text[], $2::bytea[], $3::bigint[]) AS new (key, value, ttl)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = 1, expires_at = excluded.expires_at
    WHERE old.expires_at <= clock_timestamp() RETURNING key`,
  take: `DELETE FROM countersign.entries WHERE key = ANY ($1::text[]) AND expires_at > clock_timestamp()
    RETURNING key, value`,
  compareAndSet: `UPDATE countersign.entries AS old SET value = new.value, version = old.version + 1,
    expires_at = countersign.expiry(ttl) FROM unnest($1::text[], $2::integer[], $3::bytea[], $4::bigint[])
      AS new (key, version, value, ttl)
    WHERE old.key = new.key AND old.version = new.version AND expires_at > clock_timestamp() RETURNING old.key`,
  notify: `SELECT count(pg_notify('${channel}', payload)) FROM unnest($1::text[]) AS payload`,
  addMember: `SELECT key, ARRAY(
      SELECT countersign.add_member(set_key, member, ttl, most, ${lockClass}, lock_key)) AS members
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::integer[], $6::integer[])
      AS new (key, set_key, member, ttl, most, lock_key)`,
  removeMember: 'SELECT countersign.remove_member($1, $2, $3, $4)',
  members: 'SELECT member FROM countersign.members WHERE set_key = $1 AND expires_at > clock_timestamp()',
  scan: `SELECT key, value, CASE WHEN isfinite(expires_at)
      THEN extract(epoch FROM expires_at - clock_timestamp())::float8 * 1000 END AS ttl
    FROM countersign.entries WHERE key >= $1 AND key < $2 AND expires_at > clock_timestamp()
    ORDER BY key LIMIT ${rowsPerStep}`,
  time: 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
  sweepEntries: sweep('entries'),
  sweepMembers: sweep('members'),
  // A size that is not exact any more is not read.
  sweepSets: `DELETE FROM countersign.sets WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM countersign.sets WHERE exact_until <= clock_timestamp()
    LIMIT ${rowsPerStep} FOR UPDATE SKIP LOCKED))`,
}

// A volatile function bounds no search of an index, and the index of `sweep_at` has finite ones only.
function sweep(table: string): string {
  return `DELETE FROM countersign.${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM countersign.${table} WHERE sweep_at <= (SELECT clock_timestamp())
      AND sweep_at < timestamptz 'infinity' AND expires_at <= clock_timestamp()
    LIMIT ${rowsPerStep} FOR UPDATE SKIP LOCKED))`
}

/** The statements of the store, by name. */
export const statements: Readonly<Record<keyof typeof all, Statement>> = Object.fromEntries(
  Object.entries(all).map(([name, text]) => [name, { name: `countersign_${name}`, text }]),
) as Record<keyof typeof all, Statement>
