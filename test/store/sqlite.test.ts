import { once } from 'node:events'
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreOpenError } from '../../src/store/implementation.ts'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { run } from '../support/command.ts'
import { hasPart } from '../support/optional.ts'
import { rest } from '../support/rest.ts'
import { spawnService } from '../support/service.ts'
import { folderOfFile } from '../support/temporary-folder.ts'
import { describeStoreContract } from './contract.ts'
import { startChild } from './sqlite-child.ts'

const folder = folderOfFile()

let files = 0
function newFile(): string {
  return join(folder, `store-${++files}.db`)
}

describeStoreContract('SQLite in a file', async () => {
  const file = newFile()
  return [await openSqliteStore(file), await openSqliteStore(file)]
})

describeStoreContract('SQLite in a file, each step a transaction of its own', async () => {
  const file = newFile()
  const open = () => openSqliteStore(file, { stepsPerBatch: 1 })
  return [await open(), await open()]
})

describe('a SQLite store in a file', () => {
  it('has everything after a restart', async () => {
    const file = newFile()
    const before = await openSqliteStore(file)
    await before.create('a', 'one', 'forever')
    await before.compareAndSet('a', 1, 'two', { ttlMs: 60_000 })
    await before.addMember('set', 'm', 'forever')
    await before.close()
    const after = await openSqliteStore(file)
    expect(await after.get('a')).toEqual({ value: 'two', version: 2 })
    expect(await after.members('set')).toEqual(['m'])
    await after.close()
  })

  it('has everything after its process was killed', async () => {
    const file = newFile()
    const child = startChild('create-and-wait', file, 'a')
    await child.nextLine()
    child.kill('SIGKILL')
    await once(child, 'exit')
    const store = await openSqliteStore(file)
    expect(await store.get('a')).toEqual({ value: 'by the child', version: 1 })
    await store.close()
  })

  it('can be read by its owner only, with the files beside it', async () => {
    const umask = process.umask(0)
    const file = newFile()
    try {
      const store = await openSqliteStore(file)
      await store.create('a', 'one', 'forever')
      const own = readdirSync(folder).filter((name) => join(folder, name).startsWith(file))
      expect(own).toHaveLength(3)
      for (const name of own) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
      await store.close()
    } finally {
      process.umask(umask)
    }
  })

  it('is not shared and says where it is', async () => {
    const file = newFile()
    const store = await openSqliteStore(file)
    expect(store.shared).toBe(false)
    expect(store.description).toBe(`SQLite file ${file}`)
    await store.close()
  })

  it('gives each of 200 values to one of two processes', async () => {
    const file = newFile()
    const store = await openSqliteStore(file)
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}`)
    await Promise.all(keys.map((key) => store.create(key, 'a', 'forever')))
    const child = startChild('take-all', file, String(keys.length))
    await child.nextLine()
    child.stdin.write('go\n')
    const mine: string[] = []
    for (const key of keys) {
      if ((await store.take(key)) !== undefined) mine.push(key)
      await new Promise((resolve) => setImmediate(resolve))
    }
    const theirs: string[] = JSON.parse(await child.nextLine())
    expect([...mine, ...theirs].sort()).toEqual([...keys].sort())
    await store.close()
  })

  it('can be made by several processes at once', async () => {
    const file = newFile()
    const children = Array.from({ length: 3 }, (_, i) => startChild('create-and-wait', file, `k${i}`))
    await Promise.all(children.map((child) => child.nextLine()))
    const store = await openSqliteStore(file)
    for (const i of children.keys()) expect(await store.get(`k${i}`)).toEqual({ value: 'by the child', version: 1 })
    for (const child of children) child.kill()
    await store.close()
  })

  it('is unavailable, for a second, while another process keeps it locked', async () => {
    const file = newFile()
    const store = await openSqliteStore(file)
    await store.create('a', 'one', 'forever')
    const locker = new DatabaseSync(file)
    locker.exec('BEGIN IMMEDIATE')
    await expect(store.take('a')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE', retryAfterMs: 1000 })
    expect(await store.get('a')).toEqual({ value: 'one', version: 1 })
    locker.exec('ROLLBACK')
    locker.close()
    expect(await store.take('a')).toBe('one')
    await store.close()
  })
})

describe('a SQLite store that is asked whether it is well', () => {
  it('writes only until it has been seen to work again, and leaves nothing behind', async () => {
    const file = newFile()
    const store = await openSqliteStore(file)
    const other = new DatabaseSync(file)
    // Changes with each commit of another connection.
    const version = () => other.prepare('PRAGMA data_version').get()?.data_version
    const rows = () =>
      other.prepare('SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM members) AS n').get()?.n
    expect(rows()).toBe(0)
    const before = version()
    await store.ping()
    expect(version()).toBe(before)

    other.exec('BEGIN IMMEDIATE')
    await store.ping()
    await expect(store.take('a')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    await expect(store.ping()).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    await expect(store.ping()).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    other.exec('ROLLBACK')
    await store.ping()
    expect(rows()).toBe(0)
    const after = version()
    await store.ping()
    expect(version()).toBe(after)
    other.close()
    await store.close()
  })

  it('leaves its service alive while another process has the file locked: health checks are answered', async () => {
    const file = newFile()
    const service = await spawnService({ COUNTERSIGN_STORE: `sqlite:${file}` })
    const nonce = () => rest(service.url, '/wallet/nonce', {})
    const status = async (path: string) => (await fetch(`${service.url}${path}`)).status
    expect(await nonce()).toMatchObject({ status: 200 })
    const child = startChild('lock', file)
    expect(await child.nextLine()).toBe('locked')
    let isOver = false
    const nonces = Promise.all(Array.from({ length: 20 }, nonce)).finally(() => {
      isOver = true
    })
    for (let count = 0; count < 10; count++) expect([await status('/healthz'), isOver]).toEqual([200, false])
    expect(await nonces).toEqual(Array.from({ length: 20 }, () => expect.objectContaining({ status: 503 })))
    expect([await status('/healthz'), await status('/readyz')]).toEqual([200, 503])
    child.stdin.write('go\n')
    expect(await child.nextLine()).toBe('free')
    await expect.poll(() => status('/readyz')).toBe(200)
    expect(await nonce()).toMatchObject({ status: 200 })
    expect(await service.stop()).toBe(0)
  })

  it.each([
    ['is deleted', (file: string) => rmSync(file)],
    ['is deleted with the files beside it', (file: string) => ['', '-wal', '-shm'].map((end) => rmSync(file + end))],
    [
      'is replaced by a copy',
      (file: string) => {
        copyFileSync(file, `${file}.copy`)
        renameSync(`${file}.copy`, file)
      },
    ],
    ['loses its write-ahead log', (file: string) => rmSync(`${file}-wal`)],
  ])('makes its service unready and fails calls while its file %s, and says so once', async (_, breakDown) => {
    const file = newFile()
    const service = await spawnService({ COUNTERSIGN_STORE: `sqlite:${file}` })
    const nonce = () => rest(service.url, '/wallet/nonce', {})
    const readiness = async () => (await fetch(`${service.url}/readyz`)).status
    expect(await nonce()).toMatchObject({ status: 200 })
    breakDown(file)
    expect([await readiness(), await readiness()]).toEqual([503, 503])
    expect(await nonce()).toMatchObject({ status: 503, json: { code: 'STORE_UNAVAILABLE' } })
    expect(service.log().match(/"level":"error","text":"the store file [^"]* was deleted or replaced/g)).toHaveLength(1)
    expect(await service.stop()).toBe(0)
  })

  it('and whose file was moved away fails calls without being asked for its health, and heals when it is back', async () => {
    const file = newFile()
    const store = await openSqliteStore(file)
    renameSync(file, `${file}.away`)
    await new Promise((resolve) => setTimeout(resolve, 150))
    await expect(store.create('a', 'one', 'forever')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    await expect(store.get('a')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    renameSync(`${file}.away`, file)
    await store.ping()
    expect(await store.create('a', 'one', 'forever')).toBe(true)
    await store.close()
  })

  it('has a small write-ahead log again after a process has read for long', async () => {
    const file = newFile()
    const store = await openSqliteStore(file)
    const reader = new DatabaseSync(file)
    reader.exec('BEGIN; SELECT count(*) FROM entries')
    const value = 'x'.repeat(2000)
    for (let i = 0; i < 1500; i++) await store.create(`k${i}`, value, 'forever')
    const logSize = () => statSync(`${file}-wal`).size
    expect(logSize()).toBeGreaterThan(20_000_000)
    reader.exec('COMMIT')
    for (let i = 0; i < 3; i++) await store.take(`k${i}`)
    expect(logSize()).toBeLessThanOrEqual(8 * 2 ** 20)
    reader.close()
    await store.close()
  })

  it.skipIf(!hasPart('prlimit'))(
    'makes its service unready while its disk is full, until there is room again',
    async () => {
      const service = await spawnService({ COUNTERSIGN_STORE: `sqlite:${newFile()}` })
      const readiness = async () => (await fetch(`${service.url}/readyz`)).status
      const nonce = () => rest(service.url, '/wallet/nonce', {})
      expect(await readiness()).toBe(200)
      await limitFileSize(service.process.pid, '0:')
      expect(await nonce()).toMatchObject({ status: 503, json: { code: 'STORE_UNAVAILABLE' } })
      expect([await readiness(), await readiness()]).toEqual([503, 503])
      expect(service.log()).toMatch(/"text":"store unavailable".*"cause":"(disk I\/O error|database or disk is full)"/)
      await limitFileSize(service.process.pid, 'unlimited:')
      expect(await readiness()).toBe(200)
      expect(await nonce()).toMatchObject({ status: 200 })
      expect(await service.stop()).toBe(0)
    },
  )
})

async function limitFileSize(pid: number | undefined, limit: string): Promise<void> {
  await run('prlimit', ['--pid', String(pid), `--fsize=${limit}`])
}

describe('opening a SQLite store refuses, in one line that names the setting,', () => {
  it.each([
    ['a folder that is missing', () => join(folder, 'missing', 'store.db'), /no such file or directory/],
    [
      'a path that is a folder',
      () => {
        const path = newFile()
        mkdirSync(path)
        return path
      },
      /unable to open database file/,
    ],
    [
      'a file that is not a database',
      () => {
        const path = newFile()
        writeFileSync(path, 'something else, and rather long: '.repeat(100))
        return path
      },
      /not a database/,
    ],
    ['the database of another application', () => otherDatabase('CREATE TABLE notes (text)'), /another application/],
    [
      'a schema of a newer version',
      () => otherDatabase('CREATE TABLE t (c); PRAGMA application_id = 1129531214; PRAGMA user_version = 3'),
      /schema version 3 of a newer Countersign/,
    ],
  ])('%s', async (_, makePath, problem) => {
    const opening = openSqliteStore(makePath())
    await expect(opening).rejects.toThrow(StoreOpenError)
    await expect(opening).rejects.toThrow(problem)
    await expect(opening).rejects.toThrow(/^[^\n]*COUNTERSIGN_STORE[^\n]*$/)
  })

  it('a file that another process keeps locked', async () => {
    const file = newFile()
    await (await openSqliteStore(file)).close()
    const locker = new DatabaseSync(file)
    locker.exec('BEGIN IMMEDIATE')
    const opening = openSqliteStore(file)
    await expect(opening).rejects.toThrow(StoreOpenError)
    await expect(opening).rejects.toThrow(/^[^\n]*database is locked[^\n]*COUNTERSIGN_STORE[^\n]*$/)
    locker.close()
    await (await openSqliteStore(file)).close()
  })

  it.skipIf(!hasPart('prlimit'))('a file on a disk that is full', async () => {
    const file = newFile()
    await (await openSqliteStore(file)).close()
    const script = fileURLToPath(new URL('./sqlite-process.ts', import.meta.url))
    // Enough to open the file, and not to write the next few records.
    const child = run('prlimit', ['--fsize=40000:', process.execPath, script, 'open-only', file])
    await expect(child).rejects.toMatchObject({
      stderr: expect.stringMatching(
        /StoreOpenError: Cannot open the store file .*(I\/O error|disk is full).*COUNTERSIGN_STORE/,
      ),
    })
  })

  it('and leaves the database of another application as it was', async () => {
    const path = otherDatabase('CREATE TABLE notes (text)')
    await expect(openSqliteStore(path)).rejects.toThrow(StoreOpenError)
    const database = new DatabaseSync(path)
    expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'delete' })
    expect(database.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'notes' }])
    database.close()
  })

  function otherDatabase(sql: string): string {
    const path = newFile()
    const database = new DatabaseSync(path)
    database.exec(sql)
    database.close()
    return path
  }
})

describe('on a clock that stands still, a SQLite store', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
  afterEach(() => void vi.useRealTimers())

  it('shows a value up to the last millisecond of its life, and not in the next', async () => {
    const store = await openSqliteStore(newFile())
    await store.create('a', 'one', { ttlMs: 1000 })
    await store.addMember('set', 'm', { ttlMs: 1000 })
    vi.setSystemTime(Date.now() + 999)
    expect(await store.get('a')).toEqual({ value: 'one', version: 1 })
    expect(await store.create('a', 'two', 'forever')).toBe(false)
    expect(await store.members('set')).toEqual(['m'])
    vi.setSystemTime(Date.now() + 1)
    expect(await store.get('a')).toBeUndefined()
    expect(await store.compareAndSet('a', 1, 'two', 'forever')).toBe(false)
    expect(await store.take('a')).toBeUndefined()
    expect(await store.members('set')).toEqual([])
    expect(await store.create('a', 'two', 'forever')).toBe(true)
    await store.close()
  })

  it('removes what expired from a file, slice by slice, and nothing else', async () => {
    const file = newFile()
    const store = await openSqliteStore(file)
    for (let i = 0; i < 1000; i++) {
      await store.create(`over:${i}`, 'a', { ttlMs: 10 })
      await store.addMember('set', `over:${i}`, { ttlMs: 10 })
    }
    await store.create('lasting', 'a', { ttlMs: 3_600_000 })
    await store.create('forever', 'a', 'forever')
    await store.addMember('set', 'forever', 'forever')
    const database = new DatabaseSync(file)
    const rows = () => [
      database.prepare('SELECT count(*) AS n FROM entries').get()?.n,
      database.prepare('SELECT count(*) AS n FROM members').get()?.n,
    ]
    expect(rows()).toEqual([1002, 1001])
    vi.advanceTimersToNextTimer()
    expect(rows()).toEqual([802, 801])
    vi.advanceTimersByTime(1000)
    expect(rows()).toEqual([2, 1])
    // And it goes on.
    await store.create('again', 'a', { ttlMs: 10 })
    vi.advanceTimersByTime(60_000)
    expect(rows()).toEqual([2, 1])
    database.close()
    await store.close()
    expect(vi.getTimerCount()).toBe(0)
  })
})

it('an open SQLite store does not keep its process alive', async () => {
  const child = startChild('open-only', newFile())
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
})
