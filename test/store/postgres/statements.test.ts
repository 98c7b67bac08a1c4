import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../../src/base/log.ts'
import { openStore } from '../../../src/store/open.ts'
import { hasPart } from '../../support/optional.ts'
import { type OrderClient, orderClients } from '../../support/orders.ts'
import { killPostgresServers, PostgresServer } from '../../support/postgres-server.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { makeWallet, proofOf, type TestWallet } from '../../support/wallet.ts'

afterAll(killPostgresServers)

const secret = 'a secret for tests and for nothing else'
const life = { ttlMs: 60_000 }
const unavailable = (cause: RegExp) =>
  expect.objectContaining({
    reason: 'STORE_UNAVAILABLE',
    cause: expect.objectContaining({ message: expect.stringMatching(cause) }),
  })

// What calls ask of the server, as it counts itself. Which of them are one trip is in core/sign-in/trips and
// core/order/trips: a step of the store is a statement.
describe.skipIf(!hasPart('postgresql'))('on a PostgreSQL store', () => {
  let server: PostgresServer

  beforeAll(async () => {
    server = await PostgresServer.start({ settings: { shared_preload_libraries: 'pg_stat_statements' } })
    await server.psql('CREATE EXTENSION pg_stat_statements')
  })
  afterAll(async () => await server?.[Symbol.asyncDispose]())

  /** Statements of the store since the last look, by the word that they begin with; without upkeep and notifications. */
  const asked = async (): Promise<Record<string, number>> => {
    const rows = await server.psql(
      `SELECT split_part(query, ' ', 1), sum(calls) FROM pg_stat_statements
        WHERE query LIKE '%countersign.%' AND query NOT LIKE '%ctid%' GROUP BY 1`,
    )
    await server.psql('SELECT pg_stat_statements_reset()')
    return Object.fromEntries(
      rows
        .split('\n')
        .filter(Boolean)
        .map((row) => row.split('|'))
        .map(([word = '', calls]) => [word, Number(calls)]),
    )
  }

  test('what a start warns of takes no look at the values, of which dead ones can be many', async () => {
    await asked()
    const store = await openStore(server.url(), { log: silentLogger })
    onTestFinished(() => store.close())
    const looks = (text: string) =>
      server.psql(`SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE '%${text}%'`)
    expect([Number(await looks('pg_stat_replication')), Number(await looks('min(sweep_at)'))]).toEqual([1, 0])
  })

  test('each step is one statement, a bounded set included', async () => {
    const store = await openStore(server.url())
    onTestFinished(() => store.close())
    const askedBy = async (step: () => Promise<unknown>) => {
      await asked()
      await step()
      return await asked()
    }
    expect(await askedBy(() => store.create('k', 'a', life))).toEqual({ INSERT: 1 })
    expect(await askedBy(() => store.get('k'))).toEqual({ SELECT: 1 })
    expect(await askedBy(() => store.compareAndSet('k', 1, 'b', life))).toEqual({ UPDATE: 1 })
    expect(await askedBy(() => store.compareAndSet('k', 2, 'c', life, { wake: true }))).toEqual({ UPDATE: 1 })
    expect(await askedBy(() => store.take('k'))).toEqual({ DELETE: 1 })
    expect(await askedBy(() => store.addMember('set', 'm', life, 3))).toEqual({ SELECT: 1 })
    expect(await askedBy(() => store.removeMember('set', 'm'))).toEqual({ SELECT: 1 })
    expect(await askedBy(() => store.watch('k', () => {}))).toEqual({})
  })

  test('a sign-in of a known wallet is six statements, and a session check is one', async () => {
    const { url } = await startService({ store: server.url(), secret })
    const signIn = async (wallet: TestWallet): Promise<string> => {
      const { json: challenge } = await rest(url, '/wallet/nonce', {})
      const { json } = await rest(url, '/wallet/verify', proofOf(wallet, challenge))
      return json.token
    }
    const wallet = makeWallet()
    await signIn(wallet)
    await asked()
    const token = await signIn(wallet)
    expect(await asked()).toEqual({ SELECT: 3, INSERT: 2, DELETE: 1 })
    await rest(url, '/session', undefined, { authorization: `Bearer ${token}` })
    expect(await asked()).toEqual({ SELECT: 1 })
  })

  test('steps of a kind that begin together are one statement, and each has its own answer', async () => {
    const store = await openStore(server.url())
    onTestFinished(() => store.close())
    const keys = Array.from({ length: 20 }, (_, i) => `together-${i}"\\{,}`)
    const [first = ''] = keys
    /** What a step on each key answers, and on a key that none can have; what was asked. */
    const together = async (step: (key: string) => Promise<unknown>) => {
      await asked()
      const unknown = expect(step('together-\0')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
      const answers = await Promise.all(keys.map(step))
      await unknown
      return { answers: answers.map((answer) => JSON.stringify(answer)), ...(await asked()) }
    }
    const each = (text: (key: string) => unknown) => keys.map((key) => JSON.stringify(text(key)))
    await store.create(first, 'before', life)
    expect(await together((key) => store.create(key, `of ${key}`, life))).toEqual({
      answers: each((key) => key !== first),
      INSERT: 1,
    })
    expect(await together((key) => store.get(key))).toEqual({
      answers: each((key) => ({ value: key === first ? 'before' : `of ${key}`, version: 1 })),
      SELECT: 1,
    })
    const changed = await together((key) => store.compareAndSet(key, key === first ? 2 : 1, `now ${key}`, life))
    expect(changed).toEqual({ answers: each((key) => key !== first), UPDATE: 1 })
    expect(await together((key) => store.addMember(`set ${key}`, 'm', life, 3))).toEqual({
      answers: each(() => []),
      SELECT: 1,
    })
    expect(await together((key) => store.take(key))).toEqual({
      answers: each((key) => (key === first ? 'before' : `now ${key}`)),
      DELETE: 1,
    })
    expect(await together((key) => store.get(key))).toEqual({ answers: each(() => undefined), SELECT: 1 })
  })

  test('of steps on one key that begin together, one succeeds', async () => {
    const store = await openStore(server.url())
    onTestFinished(() => store.close())
    const ten = async (step: (number: number) => Promise<unknown>) =>
      (await Promise.all(Array.from({ length: 10 }, (_, number) => step(number)))).filter(Boolean)
    expect(await ten((number) => store.create('one', `${number}`, life))).toEqual([true])
    expect(await ten((number) => store.compareAndSet('one', 1, `${number}`, life))).toEqual([true])
    expect(await ten(() => store.take('one'))).toHaveLength(1)
  })

  test('writes that wait for a held lock are reported as failed, and none of them happens later', async () => {
    const store = await openStore(server.url())
    onTestFinished(() => store.close())
    for (const key of ['held', 'beside']) await store.create(key, 'a', life)
    const locker = new Client(server.url())
    await locker.connect()
    onTestFinished(() => locker.end())
    await locker.query('BEGIN')
    await locker.query("SELECT FROM countersign.entries WHERE key = 'countersign:held' FOR UPDATE")
    const writes: Promise<unknown>[] = []
    for (const key of ['held', 'beside', 'held', 'held']) {
      writes.push(store.compareAndSet(key, 1, 'late', life))
      await new Promise(setImmediate)
    }
    const outcomes = await Promise.allSettled(writes)
    await locker.query('COMMIT')
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'rejected'])
    // A statement that waits on would have the lock now.
    await locker.query("SELECT FROM countersign.entries WHERE key = 'countersign:held' FOR UPDATE")
    expect(await store.get('held')).toEqual({ value: 'a', version: 1 })
    expect(await store.get('beside')).toMatchObject({ value: 'late' })
  })

  test('writes whose connection the server ends in the middle (57P01) fail together and do not happen later', async () => {
    const store = await openStore(server.url())
    onTestFinished(() => store.close())
    const keys = ['ended-1', 'ended-2', 'ended-3']
    for (const key of keys) await store.create(key, 'a', life)
    const locker = new Client(server.url())
    await locker.connect()
    onTestFinished(() => locker.end())
    await locker.query('BEGIN')
    await locker.query("SELECT FROM countersign.entries WHERE key = 'countersign:ended-2' FOR UPDATE")
    const writing = Promise.allSettled(keys.map((key) => store.compareAndSet(key, 1, 'b', life)))
    const end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    await expect.poll(() => server.psql(end)).toBe('1')
    expect(await writing).toEqual(keys.map(() => ({ status: 'rejected', reason: unavailable(/^57P01 /) })))
    await locker.query('COMMIT')
    for (const key of keys) expect(await store.get(key)).toEqual({ value: 'a', version: 1 })
    expect(await store.compareAndSet('ended-2', 1, 'b', life)).toBe(true)
  })

  test('writes fail together while the server takes none (25006), and are done again once it does', async () => {
    const store = await openStore(server.url())
    onTestFinished(() => store.close())
    const keys = ['kept-1', 'kept-2', 'kept-3']
    const write = () => Promise.allSettled(keys.map((key) => store.create(key, 'a', life)))
    await write()
    const set = async (change: string) => {
      await server.psql(`ALTER SYSTEM ${change}`)
      await server.psql('SELECT pg_reload_conf()')
    }
    onTestFinished(() => set('RESET default_transaction_read_only'))
    await set('SET default_transaction_read_only = on')
    const failures = keys.map(() => ({ status: 'rejected', reason: unavailable(/^25006 /) }))
    await expect.poll(write).toEqual(failures)
    expect(await store.get('kept-1')).toEqual({ value: 'a', version: 1 })
    await set('RESET default_transaction_read_only')
    await expect.poll(write).toEqual(keys.map(() => ({ status: 'fulfilled', value: false })))
  })

  test('members that are added to one set together are one statement, which keeps its bound', async () => {
    const store = await openStore(server.url())
    onTestFinished(() => store.close())
    await asked()
    await Promise.all(Array.from({ length: 16 }, (_, i) => store.addMember('hot', `m${i}`, life, 4)))
    expect(await asked()).toEqual({ SELECT: 1 })
    // Twice the bound: those beyond it leave in the same step.
    expect(await store.members('hot')).toHaveLength(8)
  })

  test('reads that wait for reads which do not come back fail in time, and later ones are answered', async () => {
    const store = await openStore(server.url())
    onTestFinished(() => store.close())
    await store.create('behind', 'a', life)
    const locker = new Client(server.url())
    await locker.connect()
    onTestFinished(() => locker.end())
    await locker.query('BEGIN; LOCK TABLE countersign.entries IN ACCESS EXCLUSIVE MODE')
    const begunAt = performance.now()
    const reads: Promise<unknown>[] = []
    for (let turn = 0; turn < 4; turn++) {
      reads.push(store.get('behind'))
      await new Promise(setImmediate)
    }
    const failed = { reason: expect.stringMatching(/^(SERVER_BUSY|STORE_UNAVAILABLE)$/) }
    for (const read of await Promise.allSettled(reads)) expect(read).toMatchObject({ reason: failed })
    expect(performance.now() - begunAt).toBeLessThan(15_000)
    await locker.query('COMMIT')
    expect(await store.get('behind')).toEqual({ value: 'a', version: 1 })
  })

  test('steps that are over together share a notification, which writes nothing', async () => {
    const store = await openStore(server.url())
    onTestFinished(() => store.close())
    const keys = Array.from({ length: 20 }, (_, i) => `together-${i}`)
    await Promise.all(keys.map((key) => store.create(key, 'a', life)))
    await server.psql('SELECT pg_stat_statements_reset()')
    await Promise.all(keys.map((key) => store.compareAndSet(key, 1, 'b', life, { wake: true })))
    await store.close()
    const [sent, records] = (
      await server.psql("SELECT sum(calls), sum(wal_records) FROM pg_stat_statements WHERE query LIKE '%pg_notify%'")
    ).split('|')
    expect(Number(sent)).toBeGreaterThan(0)
    expect(Number(sent)).toBeLessThan(20)
    expect(records).toBe('0')
  })

  test('a login order notifies of four changes', async () => {
    const { url } = await startService({ store: server.url(), secret })
    const listener = new Client(server.url())
    await listener.connect()
    onTestFinished(() => listener.end())
    const heard: unknown[] = []
    listener.on('notification', ({ payload }) => heard.push(payload))
    await listener.query('LISTEN countersign')
    // Changes that are over together would share a notification.
    const expectHeard = (changes: number) => expect.poll(() => heard.length).toBe(changes)
    const calls = orderClients.gRPC?.(url) as OrderClient
    const order = await calls.start('login')
    const { orderId, claimToken } = order
    const { challengeToken } = await calls.claim({ orderId, claimToken })
    await expectHeard(1)
    const { message } = await calls.challenge({ orderId, challengeToken })
    await expectHeard(2)
    const { publicKeyHex, sign } = makeWallet()
    await calls.approve({ orderId, challengeToken, proof: { publicKeyHex, signatureHex: sign(message) } })
    await expectHeard(3)
    await calls.finalize(order)
    await expectHeard(4)
    expect(new Set(heard).size).toBe(1)
  })
})
