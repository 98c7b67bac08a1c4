import { afterAll, describe, test } from 'vitest'
import { hasPart } from '../support/optional.ts'
import { killPostgresServers } from '../support/postgres-server.ts'
import type { Death } from './chaos/judge.ts'
import { ChaosPostgres } from './chaos/postgres.ts'
import { expectNothingUnexplained, rounds } from './chaos/rehearsal.ts'

afterAll(killPostgresServers)

describe.skipIf(!hasPart('postgresql'))('sign-ins, orders and watches on two instances, while PostgreSQL', () => {
  test.for<[string, (servers: ChaosPostgres) => Promise<Death[]>]>([
    ['restarts in good order', (servers) => servers.restart()],
    ['crashes', (servers) => servers.crash()],
    ['loses one of its processes', (servers) => servers.killOneProcess()],
    ['is cut off in silence', (servers) => servers.cutSilently()],
    ['loses its standby for a while', (servers) => servers.loseStandby()],
    ['fails over after a stop', (servers) => servers.failOver((old) => old.stop())],
    ['fails over, and the old primary is frozen and goes on later', (servers) => servers.freezeAndFailOver()],
    ['fails over, and the old primary goes on with reads only', (servers) => servers.failOverFromReadOnly()],
    ['switches over, and its address leads to a standby for a while', (servers) => servers.switchOver()],
  ])('%s', { timeout: 120_000 * rounds }, async ([, disturb]) => {
    await using servers = await ChaosPostgres.start()
    await expectNothingUnexplained(servers, () => disturb(servers))
  })
})
