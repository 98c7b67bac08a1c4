import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { runCommand } from '../../src/commands/command.ts'
import { makeFile } from '../store/formats.ts'
import { endOf, type Ran, runHere } from '../support/command.ts'
import { makeComputer } from '../support/computer.ts'
import { hasPart } from '../support/optional.ts'
import { bearer, rest } from '../support/rest.ts'
import { type ServiceProcess, spawnService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { restJson, signIn, waitingOrder } from './calls.ts'

const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

let folder = ''
let store = ''
let copy = ''
beforeEach(async () => {
  folder = temporaryFolder()
  store = join(folder, 'store.db')
  copy = join(folder, 'copy.db')
})

/** Runs the command, on the test's store unless the arguments name one. */
async function run(args: readonly string[]): Promise<Ran> {
  const own = args.some((arg) => arg.startsWith('--store')) ? [] : ['--store', `sqlite:${store}`]
  return await runHere(runCommand, [...args, ...own])
}

/** Runs it as a process, in a program that runs programs, on the store that the variable names. */
async function spawned([program, ...wrapping]: readonly [string, ...string[]], args: readonly string[]): Promise<Ran> {
  const child = spawn(program, [...wrapping, process.execPath, mainFile, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, COUNTERSIGN_STORE: `sqlite:${store}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return await endOf(child)
}

function serve(environment: Record<string, string> = {}): Promise<ServiceProcess> {
  return spawnService({ COUNTERSIGN_STORE: `sqlite:${store}`, COUNTERSIGN_CONFIRMATION_CODE: 'return', ...environment })
}

const partials = (): string[] => readdirSync(folder).filter((name) => name.includes('.partial'))

describe('a backup', () => {
  test('a backup that is made while users sign in is whole: it has all users from before, and none by halves', async () => {
    const service = await serve()
    const wallets = Array.from({ length: 5 }, makeWallet)
    const before = await Promise.all(wallets.map((wallet) => signIn(service.url, wallet)))
    let goOn = true
    const load = Promise.all(
      wallets.map(async (wallet) => {
        let count = 0
        for (; goOn; count++) await signIn(service.url, wallet)
        return count
      }),
    )
    const umask = process.umask(0)
    const runs = []
    for (const name of ['a.db', 'b.db', 'c.db']) runs.push(await run(['backup', join(folder, name)]))
    process.umask(umask)
    goOn = false
    for (const count of await load) expect(count).toBeGreaterThan(0)
    for (const { code, stdout, stderr } of runs) {
      expect(stdout).toMatch(/^\S+ is a complete copy of \S+store\.db, with its secret: [\d,]+ bytes, checked\n$/)
      expect([code, stderr]).toEqual([0, ''])
    }
    expect(statSync(join(folder, 'c.db')).mode & 0o777).toBe(0o600)
    expect(partials()).toEqual([])
    expect(await service.stop()).toBe(0)

    expect(await run(['restore', join(folder, 'c.db'), '--keep-sessions'])).toMatchObject({ code: 0, stderr: '' })
    const restored = await serve()
    for (const { token, session } of before) {
      const { sessions } = await restJson(restored.url, '/sessions', undefined, bearer(token))
      expect(sessions.map(({ id }: { id: string }) => id)).toContain(session.id)
      for (const { userId } of sessions) expect(userId).toBe(session.userId)
    }
  })

  test('a folder that is missing is named in one line', async () => {
    makeFile(store, '0.1.0')
    const missing = join(dirname(copy), 'missing')
    expect(await run(['backup', join(missing, 'copy.db')])).toEqual({
      code: 1,
      stdout: '',
      stderr: `countersign: There is no folder ${missing}. Create it first\n`,
    })
  })

  test('takes the place of a former one only with --force', async () => {
    makeFile(store, '0.1.0')
    expect(await run(['backup', copy])).toMatchObject({ code: 0 })
    const former = readFileSync(copy)
    const refused = await run(['backup', copy])
    expect(refused).toEqual({
      code: 1,
      stdout: '',
      stderr: `countersign: ${copy} already exists. Choose another name or add --force\n`,
    })
    expect(readFileSync(copy).equals(former)).toBe(true)
    expect(await run(['backup', copy, '--force'])).toMatchObject({ code: 0, stderr: '' })
    expect(partials()).toEqual([])
  })

  test('does not take the place of the store itself, under any name of it', async () => {
    makeFile(store, '0.1.0')
    for (const command of ['backup', 'restore']) {
      const { code, stderr } = await run([
        command,
        `${folder}/./store.db`,
        ...(command === 'backup' ? ['--force'] : []),
      ])
      expect(stderr).toMatch(/^countersign: \S+store\.db is the store itself; name [^\n]+\n$/)
      expect(code).toBe(1)
    }
  })

  test('of a store without a secret does not speak of one', async () => {
    const service = await serve({ COUNTERSIGN_SECRET: 'a secret for tests and for nothing else' })
    const { code, stdout } = await run(['backup', copy])
    expect(code).toBe(0)
    expect(stdout).not.toContain('secret')
    expect(await service.stop()).toBe(0)
  })

  test.skipIf(!hasPart('prlimit'))('for which there is no room leaves the former one and no other file', async () => {
    makeFile(store, '0.1.0')
    expect(await run(['backup', copy])).toMatchObject({ code: 0 })
    const former = readFileSync(copy)
    const { code, stderr } = await spawned(['prlimit', '--fsize=8192:'], ['backup', './copy.db', '--force'])
    expect(stderr).toMatch(/^countersign: Cannot copy \S+store\.db to \S+copy\.db: [^\n]+\n$/)
    expect(code).toBe(1)
    expect(readFileSync(copy).equals(former)).toBe(true)
    expect(partials()).toEqual([])
  })
})

describe('a restored store', () => {
  test('has its users, no session, no known computer, and nothing that could be used a second time', async () => {
    const wallet = makeWallet()
    const service = await serve()
    const { token, session } = await signIn(service.url, wallet)
    const computer = await makeComputer()
    const known = await waitingOrder(service.url, wallet, { computerKey: computer.key })
    const { returnCode } = await restJson(service.url, '/cross-device/approve', known.approval)
    const finalized = { ...known.holder, returnCode, computerProof: await computer.prove(known.holder) }
    const byOrder = await restJson(service.url, '/cross-device/finalize', finalized)
    expect((await restJson(service.url, '/computers', undefined, bearer(token))).computers).toHaveLength(1)
    const nonce = proofOf(wallet, await restJson(service.url, '/wallet/nonce', {}))
    const order = await waitingOrder(service.url, wallet)
    expect(await run(['backup', copy])).toMatchObject({ code: 0 })
    // After the copy was made.
    await restJson(service.url, '/wallet/verify', nonce)
    await restJson(service.url, '/cross-device/cancel', order.holder)
    await restJson(service.url, '/sign-out', {}, bearer(token))
    expect(await service.stop()).toBe(0)

    const { code, stdout, stderr } = await run(['restore', copy])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^\S+ is restored from \S+: all sessions have ended; what it was before is in \S+\n$/)
    expect(statSync(store).mode & 0o777).toBe(0o600)
    const { url } = await serve()
    for (const old of [token, byOrder.token]) {
      expect(await rest(url, '/session', undefined, bearer(old))).toMatchObject({ status: 401 })
    }
    expect(await rest(url, '/wallet/verify', nonce)).toMatchObject({ status: 401, json: { code: 'NONCE_NOT_FOUND' } })
    for (const [path, body] of [
      ['approve', order.approval],
      ['finalize', finalized],
    ] as const) {
      const answer = await rest(url, `/cross-device/${path}`, body)
      expect(answer).toMatchObject({ status: 404, json: { code: 'ORDER_NOT_FOUND' } })
    }
    const again = await signIn(url, wallet)
    expect(again.session.userId).toBe(session.userId)
    expect((await restJson(url, '/computers', undefined, bearer(again.token))).computers).toEqual([])
  })

  test('ends the sessions of every service that shares the file', async () => {
    const staging = { COUNTERSIGN_KEY_PREFIX: 'staging', COUNTERSIGN_ADDRESS_TTL_SECONDS: '3600' }
    const service = await serve(staging)
    const { token } = await signIn(service.url, makeWallet())
    expect((await run(['backup', copy])).stdout).toContain('with its secret')
    expect(await service.stop()).toBe(0)
    expect(readFileSync(copy).includes('session-address:')).toBe(true)
    expect(await run(['restore', copy])).toMatchObject({ code: 0 })
    expect(readFileSync(store).includes('session-address:')).toBe(false)
    const { url } = await serve(staging)
    expect(await rest(url, '/session', undefined, bearer(token))).toMatchObject({ status: 401 })
  })

  test('drops inboxes: their orders may have been answered since', async () => {
    const startKey = 'a-start-key-of-thirty-two-characters-or-more'
    const keyed = { COUNTERSIGN_ORDER_START_KEYS: startKey }
    const service = await serve(keyed)
    const wallet = makeWallet()
    const { session, token } = await signIn(service.url, wallet)
    const order = { kind: 'sign', payload: '{}', inboxUserId: session.userId, requester: { origin: service.url } }
    await restJson(service.url, '/cross-device/start', order, bearer(startKey))
    expect((await restJson(service.url, '/inbox/orders', undefined, bearer(token))).orders).toHaveLength(1)
    await run(['backup', copy])
    expect(await service.stop()).toBe(0)
    await run(['restore', copy, '--keep-sessions'])
    const { url } = await serve(keyed)
    expect((await restJson(url, '/inbox/orders', undefined, bearer(token))).orders).toEqual([])
  })

  test('leaves no trace of what was dropped in the file', async () => {
    const { userId } = makeFile(store, '0.1.0')
    await run(['backup', copy])
    expect(readFileSync(copy).includes('csd_') || readFileSync(copy).includes('"desktopTokenHash"')).toBe(true)
    await run(['restore', copy])
    const bytes = readFileSync(store)
    expect(bytes.includes(userId)).toBe(true)
    expect(bytes.includes('"tokenHash"')).toBe(false)
    expect(bytes.includes('"desktopTokenHash"')).toBe(false)
  })

  test('is kept beside the one before it, with all that was in that', async () => {
    const wallet = makeWallet()
    makeFile(store, '0.1.0')
    await run(['backup', copy])
    const service = await serve()
    const { session } = await signIn(service.url, wallet)
    // Its last writes are in the files beside the store.
    await service.stop('SIGKILL')
    const { stdout } = await run(['restore', copy])
    const [, aside = ''] = / is in (\S+)\n$/.exec(stdout) ?? []
    const database = new DatabaseSync(aside, { readOnly: true })
    expect(database.prepare('SELECT 1 AS one FROM entries WHERE key = ?').get(`user:${session.userId}`)).toEqual({
      one: 1,
    })
    database.close()
    expect(statSync(aside).mode & 0o777).toBe(0o600)
    expect(existsSync(`${store}-wal`)).toBe(false)
  })

  test('can be put where there was none', async () => {
    makeFile(copy, '0.1.0')
    const { code, stdout } = await run(['restore', copy])
    expect(stdout).toMatch(/: all sessions have ended\n$/)
    expect([code, existsSync(store)]).toEqual([0, true])
  })
})

describe('a restore is refused, and changes nothing,', () => {
  test('while a service has the store open, which goes on', async () => {
    const service = await serve()
    const { token } = await signIn(service.url, makeWallet())
    await run(['backup', copy])
    expect(await run(['restore', copy])).toEqual({
      code: 1,
      stdout: '',
      stderr: `countersign: Cannot replace ${store}: it is open: stop the service, and all else that uses it\n`,
    })
    await restJson(service.url, '/session', undefined, bearer(token))
    await signIn(service.url, makeWallet())
    expect(readdirSync(folder).sort()).toEqual(['copy.db', 'store.db', 'store.db-shm', 'store.db-wal'])
    expect(await service.stop()).toBe(0)
  })

  test.each<[string, () => void, RegExp]>([
    ['if there is no copy', () => {}, /There is no file \S+copy\.db/],
    ['from a file that is not a database', () => copyFileSync(mainFile, copy), /file is not a database/],
    ['from an empty file', () => new DatabaseSync(copy).exec('PRAGMA user_version = 0'), /it is empty|not a database/],
    ['from the database of another application', () => makeOther('CREATE TABLE t (c)'), /another application/],
    [
      'from a copy of a newer release',
      () => makeOther('CREATE TABLE t (c); PRAGMA application_id = 1129531214; PRAGMA user_version = 3'),
      /schema version 3 of a newer Countersign/,
    ],
    ['from half of a copy', () => makeHalf(), /malformed|damaged/],
  ])('%s', async (_, make, problem) => {
    makeFile(store, '0.1.0')
    const before = readFileSync(store)
    make()
    const { code, stdout, stderr } = await run(['restore', copy])
    expect(stderr).toMatch(problem)
    expect(stderr).toMatch(/^countersign: [^\n]+\n$/)
    expect([code, stdout]).toEqual([1, ''])
    expect(readFileSync(store).equals(before)).toBe(true)
    expect(partials()).toEqual([])
  })

  test('if there are remains of a store that is gone', async () => {
    makeFile(copy, '0.1.0')
    copyFileSync(mainFile, `${store}-wal`)
    const { code, stderr } = await run(['restore', copy])
    expect(stderr).toMatch(/^countersign: Cannot replace [^\n]+store\.db-wal is left of a store that is gone[^\n]+\n$/)
    expect([code, existsSync(store)]).toEqual([1, false])
  })

  function makeOther(sql: string): void {
    const database = new DatabaseSync(copy)
    database.exec(sql)
    database.close()
  }

  function makeHalf(): void {
    makeFile(copy, '0.1.0')
    truncateSync(copy, statSync(copy).size / 2)
  }
})

describe('wrong usage ends both with exit status 2 and one line', () => {
  test.each([
    [[], 'it takes one FILE'],
    [['a.db', 'b.db'], 'it takes one FILE'],
    [['a.db', '--stor', 'x'], 'unknown argument "--stor"'],
    [['a.db', '--store', 'sqlite::memory:'], 'the store is not an SQLite file'],
    [['a.db', '--store='], '--store is empty'],
    [['a.db', '--store', 'redis://user:password@localhost'], 'save Redis or PostgreSQL by its own means'],
  ])('%j', async (args, message) => {
    for (const command of ['backup', 'restore']) {
      const { code, stdout, stderr } = await run([command, ...args])
      expect(stderr).toMatch(/^countersign: [^\n]+\n$/)
      expect(stderr).toContain(message)
      expect(stderr).not.toContain('password')
      expect([code, stdout]).toEqual([2, ''])
    }
  })
})
