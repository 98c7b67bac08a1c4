import type { ClientBase } from 'pg'
import { accessOf, Calls, watchingName } from './connection.ts'

/** A role that owns the schema, tables or functions, and could so change what the service's statements do. */
interface Owner {
  readonly name: string
  readonly isSuperuser: boolean
}

/** What a server says of itself, and whose the tables are. */
interface ServerFacts {
  /** As `server_version` has it: "15.20 (Debian 15.20-0+deb12u1)". */
  readonly version: string
  /** Whether it writes to its disk before it acknowledges. */
  readonly fsync: boolean
  /** Whether it has standbys and waits for none of them. */
  readonly hasUnsafeStandbys: boolean
  /** Part of its queue of notifications that is full, 0 to 1: a listener that hangs fills it. */
  readonly queueUsage: number
  /** Connections that it takes, and those that are in use now. */
  readonly maxConnections: number
  readonly usedConnections: number
  /** Instances that watch this database now, without this process. */
  readonly instances: number
  /** Owners of the schema, tables and functions that are neither the user nor one of its roles. */
  readonly owners: readonly Owner[]
}

/** What a server says of itself, and of the tables of Countersign. */
export interface PostgresFacts extends ServerFacts {
  /** Connections of one instance for its calls and watches. */
  readonly ownConnections: number
  /** How long ago the oldest row expired that is still there, in seconds to ten minutes; 0 if there is none. */
  readonly unsweptSeconds: number
}

// Of the connections of other users, a user sees neither `backend_type` nor `state`.
const facts = `SELECT current_setting('server_version') AS version, current_setting('fsync') = 'on' AS fsync,
  EXISTS (SELECT FROM pg_stat_replication) AND current_setting('synchronous_standby_names') = ''
    AS "hasUnsafeStandbys",
  pg_notification_queue_usage() AS "queueUsage",
  current_setting('max_connections')::integer AS "maxConnections",
  (SELECT count(datid)::integer FROM pg_stat_activity WHERE usesysid IS NOT NULL) AS "usedConnections",
  (SELECT greatest(0, count(*) - 1)::integer FROM pg_stat_activity
    WHERE application_name = '${watchingName}' AND datname = current_database()) AS instances,
  (SELECT coalesce(json_agg(json_build_object('name', rolname, 'isSuperuser', rolsuper) ORDER BY rolname), json '[]')
    FROM pg_roles WHERE NOT pg_has_role(oid, 'MEMBER') AND oid IN (
      SELECT nspowner FROM pg_namespace WHERE nspname = 'countersign'
      UNION SELECT relowner FROM pg_class WHERE relnamespace = regnamespace 'countersign'
      UNION SELECT proowner FROM pg_proc WHERE pronamespace = regnamespace 'countersign')) AS owners`

// Not for a start: where a long transaction keeps dead rows, it can take more than the time of a call.
const unswept = `SELECT greatest(0, extract(epoch FROM clock_timestamp() - least(
    (SELECT min(sweep_at) FROM countersign.entries WHERE sweep_at < timestamptz 'infinity'),
    (SELECT min(sweep_at) FROM countersign.members WHERE sweep_at < timestamptz 'infinity')
  )))::float8 AS seconds`

/** Asks a server about itself, and changes nothing. This process has a store open there. */
export async function factsOf(client: ClientBase): Promise<ServerFacts> {
  const [asked] = (await client.query<ServerFacts>(facts)).rows
  if (asked === undefined) throw new Error('the server told nothing of itself')
  return asked
}

/** Asks the server of a URL about itself, over a connection of its own. */
export async function examinePostgres(url: string): Promise<PostgresFacts> {
  const access = await accessOf(url)
  const { target } = access
  const calls = new Calls({ ...access, target: { ...target, connections: 1 } })
  try {
    const server = await calls.on(factsOf)
    const { rows } = await calls.on((client) => client.query<{ seconds: number }>(unswept))
    return { ...server, ownConnections: target.connections + 1, unsweptSeconds: rows[0]?.seconds ?? 0 }
  } finally {
    calls.close()
  }
}

/** Says whose the tables are. */
export function describeOwners(owners: readonly Owner[]): string {
  const names = owners.map(({ name, isSuperuser }) => (isSuperuser ? `${name} (a superuser)` : name))
  return `the schema countersign or what is in it belongs to ${names.join(', ')}`
}

/** What may be wrong with a server that works: whether it is, what is seen, and what to do. */
export function concernsOf(facts: ServerFacts): [applies: boolean, saw: string, fix: string][] {
  const { hasUnsafeStandbys, owners } = facts
  return [
    [
      hasUnsafeStandbys,
      'PostgreSQL has standbys and waits for none of them, so a fail-over can lose what was acknowledged',
      'Set synchronous_standby_names.',
    ],
    [
      // A superuser could change everything anyway.
      owners.some(({ isSuperuser }) => !isSuperuser),
      describeOwners(owners),
      'Make sure that they are your administrators: owners can change what the service runs and reads.',
    ],
  ]
}
