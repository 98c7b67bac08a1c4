import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { silentLogger } from '../../../src/base/log.ts'
import { StoreOpenError } from '../../../src/store/implementation.ts'
import { openStore } from '../../../src/store/open.ts'
import { examinePostgres } from '../../../src/store/postgres/examine.ts'
import { schemaSql } from '../../../src/store/postgres/schema.ts'
import { statements } from '../../../src/store/postgres/statements.ts'
import type { Store } from '../../../src/store/store.ts'
import { Authority } from '../../support/certificates.ts'
import { hasPart } from '../../support/optional.ts'
import { startPgBouncer } from '../../support/pgbouncer.ts'
import { killPostgresServers, PostgresServer } from '../../support/postgres-server.ts'
import { freePort } from '../../support/redis-server.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { healed } from '../healed.ts'

const unavailable = { reason: 'STORE_UNAVAILABLE', retryAfterMs: 1000 }
const life = { ttlMs: 60_000 }

afterAll(killPostgresServers)

describe.skipIf(!hasPart('postgresql'))('a PostgreSQL store', () => {
  let server: PostgresServer

  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(async () => await server[Symbol.asyncDispose]())

  /** A database of its own, so that tests do not see each other's tables. */
  let databases = 0
  const newDatabase = async (options = ''): Promise<string> => {
    const name = `test_${++databases}`
    await server.psql(`CREATE DATABASE ${name} ${options}`)
    return name
  }
  const open = async (url: string): Promise<Store> => {
    const store = await openStore(url)
    onTestFinished(() => store.close())
    return store
  }
  const refusalOf = async (url: string): Promise<string> => {
    const failure = await openStore(url).then(
      (store) => store.close(),
      (error) => error,
    )
    expect(failure).toBeInstanceOf(StoreOpenError)
    expect(failure.message).not.toMatch(/\n|secret-of-the-test/)
    return failure.message
  }

  test('keeps what it is given beside other prefixes, and nothing of keys in notifications', async () => {
    const database = await newDatabase()
    const store = await open(server.url(database))
    const other = await openStore(server.url(database), { keyPrefix: 'shop' })
    onTestFinished(() => other.close())
    await store.create('k', 'héllo\0\n', life)
    expect(await store.get('k')).toEqual({ value: 'héllo\0\n', version: 1 })
    expect(await other.get('k')).toBeUndefined()
    expect(await server.psql('SELECT key FROM countersign.entries', database)).toBe('countersign:k')
    const listener = new Client(server.url(database))
    await listener.connect()
    onTestFinished(() => listener.end())
    const heard = once(listener, 'notification')
    await listener.query('LISTEN countersign')
    await store.compareAndSet('k', 1, 'b', life, { wake: true })
    expect((await heard)[0].payload).toMatch(/^[\w-]{43}$/)
  })

  test('removes what has expired, also of sets, and what lives in the same ten minutes stays', async () => {
    const database = await newDatabase()
    const store = await open(server.url(database))
    await store.create('live', 'a', life)
    await store.create('for ever', 'a', 'forever')
    for (let i = 0; i < 3; i++) await store.create(`over-${i}`, 'a', { ttlMs: 1 })
    await store.addMember('set', 'over', { ttlMs: 1 })
    await store.addMember('set', 'live', life)
    const rows = () =>
      server.psql(
        "SELECT string_agg(key, ' ' ORDER BY key) FROM (SELECT key FROM countersign.entries UNION SELECT member FROM countersign.members) AS rows",
        database,
      )
    // Steps of ten minutes: what expired a moment ago is swept by the step that is over, or by the next.
    await server.psql(
      "UPDATE countersign.entries SET expires_at = expires_at - interval '11 minutes' WHERE key LIKE '%over%'",
      database,
    )
    await server.psql(
      "UPDATE countersign.members SET expires_at = expires_at - interval '11 minutes' WHERE member = 'over'",
      database,
    )
    await expect.poll(rows, { timeout: 15_000 }).toBe('countersign:for ever countersign:live live')
  })

  test('a watch that begins while the store is closing rejects', async () => {
    const store = await openStore(server.url())
    await store.create('closing', 'a', life)
    await store.compareAndSet('closing', 1, 'b', life, { wake: true })
    // Waits for the notification.
    const closed = store.close()
    await expect(store.watch('closing', () => {})).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    await closed
  })

  test('finds what has expired by an index, however much has not: to sweep it, and for doctor', async () => {
    const database = await newDatabase()
    await server.psql(`ALTER DATABASE ${database} SET enable_seqscan = off`)
    // A session counts what it has done at its end, at the latest.
    const sessions = () => server.psql(`SELECT count(*) FROM pg_stat_activity WHERE datname = '${database}'`)
    const store = await openStore(server.url(database))
    await store.close()
    await expect.poll(sessions).toBe('0')
    for (const [table, sweep] of [
      ['entries', statements.sweepEntries],
      ['members', statements.sweepMembers],
    ] as const) {
      const plan = await server.psql(`EXPLAIN ${sweep.text}`, database)
      expect(plan).toMatch(new RegExp(`Index Scan (?:using|on) ${table}_sweep .*\n *Index Cond: \\(\\(sweep_at <= `))
    }
    const scans = "SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname IN ('entries', 'members')"
    const before = await server.psql(scans, database)
    await examinePostgres(server.url(database))
    await expect.poll(sessions).toBe('0')
    expect(await server.psql(scans, database)).toBe(before)
  })

  test.each([
    ['default_transaction_isolation', 'serializable'],
    ['default_transaction_isolation', "'repeatable read'"],
    ['synchronous_commit', 'off'],
    ['search_path', 'nowhere'],
  ])('does its steps alike in a database with %s = %s', async (setting, value) => {
    const database = await newDatabase()
    await server.psql(`ALTER DATABASE ${database} SET ${setting} = ${value}`)
    const [one, two] = [await open(server.url(database)), await open(server.url(database))]
    await one.create('k', 'a', life)
    const tries = Array.from({ length: 40 }, (_, i) => (i % 2 ? one : two).compareAndSet('k', 1, `${i}`, life))
    expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1)
    const taken = await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 ? one : two).take('k')))
    expect(taken.filter((text) => text !== undefined)).toHaveLength(1)
    await Promise.all(Array.from({ length: 60 }, (_, i) => (i % 2 ? one : two).addMember('set', `m${i}`, life, 5)))
    expect((await one.members('set')).length).toBeLessThanOrEqual(10)
    expect(
      await server.psql("SELECT count(DISTINCT current_setting('synchronous_commit')) FROM pg_stat_activity", database),
    ).toBe('1')
  })

  test.each([
    ["ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", 'LATIN1'],
    ["ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", 'SQL_ASCII'],
    ["LOCALE_PROVIDER icu ICU_LOCALE 'de-u-ks-level2' LOCALE 'C.UTF-8' TEMPLATE template0", 'UTF8'],
  ])('keeps any text, and finds keys by their bytes, in a database made %s', async (options, encoding) => {
    const database = await newDatabase(options)
    expect(await server.psql('SHOW server_encoding', database)).toBe(encoding)
    const store = await open(server.url(database))
    await store.create('a', 'ж 😀 \0', life)
    await store.create('A', 'other', life)
    expect(await store.take('a')).toBe('ж 😀 \0')
    for (const key of ['a:1', 'a:Z', 'a:_', 'b:1', 'A:1']) await store.create(key, key, life)
    const found: string[] = []
    for await (const { key } of store.scan?.('a:') ?? []) found.push(key)
    expect(found.sort()).toEqual(['a:1', 'a:Z', 'a:_'])
  })

  test('makes its tables once when three start at the same time', async () => {
    const database = await newDatabase()
    const stores = await Promise.all([1, 2, 3].map(() => open(server.url(database))))
    await stores[0]?.create('k', 'a', life)
    expect(await stores[2]?.get('k')).toEqual({ value: 'a', version: 1 })
    expect(await server.psql('SELECT count(*) FROM countersign.format', database)).toBe('1')
  })

  test('with a user who may not make tables says what an administrator has to run, and then works', async () => {
    const database = await newDatabase()
    await server.psql(`CREATE ROLE "service's ""own""" LOGIN`)
    const user = encodeURIComponent(`service's "own"`)
    const url = server.url(database, user)
    expect(await refusalOf(url)).toMatch(/lacks a permission.*`countersign doctor --sql`/)
    await server.psql(schemaSql(`service's "own"`), database)
    const store = await open(url)
    await store.create('k', 'a', life)
    await store.addMember('set', 'm', life, 1)
    expect(await store.members('set')).toEqual(['m'])
  })

  test.each([
    ['"$user", public', 'text'],
    ['public, pg_catalog', 'interval'],
  ])('runs no function that another user has put into the way of an administrator with %s', async (path, argument) => {
    const database = await newDatabase()
    const [kept, stranger] = [`${database}_kept`, `${database}_stranger`]
    await server.psql(`CREATE ROLE ${kept} LOGIN; CREATE ROLE ${stranger} LOGIN`)
    await server.psql(`GRANT CREATE ON SCHEMA public TO ${stranger}`, database)
    // It fits a call of the statements, and says as whom it runs.
    const trap = `CREATE TABLE public.seen (who text);
      GRANT INSERT ON public.seen TO PUBLIC;
      CREATE FUNCTION public.see() RETURNS void VOLATILE LANGUAGE sql AS 'INSERT INTO public.seen VALUES (current_user)';
      CREATE FUNCTION public.date_bin(${argument}, timestamptz, timestamptz) RETURNS timestamptz IMMUTABLE
        LANGUAGE plpgsql AS 'BEGIN PERFORM public.see(); RETURN $2; END'`
    await server.psqlAt(server.url(database, stranger), trap)
    await server.psql(`SET search_path = ${path}; ${schemaSql(kept)}`, database)
    const store = await open(server.url(database, kept))
    await store.create('k', 'a', life)
    await store.addMember('set', 'm', life, 1)
    expect(await server.psql('SELECT DISTINCT who FROM public.seen', database)).toBe('')
  })

  test('the start says to whom else the tables belong, and warns of one who is no superuser', async () => {
    const database = await newDatabase()
    await server.psql('CREATE ROLE guest LOGIN; CREATE ROLE squatter LOGIN; CREATE ROLE shared; GRANT shared TO guest')
    const said = async (): Promise<[level: string, text: string][]> => {
      const lines: [string, string][] = []
      const log = {
        ...silentLogger,
        info: (text: string) => void lines.push(['info', text]),
        warn: (text: string) => void lines.push(['warn', text]),
      }
      await (await openStore(server.url(database, 'guest'), { log })).close()
      return lines
    }
    await server.psql(schemaSql('guest'), database)
    expect(await said()).toEqual([['info', expect.stringMatching(/belongs to postgres \(a superuser\)$/)]])
    const owned = (role: string) =>
      `ALTER SCHEMA countersign OWNER TO ${role}; ALTER FUNCTION countersign.expiry OWNER TO ${role}`
    await server.psql(owned('squatter'), database)
    const belongs = /belongs to postgres \(a superuser\), squatter\. Make sure that they are your administrators/
    expect(await said()).toEqual([['warn', expect.stringMatching(belongs)]])
    const found = await examinePostgres(server.url(database, 'guest'))
    expect(found.owners).toEqual([
      { name: 'postgres', isSuperuser: true },
      { name: 'squatter', isSuperuser: false },
    ])
    for (const table of ['entries', 'members', 'sets', 'format'])
      await server.psql(`ALTER TABLE countersign.${table} OWNER TO shared`, database)
    for (const name of ['add_member', 'remove_member'])
      await server.psql(`ALTER FUNCTION countersign.${name} OWNER TO guest`, database)
    await server.psql(owned('shared'), database)
    expect(await said()).toEqual([])
  })

  test.each([
    ['a version from the future', 'UPDATE countersign.format SET version = 3', /version 3 of a newer Countersign/],
    ['a version from before', 'UPDATE countersign.format SET version = 1', /before version 0\.1\.0, so begin with an/],
    ['a half-made schema', 'DELETE FROM countersign.format', /another application, or was not made whole/],
  ])('refuses %s and changes nothing', async (_, change, message) => {
    const database = await newDatabase()
    await (await openStore(server.url(database))).close()
    await server.psql(change, database)
    expect(await refusalOf(server.url(database))).toMatch(message)
  })

  test.each([
    ['database', () => server.url('missing'), /does not have a database of this name/],
    ['user', () => server.url('postgres', 'missing'), /missing.* does not exist|not accept the user/],
    [
      'port',
      async () => `postgres://postgres@127.0.0.1:${await freePort()}/postgres`,
      /ECONNREFUSED.*Start it or correct/,
    ],
    ['host', () => 'postgres://u:secret-of-the-test@host.invalid/postgres', /host name is not known/],
  ])('with a wrong %s says so in one line', async (_, url, message) => {
    expect(await refusalOf(await url())).toMatch(message)
  })

  test.each([
    'postgres://user:secret-of-the-test@one,two/database',
    'postgres://user:secret-of-the-test@host/database?sslmode=require',
    'postgres://user:secret-of-the-test@host/database?sslmode=disable',
    'postgres://user:secret-of-the-test@host/database?application_name=x',
    'postgres://user:secret-of-the-test@host/database?connections=0',
    'postgres://user:secret-of-the-test@host/database?connections=5&connections=6',
    'postgres://user:secret-of-the-test@localhost/database?sslrootcert=/a.pem',
    'postgres://user:secret-of-the-test@host/database?sslcert=/a.pem',
    'postgres://user:secret-of-the-test@host:0/database',
    'postgres://user:secret-of-the-test@host/',
    'postgres://host/database',
    'postgres://user:%zz@host/database',
    'postgres:user@host/database',
  ])('refuses the address %s without repeating it', async (url) => {
    const failure = await openStore(url).catch((error) => error)
    expect(failure).toBeInstanceOf(TypeError)
    expect(failure.message).not.toMatch(/secret-of-the-test|\n/)
    expect(failure.message).toMatch(/PostgreSQL URL/)
  })

  test('is reached over the folder of its socket, and takes no password from the environment', async () => {
    const folder = encodeURIComponent(server.folder)
    const store = await open(`postgres://postgres@${folder}:${server.port}/${await newDatabase()}`)
    expect(store.description).toContain(server.folder)
    await server.psql("CREATE ROLE guarded LOGIN PASSWORD 'secret-of-the-test'")
    await writeFile(
      join(server.data, 'pg_hba.conf'),
      'local all guarded scram-sha-256\nlocal all all trust\nhost all all all trust\n',
    )
    await server.psql('SELECT pg_reload_conf()')
    process.env.PGPASSWORD = 'secret-of-the-test'
    onTestFinished(() => {
      delete process.env.PGPASSWORD
    })
    expect(await refusalOf(`postgres://guarded@${folder}:${server.port}/postgres`)).toMatch(/asks for one/)
  })

  test.each([
    ['PGOPTIONS', '-c default_transaction_read_only=on'],
    ['PGREPLICATION', 'database'],
    ['PGSSLNEGOTIATION', 'direct'],
    ['PGHOST', 'host.invalid'],
    ['PGSSLMODE', 'require'],
  ])('is opened as its address says, whatever %s is', async (name, value) => {
    const database = await newDatabase()
    vi.stubEnv(name, value)
    onTestFinished(() => void vi.unstubAllEnvs())
    const store = await open(server.url(database))
    expect(await store.create('k', 'a', life)).toBe(true)
    await store.watch('k', () => undefined)
    expect(process.env[name]).toBe(value)
  })

  test('fails while the server is away, heals, and wakes watchers then', async () => {
    await using own = await PostgresServer.start()
    const store = await open(own.url())
    let wakes = 0
    await store.watch('k', () => wakes++)
    await store.create('k', 'a', 'forever')
    await own.kill()
    await expect(store.get('k')).rejects.toMatchObject(unavailable)
    await own.start()
    await healed(store)
    await expect.poll(() => wakes, { timeout: 10_000 }).toBeGreaterThan(0)
    expect(await store.get('k')).toEqual({ value: 'a', version: 1 })
    const before = wakes
    await store.compareAndSet('k', 1, 'b', 'forever', { wake: true })
    await expect.poll(() => wakes, { timeout: 5000 }).toBeGreaterThan(before)
  })

  test('fails a call that is under way when the server crashes, and nothing else', async () => {
    await using own = await PostgresServer.start()
    const store = await open(own.url())
    const locker = new Client(own.url())
    locker.on('error', () => undefined)
    await locker.connect()
    await locker.query('BEGIN; LOCK TABLE countersign.entries')
    const failure = expect(store.get('k')).rejects.toMatchObject(unavailable)
    const waiting = () => own.psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    await expect.poll(waiting).toBe('1')
    await own.kill()
    await failure
    await own.start()
    expect(await healed(store, () => store.create('k', 'a', life))).toBe(true)
  })

  test('notices within ten seconds that a network was cut in silence, and wakes watchers once it is back', async () => {
    const proxy = await startTcpProxy(server.port)
    const store = await open(`postgres://postgres@127.0.0.1:${proxy.port}/${await newDatabase()}`)
    let wakes = 0
    await store.watch('k', () => wakes++)
    await store.create('k', 'a', life)
    // Nothing of what is answered from now on arrives, and no connection is closed.
    proxy.answer = () => Buffer.alloc(0)
    const cutAt = performance.now()
    const calls = [
      store.get('k'),
      store.create('other', 'a', life),
      store.take('other'),
      store.compareAndSet('other', 1, 'b', life, { wake: true }),
      store.addMember('set', 'm', life, 5),
      store.removeMember('set', 'm'),
      store.members('set'),
      store.ping(),
    ]
    const failure = expect.objectContaining(unavailable)
    expect(await Promise.allSettled(calls)).toEqual(calls.map(() => ({ status: 'rejected', reason: failure })))
    expect(performance.now() - cutAt).toBeLessThan(3500)
    await sleep(8000)
    proxy.answer = (chunk) => chunk
    // A try to connect that is under way still has its 2.5 seconds, and the next one comes after a pause.
    await expect.poll(() => wakes, { timeout: 10_000 }).toBeGreaterThan(0)
    expect(await healed(store, () => store.get('k'))).toEqual({ value: 'a', version: 1 })
  })

  test('closes connections that take no writes any more, so that the next ones can reach another server', async () => {
    const readOnly = await newDatabase()
    const store = await open(server.url(readOnly))
    await server.psql(`ALTER DATABASE ${readOnly} SET default_transaction_read_only = on`)
    const connections = () =>
      server.psql(`SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity WHERE datname = '${readOnly}'`)
    const before = await connections()
    await server.psql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${readOnly}'`)
    await expect.poll(() => store.create('k', 'a', life).catch((error) => error.reason)).toBe('STORE_UNAVAILABLE')
    await server.psql(`ALTER DATABASE ${readOnly} SET default_transaction_read_only = off`)
    // Connections that can only read were closed: no call meets one of them.
    expect(await healed(store, () => store.create('k', 'a', life))).toBe(true)
    expect(await connections()).not.toBe(before)
  })

  test.skipIf(!hasPart('openssl'))('checks the certificate of a server that is not on this machine', async () => {
    const folder = temporaryFolder()
    const authority = await Authority.create(folder, 'authority')
    const { cert, key } = await authority.issue('localhost')
    await using own = await PostgresServer.start({ certificate: { cert, key, authority: authority.cert } })
    const url = `postgres://postgres@localhost:${own.port}/postgres?sslmode=verify-full`
    expect(await refusalOf(url)).toMatch(/not from an authority that is trusted here.*sslrootcert/)
    const store = await open(`${url}&sslrootcert=${encodeURIComponent(authority.cert)}`)
    expect(store.description).toContain('over TLS')
    await own.psql("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'secret-of-the-test'")
    await writeFile(
      join(own.data, 'pg_hba.conf'),
      'hostssl all guarded all scram-sha-256\nhostssl all certified all cert\nhost all all all trust\n',
    )
    await own.psql('SELECT pg_reload_conf()')
    const guarded = `${url.replace('postgres@', 'guarded:secret-of-the-test@')}&sslrootcert=${encodeURIComponent(authority.cert)}`
    const withPassword = await open(guarded)
    await withPassword.watch('k', () => undefined)
    expect(await withPassword.create('k', 'a', life)).toBe(true)
    expect(await refusalOf(guarded.replace('secret-of', 'other-than'))).toMatch(
      /does not accept the user or the password/,
    )
    await own.psql('CREATE ROLE certified LOGIN SUPERUSER')
    const client = await authority.issue('certified')
    const certified = `${url.replace('postgres@', 'certified@')}&sslrootcert=${encodeURIComponent(authority.cert)}`
    const files = `&sslcert=${encodeURIComponent(client.cert)}&sslkey=${encodeURIComponent(client.key)}`
    expect(await (await open(certified + files)).create('l', 'a', life)).toBe(true)
    expect(await refusalOf(certified)).toMatch(/certificate/)
    const elsewhere = url.replace('localhost', '127.0.0.1')
    expect(await refusalOf(`${elsewhere}&sslrootcert=${encodeURIComponent(authority.cert)}`)).toMatch(
      /another host name/,
    )
    expect(
      await own.psql(
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'countersign'",
      ),
    ).toBe('t')
  })

  test.skipIf(!hasPart('pgbouncer')).each(['transaction', 'session'] as const)(
    'behind PgBouncer in %s mode',
    async (mode) => {
      const { url } = await startPgBouncer(server, mode, await newDatabase())
      if (mode === 'session') {
        const store = await open(url)
        expect(await store.create('k', 'a', life)).toBe(true)
      } else {
        expect(await refusalOf(url)).toMatch(/pooler/)
      }
    },
  )
})
