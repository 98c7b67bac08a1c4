import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import type { Result } from '../../src/commands/doctor/check.ts'
import { doctorCommand } from '../../src/commands/doctor/doctor.ts'
import { openStore } from '../../src/store/open.ts'
import { runHereIn, runMain } from '../support/command.ts'
import { hasPart } from '../support/optional.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { freePort } from '../support/redis-server.ts'
import { startService } from '../support/service.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet } from '../support/wallet.ts'

/** Runs a command as a process, and resolves with its exit code and what it printed. */
const command = (store: string, ...args: readonly string[]) => runMain(args, { env: { COUNTERSIGN_STORE: store } })

describe.skipIf(!hasPart('postgresql'))('commands on a store in PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(async () => await server[Symbol.asyncDispose]())

  /** The most connections that Countersign has to the server while something runs. */
  async function mostConnections(during: Promise<unknown>): Promise<number> {
    const client = new Client(server.url())
    await client.connect()
    let [most, over] = [0, false]
    const end = (): void => {
      over = true
    }
    during.then(end, end)
    while (!over) {
      const { rows } = await client.query(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'countersign%'",
      )
      most = Math.max(most, Number(rows[0].count))
      await sleep(10)
    }
    await client.end()
    return most
  }

  test('take two connections for calls and one for watches unless the address says more, however far it is', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'users')
    const users = Array.from({ length: 500 }, (_, i) => ({
      wallet: `nimiq:${makeWallet().publicKeyHex}`,
      user_id: `${i}`,
    }))
    await writeFile(file, users.map((user) => JSON.stringify(user)).join('\n'))
    expect(await command(server.url(), 'admin', 'import', file)).toMatchObject({ code: 0 })
    const proxy = await startTcpProxy(server.port)
    // A database in another region: two connections have less than the time limit of a call for all that is to be read.
    proxy.answer = (chunk) => sleep(6, chunk)
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`
    for (const [address, connections, limit] of [
      [url, 3, 500],
      [`${url}?connections=5`, 6, 50],
    ] as const) {
      const listed = command(address, 'admin', 'list', '--limit', `${limit}`, '--json')
      expect(await mostConnections(listed)).toBe(connections)
      const { code, stdout, stderr } = await listed
      expect([code, stderr]).toEqual([0, ''])
      expect(JSON.parse(stdout).users).toHaveLength(limit)
    }
  })
})

describe.skipIf(!hasPart('postgresql'))('doctor, with a store in PostgreSQL', () => {
  const secret = 'a secret for tests and for nothing else'
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start({ settings: { fsync: 'on', max_connections: '30', wal_level: 'replica' } })
    await server.psql('CREATE ROLE plain LOGIN')
    await server.psql('CREATE DATABASE service OWNER plain')
  })
  afterAll(async () => await server[Symbol.asyncDispose]())

  /** What it found, of the checks of the store and the clock. */
  async function doctor(store = server.url('service', 'plain')): Promise<string[]> {
    const env = { PORT: '0', COUNTERSIGN_STORE: store, COUNTERSIGN_SECRET: secret }
    const { code, stdout: printed } = await runHereIn(env, doctorCommand, ['--json'])
    expect(printed).not.toMatch(/hunter2/)
    const found: readonly Result[] = JSON.parse(printed).checks
    expect(code).toBe(found.some(({ status }) => status === 'problem') ? 1 : 0)
    return found
      .filter(({ check }) => ['store', 'postgresql', 'clock'].includes(check))
      .map(({ check, status, saw, fix }) => [status, check, saw, ...(fix === undefined ? [] : [fix])].join(' | '))
  }

  /** Its findings of the server, which is otherwise fit. */
  async function serverFindings(): Promise<string[]> {
    const [store, ...others] = await doctor()
    expect(store).toMatch(/^ok \| store \| PostgreSQL at 127\.0\.0\.1:\d+, database service: calls take /)
    expect(others.at(-1)).toMatch(/^ok \| clock \| the clock of PostgreSQL agrees with that of this machine/)
    return others.slice(0, -1)
  }

  test('an ordinary user sees who is connected, and how many connections the instances may take', async () => {
    const other = new Client(server.url())
    await other.connect()
    // The other one's, that of the calls, that of the watches and the one that looks.
    const fit =
      /^ok \| postgresql \| PostgreSQL 1\d\.\S+.*; 4 of 30 connections in use, and an instance takes up to 11$/
    expect(await serverFindings()).toEqual([expect.stringMatching(fit)])
    await other.end()
    const settings = { store: server.url('service', 'plain'), secret }
    await startService(settings)
    await startService(settings)
    expect(await serverFindings()).toEqual([expect.stringMatching(/ and 2 instances of this store may take up to 22$/)])
    await startService(settings)
    expect(await serverFindings()).toEqual([
      'warning | postgresql | 3 instances take up to 33 connections, and the server has 30 | ' +
        'Lower ?connections= in COUNTERSIGN_STORE, or raise max_connections.',
    ])
  })

  test('an owner of the tables is named, and warned of unless it is a superuser', async () => {
    await (await openStore(server.url('service', 'plain'))).close()
    await server.psql('ALTER TABLE countersign.entries OWNER TO postgres', 'service')
    await server.psql('GRANT ALL ON countersign.entries TO plain', 'service')
    onTestFinished(async () => void (await server.psql('ALTER TABLE countersign.entries OWNER TO plain', 'service')))
    const owned = 'the schema countersign or what is in it belongs to'
    expect(await serverFindings()).toEqual([
      expect.stringMatching(new RegExp(`^ok .*; ${owned} postgres \\(a superuser\\)$`)),
    ])
    await server.psql('CREATE ROLE other; ALTER TABLE countersign.entries OWNER TO other', 'service')
    await server.psql('GRANT ALL ON countersign.entries TO plain', 'service')
    expect(await serverFindings()).toEqual([
      expect.stringMatching(new RegExp(`^warning .*${owned} other \\| Make sure that they are your administrators`)),
    ])
  })

  test('a server that does not wait for its disk is warned of', async () => {
    await using quick = await PostgresServer.start({ settings: { fsync: 'off' } })
    expect(await doctor(quick.url())).toContainEqual(
      expect.stringMatching(/^warning .* fsync is off \| Set fsync to on/),
    )
  })

  test('a standby that is not waited for is warned of, by the start of a service too', async () => {
    const folder = temporaryFolder()
    const args = ['-D', folder, '-h', '127.0.0.1', '-p', `${server.port}`, '-U', 'postgres', '--synchronous']
    const standby = spawn(join(server.programs, 'pg_receivewal'), args, { stdio: 'ignore' })
    onTestFinished(() => void standby.kill('SIGKILL'))
    await expect.poll(() => server.psql('SELECT count(*) FROM pg_stat_replication')).toBe('1')
    expect(await serverFindings()).toEqual([
      expect.stringMatching(
        /^warning .* has standbys and waits for none of them.* \| Set synchronous_standby_names\.$/,
      ),
    ])
    const warnings: string[] = []
    const logger = { ...silentLogger, warn: (text: string) => void warnings.push(text) }
    await startService({ store: server.url('service', 'plain'), secret, logger })
    expect(warnings).toContainEqual(expect.stringMatching(/standbys and waits for none of them/))
    await server.psql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    await server.psql('SELECT pg_reload_conf()')
    expect(await serverFindings()).toEqual([expect.stringMatching(/^ok /)])
    await server.psql('ALTER SYSTEM RESET synchronous_standby_names')
    await server.psql('SELECT pg_reload_conf()')
  })

  test('a listener that does not read and so fills the queue of notifications is warned of', async () => {
    const hanging = new Client(server.url())
    await hanging.connect()
    onTestFinished(() => hanging.end())
    await hanging.query('LISTEN countersign')
    await hanging.query('BEGIN')
    await server.psql(
      "SELECT count(pg_notify('countersign', repeat('a', 7900) || i)) FROM generate_series(1, 17000) AS i",
    )
    expect(await serverFindings()).toEqual([
      expect.stringMatching(
        /^warning .* the queue of notifications is 2 % full, .* \| End the session that does not read/,
      ),
    ])
  })

  test('rows that expired hours ago and are still there are warned of', async () => {
    await (await openStore(server.url('service', 'plain'))).close()
    await server.psql(
      `INSERT INTO countersign.entries (key, value, version, expires_at)
        VALUES ('stays', '', 1, clock_timestamp() - interval '3 hours')`,
      'service',
    )
    expect(await serverFindings()).toEqual([
      expect.stringMatching(/^warning .* expired rows have been there for 3 hours \| Run an instance on this store/),
    ])
    await server.psql('DELETE FROM countersign.entries', 'service')
  })

  test('a clock that is off is a problem', async () => {
    const proxy = await startTcpProxy(server.port)
    const ahead = (time: string): string => String(Number(time) + 90_000)
    proxy.answer = (chunk) => Buffer.from(chunk.toString('latin1').replaceAll(/\b1[789]\d{11}(?=\.)/g, ahead), 'latin1')
    expect(await doctor(`postgres://plain@127.0.0.1:${proxy.port}/service`)).toContainEqual(
      expect.stringMatching(
        /^problem \| clock \| the clock of PostgreSQL is (89|90|91)\.\d seconds ahead .*time server/,
      ),
    )
  })

  test.each([
    ['database that is missing', () => server.url('missing', 'plain:hunter2'), /does not have a database/],
    [
      'file of TLS that is missing',
      () => 'postgres://u:hunter2@localhost/d?sslmode=verify-full&sslrootcert=/none.pem',
      /sslrootcert in COUNTERSIGN_STORE.*none\.pem/,
    ],
    [
      'parameter that has no effect',
      () => 'postgres://u:hunter2@db.example/d?target_session_attrs=any',
      /target_session_attrs/,
    ],
    [
      'server that is away',
      async () => `postgres://u:hunter2@127.0.0.1:${await freePort()}/d`,
      /ECONNREFUSED.*Start it/,
    ],
  ])('a %s is one problem, without the password', async (_, store, saw) => {
    const found = await doctor(await store())
    expect(found.filter((line) => line.startsWith('problem'))).toEqual([expect.stringMatching(saw)])
  })
})
