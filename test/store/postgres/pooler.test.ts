import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../../src/store/open.ts'
import { hasPart } from '../../support/optional.ts'
import { startPgBouncer } from '../../support/pgbouncer.ts'
import { killPostgresServers, PostgresServer } from '../../support/postgres-server.ts'

const life = { ttlMs: 600_000 }

afterAll(killPostgresServers)

describe.skipIf(!hasPart('postgresql') || !hasPart('pgbouncer'))('a PostgreSQL store that is in use', () => {
  test('while PgBouncer has transaction mode for a while, says so within a minute and works soon after', {
    timeout: 180_000,
  }, async () => {
    await using server = await PostgresServer.start()
    const pooler = await startPgBouncer(server, 'session', 'postgres')
    const store = await openStore(pooler.url)
    onTestFinished(() => store.close())
    let wakes = 0
    await store.watch('k', () => wakes++)
    await store.create('k', 'a', 'forever')
    // Ten at a time, so that all connections are in use.
    const callAll = async () => {
      const reads = Array.from({ length: 7 }, () => store.get('k'))
      const writes = Array.from({ length: 3 }, () => store.addMember('set', 'm', life, 5))
      const settled = await Promise.allSettled([...reads, ...writes])
      return settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    }
    const traffic = new AbortController()
    const stopped = (async () => {
      while (!traffic.signal.aborted) {
        for (const { reason } of await callAll()) expect(reason).toBe('STORE_UNAVAILABLE')
        await sleep(50)
      }
    })()
    const problem = () => store.ping().then(String, ({ cause }) => String(cause))

    await pooler.setMode('transaction')
    await expect.poll(problem, { timeout: 75_000 }).toMatch(/as behind a pooler in transaction mode/)
    // Calls go on meanwhile, and so do the looks whether it is fit again.
    await sleep(12_000)
    expect(await problem()).toMatch(/as behind a pooler in transaction mode/)

    await pooler.setMode('session')
    await expect.poll(problem, { timeout: 15_000 }).toBe('undefined')
    traffic.abort()
    await stopped
    // Sessions that others had prepared something in are left, by a failed call each.
    await expect.poll(callAll).toEqual([])
    for (let i = 0; i < 20; i++) expect(await callAll()).toEqual([])
    wakes = 0
    const { version } = (await store.get('k'))!
    await store.compareAndSet('k', version, 'b', 'forever', { wake: true })
    await expect.poll(() => wakes).toBe(1)
  })
})
