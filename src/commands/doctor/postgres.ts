import type { PostgresFacts } from '../../store/postgres/examine.ts'
import { counted } from '../command-line.ts'
import { type Check, ok, warningsOf } from './check.ts'
import type { Setup } from './setup.ts'

/** Part of the queue of notifications beyond which a listener must be hanging. */
const muchQueued = 0.01

/** Age in seconds of an expired row beyond which sweeps lag: they take 500 of a table every five seconds. */
export const lateSweepSeconds = 3600

/** Whether the PostgreSQL server keeps what it is given. That it is new enough is part of the check "store". */
export const postgres: Check<Setup> = {
  name: 'postgresql',
  needs: ['store'],
  applies: ({ postgresUrl }) => postgresUrl !== undefined,
  async run({ postgresUrl = '' }) {
    // Loaded on demand, because other stores do not need the package pg.
    const { concernsOf, describeOwners, examinePostgres } = await import('../../store/postgres/examine.ts')
    const facts = await examinePostgres(postgresUrl)
    const findings = warningsOf(...judged(facts), ...concernsOf(facts))
    if (findings.length > 0) return findings
    return ok(describe(facts) + (facts.owners.length > 0 ? `; ${describeOwners(facts.owners)}` : ''))
  },
  advice: 'Let the user read pg_stat_activity and pg_stat_replication, as every user may by default.',
}

/** What may be wrong: whether it is, what is seen, and what to do. */
function judged(facts: PostgresFacts): [applies: boolean, saw: string, fix: string][] {
  const { fsync, queueUsage, maxConnections, ownConnections, unsweptSeconds } = facts
  // Two run while one is replaced.
  const instances = Math.max(2, facts.instances)
  return [
    [
      !fsync,
      'PostgreSQL does not wait for its disk, so a power cut can lose or damage everything: its fsync is off',
      'Set fsync to on.',
    ],
    [
      queueUsage > muchQueued,
      `the queue of notifications is ${Math.round(queueUsage * 100)} % full, because a listener does not read it`,
      'End the session that does not read: its backend waits in a transaction (pg_stat_activity).',
    ],
    [
      instances * ownConnections > maxConnections,
      `${instances} instances take up to ${instances * ownConnections} connections, and the server has ` +
        `${maxConnections}`,
      'Lower ?connections= in COUNTERSIGN_STORE, or raise max_connections.',
    ],
    [
      unsweptSeconds > lateSweepSeconds,
      `expired rows have been there for ${Math.round(unsweptSeconds / 3600)} hours`,
      'Run an instance on this store, because instances remove them; look in its log for errors of the store.',
    ],
  ]
}

function describe({ version, maxConnections, usedConnections, ownConnections, instances }: PostgresFacts): string {
  const running = instances === 0 ? 'an instance takes' : `${counted(instances, 'instance')} of this store may take`
  return (
    `PostgreSQL ${version}; ${usedConnections} of ${maxConnections} connections in use, and ${running} up to ` +
    `${Math.max(1, instances) * ownConnections}`
  )
}
