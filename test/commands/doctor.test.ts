import { once } from 'node:events'
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { UsageError } from '../../src/commands/command-line.ts'
import { type Check, ok, problem, type Result, runChecks, warning } from '../../src/commands/doctor/check.ts'
import { checks } from '../../src/commands/doctor/checks.ts'
import { doctorCommand } from '../../src/commands/doctor/doctor.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { lanHosts } from '../../src/service/lan.ts'
import { Authority } from '../support/certificates.ts'
import { runHereIn, runMain } from '../support/command.ts'
import { listen } from '../support/listening.ts'
import { runNginx } from '../support/nginx.ts'
import { hasPart } from '../support/optional.ts'
import { clockAhead } from '../support/redis-clock.ts'
import { freePort, RedisServer } from '../support/redis-server.ts'
import { startService } from '../support/service.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { folderOfFile, temporaryFolder } from '../support/temporary-folder.ts'

const secret = 'a-secret-for-tests-and-for-nothing-else'

/** What the command said. */
interface Report {
  readonly code: number | null
  readonly results: readonly Result[]
  readonly stdout: string
}

/** How to run the command as a process. */
interface Process {
  readonly args?: readonly string[]
  /** Arguments of Node.js. */
  readonly node?: readonly string[]
  /** User to run it as; only root can choose. */
  readonly uid?: number
}

/** Runs the command as a process, with these environment variables only. */
async function spawned(env: Record<string, string>, { args = [], node = [], uid }: Process = {}): Promise<Report> {
  const { stdout, stderr, code } = await runMain(['doctor', '--json', ...args], {
    env: { PORT: String(await freePort()), ...env },
    node,
    cwd: folder,
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  expect(stderr).toBe('')
  return { code, stdout, results: JSON.parse(stdout).checks }
}

/** Runs it in this process, which takes a tenth of the time. Resolves with the exit code and what it printed. */
async function run(env: Record<string, string>, args: readonly string[] = []): Promise<[number, string]> {
  const defaults = { PORT: String(await freePort()), COUNTERSIGN_STORE: `sqlite:${folder}/default.db` }
  const { code, stdout } = await runHereIn({ ...defaults, ...env }, doctorCommand, args)
  return [code, stdout]
}

/** Runs it in this process for its results. */
async function doctor(env: Record<string, string>, args: readonly string[] = []): Promise<Report> {
  const [code, stdout] = await run(env, ['--json', ...args])
  return { code, stdout, results: JSON.parse(stdout).checks }
}

/** What is not as it should be, but for the address that a name of these tests does not have. */
function faultsIn({ results }: Report) {
  return results
    .filter(({ saw }) => saw !== 'auth.invalid has no address in the DNS')
    .filter(({ status }) => status === 'problem' || status === 'warning')
}

/** The same as names of checks, with what was seen and how to mend it. */
function faults(report: Report): string[] {
  return faultsIn(report).map(({ check, status, saw, fix }) => `${status} of ${check}: ${saw} > ${fix}`)
}

/**
 * Expects one problem, and no warning but the one that the start of a service has of its own origin if `ownOrigin` is
 * left out.
 */
function expectOneProblem(report: Report, check: string, saw: RegExp, fix: RegExp, ownOrigin?: 'left out'): void {
  const known = ownOrigin === undefined ? [] : [expect.stringMatching(/^warning of configuration: trustedOrigins/)]
  expect(faults(report)).toEqual([...known, expect.stringMatching(/^problem of/)])
  const found = faultsIn(report).find(({ status }) => status === 'problem')
  expect(found).toMatchObject({ check, saw: expect.stringMatching(saw), fix: expect.stringMatching(fix) })
  expect(report.code).toBe(1)
}

let folder: string
beforeAll(async () => {
  folder = folderOfFile()
})

/** A TCP server that answers each chunk with a text, or never. */
async function startServer(answer?: string): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('data', () => answer !== undefined && socket.end(answer))
    onTestFinished(() => void socket.destroy())
  })
  return await listen(server)
}

describe('usage', () => {
  test('the help says what it does', async () => {
    expect(await run({}, ['--help'])).toEqual([0, expect.stringMatching(/^Usage: countersign doctor \[options\]\n/)])
  })

  test.each([
    [['--jsno'], /unknown argument "--jsno"/],
    [['--version'], /unknown argument "--version"/],
    [['--url', 'https://user:hunter2@auth.example'], /^--url must be an http or https address without a path[^@]*$/],
    [['--url'], /--url needs a value/],
    [['--origin', 'app.example'], /^--origin must be an origin such as https:\/\/app\.example$/],
    [['--origin='], /--origin is empty/],
    [['--port', 'http'], /--port must be a whole number/],
  ])('%j is refused', async (args, message) => {
    await expect(run({}, args)).rejects.toThrow(UsageError)
    await expect(run({}, args)).rejects.toThrow(message)
  })

  test('what is refused ends the process with exit status 2 and one line', async () => {
    const { code, stdout, stderr } = await runMain(['doctor', '--jsno'])
    expect(stderr).toBe('countersign: unknown argument "--jsno"; --help shows the usage\n')
    expect([code, stdout]).toEqual([2, ''])
  })

  test('people get a line for each result, and below it what to do', async () => {
    const [code, stdout] = await run({ COUNTERSIGN_SECRET: 'short' })
    expect(stdout).toMatch(/^✓ ok {7}node {15}Node\.js \d/)
    expect(stdout).toMatch(
      /\n✗ problem {2}configuration {6}secret \(COUNTERSIGN_SECRET\) must be text of 32 [^\n]+\n {30}Correct that setting[^\n]+\n- skipped {2}/,
    )
    expect(stdout).toMatch(/\n\n1 problem, 0 warnings, \d+ skipped\n$/)
    expect(code).toBe(1)
  })

  test('machines get an object', async () => {
    const { code, stdout } = await doctor({ COUNTERSIGN_X: 'y' })
    const { ok, version, checks, ...others } = JSON.parse(stdout)
    expect([code, ok, typeof version, others]).toEqual([0, true, 'string', {}])
    expect(checks[1]).toEqual({
      check: 'configuration',
      status: 'warning',
      saw: 'Unknown setting COUNTERSIGN_X',
      fix: 'Correct its name, or remove it.',
    })
  })
})

describe('checks', () => {
  const check = (name: string, needs: readonly string[], run: Check<null>['run']): Check<null> => ({
    name,
    needs,
    run,
    advice: `Fix ${name}.`,
  })

  test('are skipped after a problem of one that they need, and after a skipped one', async () => {
    const results = await runChecks(
      [
        check('a', [], async () => [problem('broken', 'Mend it.')]),
        check('b', ['a'], async () => [ok('not reached')]),
        check('c', ['b'], async () => [ok('not reached')]),
        check('d', [], async () => [warning('odd', 'Look at it.')]),
        check('e', ['d'], async () => [ok('reached')]),
      ],
      null,
    )
    expect(results.map(({ check, status }) => `${check} ${status}`)).toEqual([
      'a problem',
      'b skipped',
      'c skipped',
      'd warning',
      'e ok',
    ])
  })

  test('checks that hang or fail are problems, and the others go on', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    let isAborted = false
    const hang: Check<null>['run'] = (_, signal) =>
      new Promise(() => signal.addEventListener('abort', () => (isAborted = true)))
    const fail = async (): Promise<never> => {
      throw new Error('line one\nline two')
    }
    const running = runChecks([check('a', [], hang), check('b', [], fail), check('c', [], async () => [ok('c')])], null)
    await vi.advanceTimersByTimeAsync(7_000)
    expect(await running).toEqual([
      { check: 'a', ...problem('no result within 6.5 seconds', 'Find out what hangs, and run doctor again.') },
      { check: 'b', ...problem('line one line two', 'Fix b.') },
      { check: 'c', ...ok('c') },
    ])
    expect(isAborted).toBe(true)
  })

  test('stand behind those that they need', () => {
    const seen = new Set<string>()
    for (const { name, needs = [] } of checks) {
      for (const needed of needs) expect(seen).toContain(needed)
      seen.add(name)
    }
    expect(seen.size).toBe(checks.length)
  })
})

describe('a setup with an OpenID Connect issuer', () => {
  const metadata = { client_id: 'shop', client_secret: secret, redirect_uris: ['https://shop.example/'] }
  const clients = { clients: [{ metadata }] }
  const fileWith = async (content: object): Promise<string> => {
    const file = join(folder, 'clients.json')
    await writeFile(file, JSON.stringify(content))
    return file
  }

  test('is fit if applications find the issuer', async () => {
    const [port, oidcClients] = [await freePort(), await fileWith(clients)]
    await startService({ port, host: 'localhost', oidc: { clients: oidcClients } })
    const report = await doctor({ PORT: String(port), COUNTERSIGN_OIDC_CLIENTS: oidcClients })
    expect(faults(report)).toEqual([])
    expect(report.results.find(({ check }) => check === 'issuer')).toMatchObject({
      status: 'ok',
      saw: expect.stringMatching(/1,800 s.*90 days/),
    })
  })

  test('says that clients with a document are open to anyone, unless only people of the file sign in', async () => {
    const env = { COUNTERSIGN_OIDC_CLIENTS: await fileWith({ clients: [] }), COUNTERSIGN_OIDC_CLIENT_DOCUMENTS: '*' }
    const saw = async (more: object) =>
      (await doctor({ ...env, ...more })).results.find(({ check }) => check === 'people')?.saw
    expect(await saw({})).toMatch(
      /^anyone with a wallet gets into clients that come with a document, which have no groups;/,
    )
    const people = join(folder, 'people.json')
    await writeFile(people, JSON.stringify({ ada: { name: 'Ada' } }))
    const listed = { COUNTERSIGN_PEOPLE: people, COUNTERSIGN_ADMIT: 'people' }
    expect(await saw(listed)).toBe('only the 1 people of COUNTERSIGN_PEOPLE sign in')
  })

  test('is not if the running service has none, or a client does not fit', async () => {
    const port = await freePort()
    await startService({ port, host: 'localhost' })
    const env = { PORT: String(port), COUNTERSIGN_OIDC_CLIENTS: await fileWith(clients) }
    expectOneProblem(await doctor(env), 'issuer', /openid-configuration answers 404, without/, /restart the service/)
    await fileWith({ clients: [{ metadata: { ...metadata, redirect_uris: [] } }] })
    expectOneProblem(await doctor(env), 'configuration', /client 1: redirect_uris must be/, /Correct that setting/)
  })
})

describe('a setup with SQLite', () => {
  test('is fit before the first start, which stays the first: nothing is left behind', async () => {
    const before = await readdir(folder)
    const report = await spawned({ COUNTERSIGN_STORE: 'sqlite:./new.db' })
    expect(faults(report)).toEqual([])
    expect(report.code).toBe(0)
    expect(await readdir(folder)).toEqual(before)
  })

  test('whose file cannot be written, because its folder is a file', async () => {
    await writeFile(join(folder, 'a-file'), '')
    const report = await doctor({ COUNTERSIGN_STORE: `sqlite:${folder}/a-file/countersign.db` })
    expectOneProblem(report, 'store', /a-file\/countersign\.db: ENOTDIR/, /Repair that or name another file/)
  })

  test.skipIf(process.getuid?.() !== 0)('whose file, or the folder of its file, is not the user’s own', async () => {
    const foreign = temporaryFolder()
    await mkdir(join(foreign, 'empty'))
    await startService({ store: `sqlite:${foreign}/there.db` }).then(({ service }) => service.close(0))
    await chmod(foreign, 0o755)
    for (const file of ['there.db', 'empty/missing.db']) {
      // The user that is called nobody.
      const report = await spawned({ COUNTERSIGN_STORE: `sqlite:${foreign}/${file}` }, { uid: 65_534 })
      expectOneProblem(report, 'store', /EACCES: permission denied/, /Repair that or name another file/)
    }
  })

  test.each([
    ['says nothing', undefined],
    ['speaks HTTP', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi'],
    ['does not speak HTTP', 'SSH-2.0-x\r\n'],
  ])('whose port another program has, which %s', async (_, answer) => {
    const port = await startServer(answer)
    expectOneProblem(
      await doctor({ PORT: String(port) }),
      'port',
      new RegExp(`port ${port} on localhost is in use by another program`),
      /^Stop it, or set another port \(PORT\)/,
    )
  })

  test('whose variable is misspelt is warned of', async () => {
    const report = await doctor({ COUNTERSIGN_PUBLIK_URL: 'https://auth.example' })
    expect(faults(report)).toEqual([
      'warning of configuration: Unknown setting COUNTERSIGN_PUBLIK_URL > Did you mean COUNTERSIGN_PUBLIC_URL?',
    ])
    expect(report.code).toBe(0)
  })

  test('whose proxy is trusted although there is none, so that clients can forge what proxies say', async () => {
    const port = await freePort()
    await startService({ port, host: 'localhost', trustProxy: 1 })
    const env = { PORT: String(port), COUNTERSIGN_TRUST_PROXY: '1', COUNTERSIGN_PUBLIC_URL: `http://localhost:${port}` }
    expectOneProblem(await doctor(env), 'forwarded headers', /believes the X-Forwarded-Host/, /COUNTERSIGN_TRUST_PROXY/)
  })
})

describe('the public address', () => {
  /** A service, and the environment of the command for it behind a public address. */
  async function startBehind(publicPort: number) {
    const port = await freePort()
    await startService({ port, host: 'localhost' })
    return { PORT: String(port), COUNTERSIGN_PUBLIC_URL: `http://localhost:${publicPort}` }
  }

  test('is that of a proxy that does not reach the service', async () => {
    const proxy = await startServer('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    const env = await startBehind(proxy)
    const report = await doctor(env)
    expectOneProblem(
      report,
      'public url',
      /does not reach the service \(status 502\)/,
      new RegExp(`localhost:${env.PORT}`),
    )
    // As long as no service runs, that is no fault of the proxy.
    expect((await doctor({ COUNTERSIGN_PUBLIC_URL: env.COUNTERSIGN_PUBLIC_URL })).code).toBe(0)
  })

  test('is that of something else', async () => {
    const other = await startServer('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi')
    const report = await doctor(await startBehind(other))
    expectOneProblem(report, 'public url', /something else than Countersign answers/, /COUNTERSIGN_PUBLIC_URL/)
  })

  test('cannot be reached though the service runs', async () => {
    const report = await doctor(await startBehind(await freePort()))
    expectOneProblem(report, 'public url', /cannot be reached from here: .*ECONNREFUSED/, /Start the proxy/)
  })

  test('has a name without an address', async () => {
    const report = await doctor({
      COUNTERSIGN_PUBLIC_URL: 'https://auth.exmaple.invalid',
      COUNTERSIGN_SECRET: secret,
    })
    expectOneProblem(report, 'public url', /^auth\.exmaple\.invalid has no address in the DNS$/, /Check the spelling/)
  })

  test('leads to a service with another base path', async () => {
    const port = await freePort()
    await startService({ port, host: 'localhost', basePath: '/auth' })
    expectOneProblem(
      await doctor({ PORT: String(port) }),
      'port',
      /has nothing at \/api\/auth/,
      /COUNTERSIGN_BASE_PATH/,
    )
  })

  test('is not known before the start if the port is picked then', async () => {
    const report = await doctor({ PORT: '0' })
    expect(report.results.find(({ check }) => check === 'public url')).toMatchObject({
      status: 'skipped',
      saw: expect.stringContaining('its port is picked at each start'),
    })
    expect(report.code).toBe(0)
  })

  test('is in the local network with --lan', async () => {
    const port = await freePort()
    const report = await doctor({ PORT: String(port) }, ['--lan'])
    const [host] = lanHosts()
    const saw = host === undefined ? '--lan needs a network' : `people reach the service at http://${host}:${port}`
    expect(report.results[1]?.saw).toContain(saw)
  })

  test('is warned of if it is http for others', async () => {
    const report = await doctor({ COUNTERSIGN_PUBLIC_URL: 'http://auth.invalid' })
    expect(faults(report)).toEqual([expect.stringMatching(/^warning of configuration: .*without TLS/)])
  })
})

test('compare on a public address is warned of, and its default there is not', async () => {
  const env = { COUNTERSIGN_PUBLIC_URL: 'https://auth.invalid' }
  expect(faults(await doctor(env))).toEqual([])
  expect(faults(await doctor({ ...env, COUNTERSIGN_CONFIRMATION_CODE: 'compare' }))).toEqual([
    expect.stringMatching(/^warning of configuration: .*is compare, which stops no relayed order, at https:/),
  ])
})

test('origins that the settings leave out are a problem even before the start', async () => {
  const env = { COUNTERSIGN_PUBLIC_URL: 'https://auth.invalid', COUNTERSIGN_TRUSTED_ORIGINS: 'https://app.example' }
  expectOneProblem(
    await doctor(env),
    'origins',
    /pages of https:\/\/auth\.invalid may not/,
    /COUNTERSIGN_TRUSTED_ORIGINS/,
    'left out',
  )
  expect(faults(await doctor({ ...env, COUNTERSIGN_PAGES: 'off' }))).toEqual([])
})

describe('the origin of a page that is to sign users in', () => {
  const app = 'https://app.example'
  const untrusted = [
    /pages of https:\/\/app\.example may not sign users in$/,
    /Add https:\/\/app\.example to COUNTERSIGN_TRUSTED_ORIGINS\./,
  ] as const

  test('is a problem if the running service does not trust it', async () => {
    const port = await freePort()
    const env = { PORT: String(port), COUNTERSIGN_TRUSTED_ORIGINS: `http://localhost:${port}` }
    await startService({ port, host: 'localhost', trustedOrigins: [env.COUNTERSIGN_TRUSTED_ORIGINS] })
    expectOneProblem(await doctor(env, ['--origin', app]), 'origins', ...untrusted)
    expect((await doctor(env, [`--origin=${env.COUNTERSIGN_TRUSTED_ORIGINS}`])).code).toBe(0)
    const changed = { ...env, COUNTERSIGN_TRUSTED_ORIGINS: `${env.COUNTERSIGN_TRUSTED_ORIGINS},${app}` }
    const restart = await doctor(changed, ['--origin', app])
    expect(faults(restart)).toEqual([
      expect.stringMatching(/^warning of origins: https:\/\/app\.example .*> Restart the service/),
    ])
  })

  test('is judged by the settings before the start', async () => {
    const env = { COUNTERSIGN_PUBLIC_URL: 'https://auth.invalid' }
    expectOneProblem(await doctor(env, ['--origin', app]), 'origins', ...untrusted)
    expectOneProblem(
      await doctor(env, ['--origin', 'http://localhost:8080']),
      'origins',
      /localhost:8080 may not/,
      /Add/,
    )
    const trusting = { ...env, COUNTERSIGN_TRUSTED_ORIGINS: `${env.COUNTERSIGN_PUBLIC_URL},${app}` }
    expect(faults(await doctor(trusting, ['--origin', app]))).toEqual([])
    const port = String(await freePort())
    expect((await doctor({ PORT: port }, ['--origin', `http://127.0.0.1:${port}`])).code).toBe(0)
    expectOneProblem(
      await doctor({ PORT: port }, ['--origin', 'http://127.0.0.1:1']),
      'origins',
      /127\.0\.0\.1:1 may/,
      /Add/,
    )
  })
})

test.skipIf(!hasPart('openssl'))(
  'a service that speaks TLS on its port runs there, whatever its certificate is for',
  async () => {
    const authority = await Authority.create(folder, `authority-${crypto.randomUUID()}`)
    const { cert, key } = await authority.issue('auth.example', 60)
    const { service } = await startService({ publicUrl: 'https://auth.invalid' })
    const server = https.createServer({ cert: await readFile(cert), key: await readFile(key) }, service.handler)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const report = await doctor({
      PORT: String(port),
      HOST: '127.0.0.1',
      COUNTERSIGN_PUBLIC_URL: 'https://auth.invalid',
    })
    expect(report.results.find(({ check }) => check === 'port')).toMatchObject({
      status: 'ok',
      saw: `Countersign runs here, on port ${port} of 127.0.0.1`,
    })
  },
)

describe.skipIf(!hasPart('openssl'))('files for TLS to Redis', () => {
  test.each([
    ['are good', 60, 'own', []],
    ['end soon', 2, 'own', [/^warning of redis tls: .*\(COUNTERSIGN_REDIS_TLS_CERT\) is good until .* > Renew it/]],
    ['have ended', -1, 'own', [/^problem of redis tls: .*expired on .* > Renew it/]],
    ['do not fit', 60, 'foreign', [/^problem of redis tls: redis\.tlsKey \(COUNTERSIGN_REDIS_TLS_KEY\) must be/]],
    ['are missing', 60, 'missing', [/^problem of redis tls: redis\.tlsKey .*ENOENT/]],
  ])('that %s', async (_, days, whose, expected) => {
    const authority = await Authority.create(folder, `redis-${crypto.randomUUID()}`)
    const [own, foreign] = await Promise.all([authority.issue('client', days), authority.issue('client')])
    const report = await doctor({
      COUNTERSIGN_STORE: `rediss://127.0.0.1:${await freePort()}`,
      COUNTERSIGN_SECRET: secret,
      COUNTERSIGN_REDIS_TLS_CERT: own.cert,
      COUNTERSIGN_REDIS_TLS_KEY: { own: own.key, foreign: foreign.key }[whose] ?? join(folder, 'missing.key'),
    })
    // There is no such server, which counts only if the files are good.
    const found = faults(report).filter((fault) => !fault.startsWith('problem of store'))
    expect(found).toEqual(expected.map((pattern) => expect.stringMatching(pattern)))
    expect(report.code).toBe(1)
  })
})

describe.skipIf(!hasPart('openssl'))('the certificate of the port', () => {
  test.each([
    ['is good', 60, []],
    ['ends soon', 2, [/^warning of port tls: .*\(COUNTERSIGN_TLS_CERT\) is good until .* > Renew it/]],
    ['has ended', -1, [/^problem of port tls: .*\(COUNTERSIGN_TLS_CERT\) expired on .* > Renew it/]],
  ])('%s', async (_, days, expected) => {
    const authority = await Authority.create(folder, `port-${crypto.randomUUID()}`)
    const { cert, key } = await authority.issue('auth.example', days)
    const report = await doctor({ COUNTERSIGN_TLS_CERT: cert, COUNTERSIGN_TLS_KEY: key })
    const found = faults(report).filter((fault) => fault.includes('port tls'))
    expect(found).toEqual(expected.map((pattern) => expect.stringMatching(pattern)))
  })
})

test('expired rows that stay in SQLite while the service runs are named', async () => {
  const file = join(folder, `${crypto.randomUUID()}.db`)
  const { url, service } = await startService({ store: `sqlite:${file}` })
  const database = new DatabaseSync(file)
  database.exec(`
    CREATE TRIGGER kept BEFORE DELETE ON entries WHEN old.key = 'stays' BEGIN SELECT RAISE(ABORT, 'stays'); END;
    INSERT INTO entries (key, value, version, expires_at) VALUES ('stays', '', 1, ${Date.now() - 3 * 3_600_000});
  `)
  database.close()
  const env = { PORT: new URL(url).port, HOST: '127.0.0.1', COUNTERSIGN_STORE: `sqlite:${file}` }
  expect(faults(await doctor(env))).toEqual([
    expect.stringMatching(/^warning of disk: expired rows have been in \S+\.db for 3 hours > Look in the log/),
  ])
  await service.close(0)
  expect(faults(await doctor({ ...env, PORT: String(await freePort()) }))).toEqual([])
})

test('if everything hangs, it still comes to an end', { timeout: 20_000 }, async () => {
  const port = await startServer()
  const env = {
    PORT: String(port),
    COUNTERSIGN_STORE: `redis://127.0.0.1:${port}`,
    COUNTERSIGN_SECRET: secret,
    COUNTERSIGN_PUBLIC_URL: `https://localhost:${port}`,
  }
  const report = await spawned(env)
  expect(report.code).toBe(1)
  const problems = report.results.filter(({ status }) => status === 'problem')
  expect(problems.map(({ check }) => check)).toEqual(['store', 'port'])
})

describe.skipIf(!hasPart('redis-server'))('a setup with Redis', () => {
  const persistent = ['--appendonly', 'yes']
  const on = (store: string) => ({ COUNTERSIGN_STORE: store, COUNTERSIGN_SECRET: secret })

  test('a Redis that evicts is a problem', async () => {
    const evicting = ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru']
    await using redis = await RedisServer.start(...persistent, ...evicting)
    const report = await doctor(on(redis.url))
    expectOneProblem(report, 'redis', /maxmemory-policy is allkeys-lru/, /Set maxmemory-policy to noeviction/)
  })

  test('a Redis that is too old is a problem', async () => {
    await using redis = await RedisServer.start(...persistent)
    const proxy = await startTcpProxy(redis.port)
    // There is no old one to install beside the new one.
    const version = /\b7\.\d+\.\d+\b/g
    proxy.answer = (chunk) => Buffer.from(chunk.toString('latin1').replace(version, asOld), 'latin1')
    const report = await doctor(on(`redis://127.0.0.1:${proxy.port}`))
    expectOneProblem(report, 'store', /is Redis 6\.[\d.]+, and .* needs Redis 7/, /COUNTERSIGN_STORE/)
  })

  test('whose clock is off', async () => {
    await using redis = await RedisServer.start(...persistent)
    const proxy = await startTcpProxy(redis.port)
    proxy.answer = clockAhead(-90)
    const report = await doctor(on(`redis://127.0.0.1:${proxy.port}`))
    expectOneProblem(report, 'clock', /the clock of Redis is (89|90|91)\.\d seconds behind/, /time server/)
  })

  test('a Redis Cluster is checked on each node', async () => {
    const evicting = ['--cluster-enabled', 'yes', '--maxmemory-policy', 'allkeys-lru']
    await using node = await RedisServer.start(...persistent, ...evicting)
    await node.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await expect.poll(() => node.cli('CLUSTER', 'INFO'), { timeout: 15_000 }).toContain('cluster_state:ok')
    const env = on(`redis+cluster://127.0.0.1:${node.port}`)
    expect(faults(await doctor(env))).toEqual([expect.stringMatching(/^warning of redis: .*allkeys-lru/)])
    await node.cli('CONFIG', 'SET', 'maxmemory', '100mb')
    expectOneProblem(await doctor(env), 'redis', /allkeys-lru/, /noeviction/)
  })

  test('a Redis that lacks a secret is a problem', async () => {
    await using redis = await RedisServer.start(...persistent)
    const report = await doctor({ COUNTERSIGN_STORE: redis.url })
    expectOneProblem(report, 'configuration', /COUNTERSIGN_SECRET\) is not set/, /openssl rand/)
  })

  test('a store in Redis that keeps nothing, or would evict if it had a bound, is warned of', async () => {
    await using redis = await RedisServer.start('--maxmemory-policy', 'volatile-ttl')
    expect(faults(await doctor(on(redis.url)))).toEqual([
      expect.stringMatching(/^warning of redis: .*volatile-ttl, though it has no maxmemory yet/),
      expect.stringMatching(/^warning of redis: .*its restart signs all users out/),
    ])
  })

  test('never shows a password or a secret in any failure', async () => {
    await using redis = await RedisServer.start(...persistent, '--requirepass', 'hunter2')
    const at = `127.0.0.1:${redis.port}`
    const stores = [
      `redis://:hunter2@${at}`,
      `redis://:hunter2x@${at}`,
      `redis://:hunter2@${at}/99`,
      'redys://:hunter2@x',
    ]
    for (const store of [...stores, `redis://:hunter2@[${at}`]) {
      const env = { COUNTERSIGN_STORE: store, COUNTERSIGN_SECRET: `${secret}, another secret which is long enough` }
      for (const args of [[], ['--json']]) {
        const [code, stdout] = await run(env, args)
        expect(code).toBe(store === stores[0] ? 0 : 1)
        expect(stdout).not.toMatch(/hunter2|which is long|for nothing else/)
      }
    }
    const [, stdout] = await run({ COUNTERSIGN_PUBLIC_URL: 'https://user:hunter2@auth.example' })
    expect(stdout).toContain('auth.example')
    expect(stdout).not.toContain('hunter2')
  })

  test('whose running service is not ready', async () => {
    await using redis = await RedisServer.start()
    const port = await freePort()
    await startService({ port, host: 'localhost', store: redis.url, secret })
    await redis.kill()
    expectOneProblem(await doctor({ PORT: String(port) }), 'readiness', /not ready/, /store unavailable/)
  })

  test('a store in Redis that is in use is left as it was', async () => {
    await using redis = await RedisServer.start(...persistent)
    await redis.cli('SET', 'countersign:session:x', 'y')
    expect((await doctor(on(redis.url))).code).toBe(0)
    expect(await redis.cli('KEYS', '*')).toBe('countersign:session:x')
  })
})

/** A version of the same length that is too old. */
function asOld(version: string): string {
  return `6${version.slice(1)}`
}

describe.skipIf(!hasPart('redis-server') || !hasPart('nginx') || !hasPart('openssl'))('behind nginx with TLS', () => {
  /** The ways to set nginx up, each at a port of its own. */
  const ways = ['good', 'bare', 'plain', 'untrusted', 'expired', 'foreign'] as const

  /** A service with Redis, behind nginx in all those ways, and the environment of both it and the command. */
  async function startAll(options: CountersignOptions = {}) {
    const redis = await RedisServer.start('--appendonly', 'yes')
    onTestFinished(() => redis[Symbol.asyncDispose]())
    const authority = await Authority.create(folder, `authority-${crypto.randomUUID()}`)
    const [valid, expired, foreign] = await Promise.all([
      authority.issue('localhost', 60),
      authority.issue('localhost', -1),
      authority.issue('auth.example', 60),
    ])
    const found = await Promise.all(ways.map(async (way) => [way, await freePort()] as const))
    const ports = Object.fromEntries(found) as Record<(typeof ways)[number], number>
    const upstream = await freePort()
    const trusted = (['good', 'bare', 'expired', 'foreign'] as const).map((name) => `https://localhost:${ports[name]}`)
    await startService({
      store: redis.url,
      secret,
      port: upstream,
      publicUrl: `https://localhost:${ports.good}`,
      trustedOrigins: trusted,
      trustProxy: 1,
      ...options,
    })
    const forwarding = `
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme;`
    const server = (port: number, { cert, key }: { cert: string; key: string }, headers = forwarding): string => `
      server {
        listen 127.0.0.1:${port} ssl;
        ssl_certificate ${cert};
        ssl_certificate_key ${key};
        location / { proxy_pass http://127.0.0.1:${upstream}; ${headers} }
      }`
    const servers = [
      server(ports.good, valid),
      server(ports.bare, valid, ''),
      server(ports.untrusted, valid),
      server(ports.expired, expired),
      server(ports.foreign, foreign),
      `server { listen 127.0.0.1:${ports.plain}; return 301 https://localhost:${ports.good}$request_uri; }`,
    ]
    await runNginx(ports.good, servers.join('\n'))
    const env = {
      PORT: String(upstream),
      HOST: '127.0.0.1',
      COUNTERSIGN_STORE: redis.url,
      COUNTERSIGN_SECRET: secret,
      COUNTERSIGN_TRUST_PROXY: '1',
      COUNTERSIGN_TRUSTED_ORIGINS: trusted.join(','),
      NODE_EXTRA_CA_CERTS: authority.cert,
    }
    const at = (port: number) => ({ ...env, COUNTERSIGN_PUBLIC_URL: `https://localhost:${port}` })
    return { env, ports, at }
  }

  test('a good setup is fit, and each fault is one problem', async () => {
    const { env, ports, at } = await startAll()
    const good = await spawned(at(ports.good))
    expect(faults(good)).toEqual([])
    expect(good.results.filter(({ status }) => status !== 'ok')).toEqual([])
    expect(good.results.map(({ check }) => check)).toEqual([
      'node',
      'configuration',
      'store',
      'redis',
      'clock',
      'people',
      'port',
      'https',
      'public url',
      'readiness',
      'forwarded headers',
      'origins',
    ])
    expect(good.code).toBe(0)

    const several = await spawned(at(ports.good), {
      args: (['bare', 'untrusted'] as const).flatMap((name) => ['--url', `https://localhost:${ports[name]}`]),
    })
    expect(faults(several)).toEqual([
      expect.stringMatching(
        new RegExp(
          `^problem of forwarded headers: .*:${ports.bare} reaches the service as one to http://127\\.0\\.0\\.1:${env.PORT} \\(read from the Host header\\) > Let the proxy send X-Forwarded-Host, X-Forwarded-Proto and X-Forwarded-For`,
        ),
      ),
      expect.stringMatching(
        new RegExp(
          `^problem of origins: .*:${ports.untrusted} may not sign users in, .*> Add https://localhost:${ports.untrusted} to COUNTERSIGN_TRUSTED_ORIGINS`,
        ),
      ),
    ])
    expect(several.code).toBe(1)
    expectOneProblem(
      await spawned({ ...env, COUNTERSIGN_PUBLIC_URL: `http://localhost:${ports.plain}` }),
      'public url',
      /redirects to https:/,
      new RegExp(`Set COUNTERSIGN_PUBLIC_URL to https://localhost:${ports.good}\\.`),
      'left out',
    )
    expectOneProblem(await spawned(at(ports.expired)), 'https', /expired on \d{4}-/, /Renew it/)
    expectOneProblem(await spawned(at(ports.foreign)), 'https', /another host name/, /certificate for this host name/)
    const { NODE_EXTRA_CA_CERTS: _, ...withoutAuthority } = at(ports.good)
    expectOneProblem(await spawned(withoutAuthority), 'https', /does not know the authority/, /NODE_EXTRA_CA_CERTS/)

    const node = ['--import', fileURLToPath(new URL('../support/shifted-clock.ts', import.meta.url))]
    const shifted = await spawned({ ...at(ports.good), CLOCK_AHEAD_MS: '90000' }, { node })
    expectOneProblem(
      shifted,
      'clock',
      /Redis is \S+ seconds behind .* the clock at https:\S+ is \S+ seconds behind/,
      /time server/,
    )

    const newer = {
      ...at(ports.good),
      COUNTERSIGN_TRUSTED_ORIGINS: `${at(ports.good).COUNTERSIGN_PUBLIC_URL},https://new.example`,
    }
    const restart = await spawned(newer)
    expect(faults(restart)).toEqual([
      expect.stringMatching(/^warning of origins: https:\/\/new\.example.*> Restart the service/),
    ])
  })
})
