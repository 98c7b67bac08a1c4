import { afterAll, describe, test } from 'vitest'
import { hasPart } from '../support/optional.ts'
import { killPostgresServers } from '../support/postgres-server.ts'
import { ChaosPostgres, crashAfterLag } from './chaos/postgres.ts'
import { expectNothingUnexplained, rounds } from './chaos/rehearsal.ts'

afterAll(killPostgresServers)

describe.skipIf(!hasPart('postgresql'))('sign-ins, orders and watches on two instances, while PostgreSQL', () => {
  test('fails over after a crash', { timeout: 120_000 * rounds }, async () => {
    await using servers = await ChaosPostgres.start()
    await expectNothingUnexplained(servers, () => servers.failOver(crashAfterLag))
  })
})
