import { afterAll, describe, expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { keptLog } from '../support/log-lines.ts'
import { hasPart } from '../support/optional.ts'
import { killPostgresServers, PostgresServer } from '../support/postgres-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts'
import type { Death } from './chaos/judge.ts'
import { ChaosPostgres, crashAfterLag } from './chaos/postgres.ts'
import { expectNothingUnexplained, rounds } from './chaos/rehearsal.ts'

afterAll(killPostgresServers)

describe.skipIf(!hasPart('postgresql'))('sign-ins, orders and watches on two instances, while PostgreSQL', () => {
  test.for<[string, (servers: ChaosPostgres) => Promise<Death[]>]>([
    ['restarts in good order', (servers) => servers.restart()],
    ['crashes', (servers) => servers.crash()],
    ['loses one of its processes', (servers) => servers.killOneProcess()],
    ['is cut off in silence', (servers) => servers.cutSilently()],
    ['loses its standby for a while', (servers) => servers.loseStandby()],
    ['fails over after a crash', (servers) => servers.failOver(crashAfterLag)],
    ['fails over after a stop', (servers) => servers.failOver((old) => old.stop())],
    ['fails over, and the old primary is frozen and goes on later', (servers) => servers.freezeAndFailOver()],
    ['fails over, and the old primary goes on with reads only', (servers) => servers.failOverFromReadOnly()],
    ['switches over, and its address leads to a standby for a while', (servers) => servers.switchOver()],
  ])('%s', { timeout: 120_000 * rounds }, async ([, disturb]) => {
    await using servers = await ChaosPostgres.start()
    await expectNothingUnexplained(servers, () => disturb(servers))
  })

  describe.skipIf(!hasPart('overlay mounts'))('on a small disk', () => {
    test.for<[string, (servers: ChaosPostgres, disk: SmallDisk) => Promise<Death[]>]>([
      ['has no room for data', (servers, disk) => servers.fillDisk(disk)],
      ['has no room for its log, and ends', (servers, disk) => servers.fillDiskUntilItEnds(disk)],
    ])('%s', { timeout: 120_000 * rounds }, async ([, disturb]) => {
      await using disk = await mountSmallDisk(128)
      await using servers = await ChaosPostgres.start({
        parent: disk.folder,
        // Small files of the log, so that the disk can be small, and enough of them for the standby to come back.
        initdb: ['--wal-segsize=1'],
        settings: { wal_keep_size: '32MB', min_wal_size: '32MB' },
      })
      await servers.makeLogFiles()
      await expectNothingUnexplained(servers, () => disturb(servers, disk))
    })

    test('has no room, which readiness, the log and the start of another process say', async () => {
      await using disk = await mountSmallDisk(64)
      await using server = await PostgresServer.start({ parent: disk.folder, initdb: ['--wal-segsize=1'] })
      const { logger, lines } = keptLog()
      const secret = 'a secret for tests and for nothing else'
      const { url } = await startService({ store: server.url(), secret, logger })
      const nonce = async () => (await rest(url, '/wallet/nonce', {})).json.code
      const readiness = async () => (await fetch(`${url}/readyz`)).status
      await disk.fill()
      await expect.poll(nonce).toBe('STORE_UNAVAILABLE')
      expect(await readiness()).toBe(503)
      const causes = lines.filter((line) => line.text === 'store unavailable').map((line) => line.fields.cause)
      expect(causes[0]).toMatch(/^53100 could not extend file .*: No space left on device$/)
      await expect(openStore(server.url())).rejects.toThrow(
        /^Cannot open the store, PostgreSQL at [^\n]*: the server has no room left\. Make room[^\n]*$/,
      )
      await disk.free()
      await expect.poll(readiness).toBe(200)
      expect(await nonce()).toBeUndefined()
    })
  })
})
