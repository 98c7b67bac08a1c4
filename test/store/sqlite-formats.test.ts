import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { hasPart } from '../support/optional.ts'
import { rest } from '../support/rest.ts'
import { type ServiceProcess, spawnService } from '../support/service.ts'
import { formats, type Holdings, hasRowids, makeFile } from './formats.ts'

const folder = mkdtempSync(join(tmpdir(), 'countersign-formats-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
const newFile = (): string => join(folder, `store-${++files}.db`)

/** Today's service on a file, on a machine whose clock shows the second after the file was made. */
function serve(file: string, { madeAt }: Holdings): Promise<ServiceProcess> {
  return spawnService({
    COUNTERSIGN_STORE: `sqlite:${file}`,
    COUNTERSIGN_APP_NAME: 'Example',
    COUNTERSIGN_TRUSTED_ORIGINS: 'https://app.example',
    NODE_OPTIONS: `--import=${new URL('../support/shifted-clock.ts', import.meta.url).href}`,
    CLOCK_AHEAD_MS: String(madeAt + 1000 - Date.now()),
  })
}

const origin = { origin: 'https://app.example' }

describe.each(formats)('a file of the format "%s"', (format) => {
  test('keeps its users, sessions, nonces and orders under the service of today', async () => {
    const file = newFile()
    const held = makeFile(file, format)
    const { userId, address, token, signIn, approved, waiting } = held
    const service = await serve(file, held)
    const call = (path: string, body?: object, headers = {}) => rest(service.url, path, body, { ...origin, ...headers })
    const ofUser = { status: 200, json: { session: { userId, address } } }
    expect(await call('/session', undefined, { authorization: `Bearer ${token}` })).toMatchObject(ofUser)
    expect(await call('/wallet/verify', signIn)).toMatchObject(ofUser)
    expect(await call('/wallet/verify', signIn)).toMatchObject({ status: 401, json: { code: 'NONCE_NOT_FOUND' } })
    expect(await call('/cross-device/finalize', approved)).toMatchObject(ofUser)
    expect(await call('/cross-device/approve', waiting.approval)).toMatchObject({ status: 200 })
    const { orderId, desktopToken } = waiting
    expect(await call('/cross-device/finalize', { orderId, desktopToken })).toMatchObject(ofUser)
    const { json } = await call('/sessions', undefined, { authorization: `Bearer ${token}` })
    expect(json.sessions).toHaveLength(4)
    expect(await service.stop()).toBe(0)
    expect(hasRowids(file)).toBe(true)
  })

  test('is served by two processes that open it at once', async () => {
    const file = newFile()
    const held = makeFile(file, format)
    const services = await Promise.all([serve(file, held), serve(file, held)])
    for (const { url } of services) {
      const session = await rest(url, '/session', undefined, { authorization: `Bearer ${held.token}` })
      expect(session).toMatchObject({ status: 200, json: { session: { userId: held.userId } } })
    }
    expect(hasRowids(file)).toBe(true)
  })
})

const rowCount = 30_000

/** A file of the first format with values enough to be rebuilt for a while. */
function makeLargeFile(): string {
  const file = newFile()
  makeFile(file, 'first')
  const database = new DatabaseSync(file)
  database.exec('BEGIN')
  const insert = database.prepare('INSERT INTO entries VALUES (?, ?, 1, 9007199254740991)')
  for (let i = 0; i < rowCount; i++) insert.run(`row:${i}`, 'x'.repeat(500))
  database.exec('COMMIT')
  database.close()
  return file
}

function countRows(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
    return database.prepare("SELECT count(*) AS n FROM entries WHERE key LIKE 'row:%'").get()?.n
  } finally {
    database.close()
  }
}

const opener = fileURLToPath(new URL('./sqlite-process.ts', import.meta.url))

test('a process that is killed while it rebuilds a file leaves all of it to the next one', async () => {
  let hit = false
  // On a busy machine the kill can come too late.
  for (let attempt = 0; attempt < 10 && !hit; attempt++) {
    const file = makeLargeFile()
    const child = spawn(process.execPath, [opener, 'open-only', file], { stdio: 'ignore' })
    const exited = once(child, 'exit')
    // What does not fit into memory is written before the end of the transaction.
    while (child.exitCode === null && sizeOf(`${file}-wal`) < 1_000_000) await setImmediate()
    child.kill('SIGKILL')
    await exited
    hit = !hasRowids(file)
    if (!hit) continue
    const store = await openSqliteStore(file)
    expect(await store.get('row:1')).toEqual({ value: 'x'.repeat(500), version: 1 })
    await store.close()
    expect(countRows(file)).toBe(rowCount)
    expect(hasRowids(file)).toBe(true)
  }
  expect(hit).toBe(true)
})

test.skipIf(!hasPart('prlimit'))('a disk that gets full while a file is rebuilt costs nothing of it', async () => {
  const file = makeLargeFile()
  const child = promisify(execFile)('prlimit', ['--fsize=8000000:', process.execPath, opener, 'open-only', file])
  await expect(child).rejects.toMatchObject({
    stderr: expect.stringMatching(/StoreOpenError: Cannot open the store file .*(I\/O error|disk is full)/),
  })
  expect(countRows(file)).toBe(rowCount)
  expect(hasRowids(file)).toBe(false)
  await (await openSqliteStore(file)).close()
  expect(countRows(file)).toBe(rowCount)
  expect(hasRowids(file)).toBe(true)
})

test('a process of an older release that has the file open goes on after it was rebuilt', async () => {
  const file = newFile()
  makeFile(file, 'first')
  const older = new DatabaseSync(file)
  const read = older.prepare('SELECT value FROM entries WHERE key = ?')
  const secret = read.get('secret')
  const store = await openSqliteStore(file)
  await store.create('new', 'value', 'forever')
  expect(read.get('secret')).toEqual(secret)
  expect(read.get('new')).toEqual({ value: 'value' })
  older.prepare("INSERT INTO entries (key, value, version, expires_at) VALUES ('old', 'value', 1, ?)").run(9e15)
  expect(await store.get('old')).toEqual({ value: 'value', version: 1 })
  older.close()
  await store.close()
})

test('a file of a newer format is refused in one line and left as it was', async () => {
  const file = newFile()
  const database = new DatabaseSync(file)
  database.exec('CREATE TABLE t (c); PRAGMA application_id = 1129531214; PRAGMA user_version = 2')
  database.close()
  await expect(openSqliteStore(file)).rejects.toThrow(
    /^Cannot open the store file [^\n]* it has schema version 2 of a newer Countersign, and this one knows up to 1\. [^\n]*$/,
  )
  const after = new DatabaseSync(file)
  expect(after.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'delete' })
  expect(after.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 't' }])
  after.close()
})

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
