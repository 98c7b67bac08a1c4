import { accessOf, Calls, watchingName } from './connection.ts'
import { type Owner, otherOwners } from './schema.ts'

/** What a server says of itself, and of the tables of Countersign. */
export interface PostgresFacts {
  /** As `server_version` has it: "15.20 (Debian 15.20-0+deb12u1)". */
  readonly version: string
  /** Whether it writes to its disk before it acknowledges. */
  readonly fsync: boolean
  /** Whether it has standbys, and waits for any of them. */
  readonly standbys: boolean
  readonly waitsForStandby: boolean
  /** Part of its queue of notifications that is full, 0 to 1: a listener that hangs fills it. */
  readonly queueUsage: number
  /** Connections that it takes, and those that are in use now. */
  readonly maxConnections: number
  readonly usedConnections: number
  /** Connections of one instance for its calls and watches. */
  readonly ownConnections: number
  /** Instances that watch this database now, without this process. */
  readonly instances: number
  /** How long ago the oldest row expired that is still there, in seconds; 0 if there is none. */
  readonly unsweptSeconds: number
  /** Owners of the schema, tables and functions that are neither the user nor one of its roles. */
  readonly owners: readonly Owner[]
}

type ExaminedFacts = Omit<PostgresFacts, 'ownConnections' | 'instances'> & { readonly watching: number }

// Of the connections of other users, a user sees neither `backend_type` nor `state`.
const facts = `SELECT current_setting('server_version') AS version, current_setting('fsync') = 'on' AS fsync,
  EXISTS (SELECT FROM pg_stat_replication) AS standbys,
  current_setting('synchronous_standby_names') <> '' AS "waitsForStandby",
  pg_notification_queue_usage() AS "queueUsage",
  current_setting('max_connections')::integer AS "maxConnections",
  (SELECT count(datid)::integer FROM pg_stat_activity WHERE usesysid IS NOT NULL) AS "usedConnections",
  (SELECT count(*)::integer FROM pg_stat_activity
    WHERE application_name = '${watchingName}' AND datname = current_database()) AS watching,
  coalesce(extract(epoch FROM clock_timestamp() - least(
    (SELECT min(sweep_at) FROM countersign.entries WHERE sweep_at < clock_timestamp() - interval '10 minutes'),
    (SELECT min(sweep_at) FROM countersign.members WHERE sweep_at < clock_timestamp() - interval '10 minutes')
  )), 0)::float8 AS "unsweptSeconds",
  (${otherOwners}) AS owners`

/**
 * Asks the server of a URL about itself, over a connection of its own, and changes nothing. This process has a store
 * open there, which is not counted among the instances.
 */
export async function examinePostgres(url: string): Promise<PostgresFacts> {
  const access = await accessOf(url)
  const { target } = access
  const calls = new Calls({ ...access, target: { ...target, connections: 1 } })
  try {
    const { rows } = await calls.on((client) => client.query<ExaminedFacts>(facts))
    const [asked] = rows
    if (asked === undefined) throw new Error('the server told nothing of itself')
    const { watching, ...others } = asked
    return { ...others, ownConnections: target.connections + 1, instances: Math.max(0, watching - 1) }
  } finally {
    calls.close()
  }
}
