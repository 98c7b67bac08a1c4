import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { connectionsTo, waitForStandbys } from '../../e2e/chaos/postgres.ts'
import { keptLog } from '../../support/log-lines.ts'
import { hasPart } from '../../support/optional.ts'
import { type OrderClient, orderClients } from '../../support/orders.ts'
import { killPostgresServers, PostgresServer } from '../../support/postgres-server.ts'
import { rest } from '../../support/rest.ts'
import { spawnService, startService } from '../../support/service.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'
import { healed } from '../healed.ts'

const mainFile = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const life = { ttlMs: 600_000 }
const secret = 'a-secret-for-tests-and-for-nothing-else'

afterAll(killPostgresServers)

describe.skipIf(!hasPart('postgresql'))('a PostgreSQL store', () => {
  let server: PostgresServer
  let other: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
    other = await PostgresServer.start()
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await other[Symbol.asyncDispose]()
  })

  /** A store behind an address that leads to the first server. */
  async function openMovable(): Promise<{ store: Store; proxy: TcpProxy }> {
    const proxy = await startTcpProxy(server.port, { allowHalfOpen: true })
    const store = await openStore(`postgres://postgres@127.0.0.1:${proxy.port}/postgres`)
    onTestFinished(() => store.close())
    await Promise.all(Array.from({ length: 10 }, () => store.ping()))
    return { store, proxy }
  }

  test('leaves a server that has lost its address and goes on, as soon as a new connection reaches another', async () => {
    await (await openStore(other.url())).close()
    const { store, proxy } = await openMovable()
    let wakes = 0
    await store.watch('k', () => wakes++)
    proxy.targetPort = other.port
    await server.psql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'countersign' LIMIT 1",
    )
    // All at once, so that one of them needs a new connection.
    const callAll = () => Promise.all(Array.from({ length: 10 }, () => healed(store)))
    await expect.poll(() => callAll().then(() => connectionsTo(server)), { timeout: 3000 }).toBe(0)
    await expect.poll(() => wakes).toBe(1)
    await healed(store, () => store.create('k', 'a', life))
    await store.compareAndSet('k', 1, 'b', life, { wake: true })
    await expect.poll(() => wakes).toBe(2)
    expect(await other.psql("SELECT version FROM countersign.entries WHERE key = 'countersign:k'")).toBe('2')
  })

  test('leaves a server that has lost its address and does not answer, before its network would say so', async () => {
    await (await openStore(other.url())).close()
    const { store, proxy } = await openMovable()
    let wakes = 0
    await store.watch('frozen', () => wakes++)
    proxy.targetPort = other.port
    server.freeze()
    onTestFinished(() => server.thaw())
    // All connections for calls are closed by that.
    const calls = Array.from({ length: 10 }, () => store.get('frozen'))
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toContain('rejected')
    await healed(store)
    await expect.poll(() => wakes, { timeout: 5000 }).toBe(1)
    server.thaw()
    await expect.poll(() => connectionsTo(server)).toBe(0)
  })

  test('leaves a server that takes no writes any more within ten seconds, also if it only reads', async () => {
    await (await openStore(other.url())).close()
    const { store, proxy } = await openMovable()
    proxy.targetPort = other.port
    await server.psql('ALTER SYSTEM SET default_transaction_read_only = on')
    await server.psql('SELECT pg_reload_conf()')
    await expect.poll(() => connectionsTo(server), { timeout: 10_000 }).toBe(0)
    await server.psql('ALTER SYSTEM RESET default_transaction_read_only')
    await server.psql('SELECT pg_reload_conf()')
    expect(await healed(store, () => store.get('none'))).toBeUndefined()
  })

  test('a change whose process dies before it notifies reaches watchers elsewhere by their next heartbeat', {
    timeout: 40_000,
  }, async () => {
    const environment = {
      COUNTERSIGN_STORE: server.url(),
      COUNTERSIGN_SECRET: secret,
      COUNTERSIGN_PUBLIC_URL: 'http://countersign.test',
      COUNTERSIGN_ENFORCE_ORIGIN: 'off',
    }
    const [dying, watching] = await Promise.all([spawnService(environment), spawnService(environment)])
    const calls = orderClients.REST?.(dying.url) as OrderClient
    const order = await calls.start('login')
    const elsewhere = orderClients.gRPC?.(watching.url) as OrderClient
    const events = elsewhere.watch(order)[Symbol.asyncIterator]()
    expect((await events.next()).value).toMatchObject({ sequence: 1 })
    const locker = new Client(server.url())
    await locker.connect()
    onTestFinished(() => locker.end())
    const one = async (query: string): Promise<unknown> => Object.values((await locker.query(query)).rows[0])[0]
    const key = `countersign:order:{${order.orderId}}`
    await locker.query('BEGIN')
    await locker.query('SELECT FROM countersign.entries WHERE key = $1 FOR UPDATE', [key])
    const claim = calls.claim(order).catch(() => undefined)
    await expect.poll(() => one('SELECT count(*)::integer FROM pg_locks WHERE NOT granted'), { interval: 5 }).toBe(1)
    // It gets no answer to the change, which is made.
    dying.process.kill('SIGSTOP')
    await locker.query('COMMIT')
    await expect.poll(() => one(`SELECT version FROM countersign.entries WHERE key = '${key}'`)).toBe(2)
    await Promise.all([dying.stop('SIGKILL'), claim])
    expect((await events.next()).value).toMatchObject({ sequence: 2 })
    await events.return?.()
  })

  test('payloads that could not be sent go with those of the next change', async () => {
    await server.psql('CREATE ROLE muted LOGIN')
    await server.psql('CREATE DATABASE muted OWNER muted')
    const { logger, lines } = keptLog()
    const store = await openStore(server.url('muted', 'muted'), { log: logger })
    onTestFinished(() => store.close())
    const elsewhere = await openStore(server.url('muted', 'muted'))
    onTestFinished(() => elsewhere.close())
    const woken: string[] = []
    for (const key of ['one', 'two']) {
      await store.create(key, 'a', life)
      await elsewhere.watch(key, () => woken.push(key))
    }
    await server.psql('REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC', 'muted')
    expect(await store.compareAndSet('one', 1, 'b', life, { wake: true })).toBe(true)
    const refusals = () => lines.filter(({ text }) => text.startsWith('PostgreSQL refuses notifications')).length
    await expect.poll(refusals).toBe(1)
    await server.psql('GRANT EXECUTE ON FUNCTION pg_notify TO PUBLIC', 'muted')
    expect(woken).toEqual([])
    await store.compareAndSet('two', 1, 'b', life, { wake: true })
    await expect.poll(() => woken).toEqual(['one', 'two'])
  })

  test.each([3, 8, 11])(
    'with room for %i connections of 11, all of thirty sign-ins at once are served',
    async (most) => {
      const name = `room_${most}`
      await server.psql(`CREATE ROLE ${name} LOGIN CONNECTION LIMIT ${most}`)
      await server.psql(`CREATE DATABASE ${name} OWNER ${name}`)
      const { logger, lines } = keptLog()
      const { url } = await startService({ store: server.url(name, name), secret, logger })
      const signIn = async (): Promise<number> => {
        const { json } = await rest(url, '/wallet/nonce', {})
        return (await rest(url, '/wallet/verify', proofOf(makeWallet(), json))).status
      }
      const thirty = () => Promise.all(Array.from({ length: 30 }, signIn))
      expect(await thirty()).toEqual(Array(30).fill(200))
      const warnings = () => lines.filter(({ text }) => text.includes('no room for more connections')).length
      // Steps share statements, so that they seldom need all connections.
      if (most === 3) await expect.poll(() => thirty().then(warnings), { timeout: 20_000 }).toBe(1)
      else expect(warnings()).toBeLessThanOrEqual(most < 11 ? 1 : 0)
    },
  )

  test('with room for no connection, calls fail, and each has tried once', async () => {
    await server.psql('CREATE ROLE shut LOGIN')
    await server.psql('CREATE DATABASE shut OWNER shut')
    const proxy = await startTcpProxy(server.port)
    const store = await openStore(server.url('shut', 'shut').replace(`:${server.port}`, `:${proxy.port}`))
    onTestFinished(() => store.close())
    await server.psql('ALTER ROLE shut CONNECTION LIMIT 0')
    let answers = 0
    proxy.answer = (chunk) => {
      answers++
      return chunk
    }
    await server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'shut'")
    const read = () => store.get('k').catch((error) => error)
    // Until then, a call can have one of the connections that are ending.
    await expect.poll(read).toMatchObject({ cause: { message: expect.stringMatching(/^53300 /) } })
    answers = 0
    const failures = await Promise.all(Array.from({ length: 8 }, read))
    for (const failure of failures) {
      expect(failure).toMatchObject({
        reason: 'STORE_UNAVAILABLE',
        cause: { message: expect.stringMatching(/^53300 /) },
      })
    }
    // One for each call, and for each of the connection that watches.
    expect(answers).toBeLessThan(16)
  })

  test('calls give up a connection to the one that watches, if there is no room for both', async () => {
    await server.psql('CREATE ROLE crowded LOGIN CONNECTION LIMIT 4')
    await server.psql('CREATE DATABASE crowded OWNER crowded')
    const store = await openStore(server.url('crowded', 'crowded'))
    onTestFinished(() => store.close())
    const traffic = new AbortController()
    const call = async (): Promise<void> => {
      while (!traffic.signal.aborted) await store.addMember('set', 'm', life, 5).catch(() => undefined)
    }
    const calls = Array.from({ length: 8 }, call)
    let wakes = 0
    await store.watch('k', () => wakes++)
    await server.psql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'crowded' AND application_name LIKE '%watches'",
    )
    // Once it listens again, it wakes all.
    await expect.poll(() => wakes, { timeout: 10_000 }).toBeGreaterThan(0)
    traffic.abort()
    await Promise.all(calls)
  })

  describe('with a standby', () => {
    let standby: PostgresServer
    beforeAll(async () => {
      standby = await PostgresServer.start({ primary: server })
    })
    afterAll(() => standby[Symbol.asyncDispose]())

    test('warns at its start, and in doctor, while nothing waits for the standby', async () => {
      const warning = /PostgreSQL has standbys and waits for none of them.*synchronous_standby_names/
      expect(await warningsOfStart()).toEqual([expect.stringMatching(warning)])
      expect(await doctor(server.url())).toMatch(warning)
      await waitForStandbys(server, '*')
      expect(await warningsOfStart()).toEqual([])
      expect(await doctor(server.url())).not.toMatch(warning)
      await waitForStandbys(server, '')
    })

    test('refuses the standby in one line, as doctor does', async () => {
      const refusal = /the server is a standby and takes no writes/
      await expect(openStore(standby.url())).rejects.toThrow(
        new RegExp(`^Cannot open the store, PostgreSQL at [^\n]*: ${refusal.source}\\. Name another server [^\n]*$`),
      )
      expect(await doctor(standby.url())).toMatch(refusal)
    })
  })

  async function warningsOfStart(): Promise<string[]> {
    const { logger, lines } = keptLog()
    const store = await openStore(server.url(), { log: logger })
    await store.close()
    return lines.map((line) => line.text)
  }
})

/** What doctor says of a store. */
async function doctor(store: string): Promise<string> {
  const child = spawn(process.execPath, [mainFile, 'doctor'], {
    env: { COUNTERSIGN_STORE: store, COUNTERSIGN_SECRET: secret, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = await Promise.all([text(child.stdout), once(child, 'close')])
  return said.replaceAll(/\s+/g, ' ')
}
