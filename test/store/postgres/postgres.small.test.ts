import { inspect } from 'node:util'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openPostgresStore } from '../../../src/store/postgres/store.ts'
import { hasPart } from '../../support/optional.ts'
import { killPostgresServers, PostgresServer } from '../../support/postgres-server.ts'
import { describeStoreContract } from '../contract.ts'

describe.skipIf(!hasPart('postgresql'))('a PostgreSQL store', () => {
  let server: PostgresServer

  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
    killPostgresServers()
  })

  describeStoreContract('PostgreSQL', async () => [
    await openPostgresStore(server.url()),
    await openPostgresStore(server.url()),
  ])

  test('a bounded set stays bounded when instances add members at once', async () => {
    // One instance adds members that come together in one statement.
    const stores = await Promise.all(Array.from({ length: 6 }, () => openPostgresStore(server.url())))
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
    // Each addition waits with its commit until all have begun, so that without a lock none would count another.
    await server.psql(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END'`)
    await server.psql(`CREATE CONSTRAINT TRIGGER late AFTER INSERT ON countersign.members
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()`)
    onTestFinished(async () => void (await server.psql('DROP FUNCTION wait CASCADE')))
    const gate = new Client(server.url())
    await gate.connect()
    onTestFinished(() => gate.end())
    await gate.query('SELECT pg_advisory_lock(1)')
    const added = Promise.all(stores.map((store, i) => store.addMember('few', `m${i}`, { ttlMs: 60_000 }, 2)))
    const waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    await expect.poll(() => server.psql(waiting)).toBe('6')
    await gate.query('SELECT pg_advisory_unlock(1)')
    await added
    expect((await stores[0]?.members('few'))?.length).toBeLessThanOrEqual(4)
  })

  test('keeps keys and values that the server repeats in an error out of what is logged', async () => {
    const store = await openPostgresStore(server.url())
    onTestFinished(() => store.close())
    await store.create('key-of-the-test', 'a', 'forever')
    await server.psql(
      "ALTER TABLE countersign.entries ADD CONSTRAINT small CHECK (key NOT LIKE '%test' OR version < 2)",
    )
    const failure = await store.compareAndSet('key-of-the-test', 1, 'b', 'forever').catch((error) => error)
    expect(failure.cause.message).toContain('23514')
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain('key-of-the-test')
  })
})
