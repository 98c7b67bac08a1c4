import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { rest } from '../support/rest.ts'
import { type ServiceProcess, spawnService } from '../support/service.ts'
import { folderOfFile } from '../support/temporary-folder.ts'
import { formats, type Holdings, makeFile } from './formats.ts'

const folder = folderOfFile()

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
  })

  test('is served by two processes that open it at once', async () => {
    const file = newFile()
    const held = makeFile(file, format)
    const services = await Promise.all([serve(file, held), serve(file, held)])
    for (const { url } of services) {
      const session = await rest(url, '/session', undefined, { authorization: `Bearer ${held.token}` })
      expect(session).toMatchObject({ status: 200, json: { session: { userId: held.userId } } })
    }
  })
})

test.each([
  ['of a newer format', 3, /it has schema version 3 of a newer Countersign, and this one knows up to 2\./],
  ['of before the first release', 1, /it was written before version 0\.1\.0, so begin with an empty one\./],
])('a file %s is refused in one line and left as it was', async (_, version, problem) => {
  const file = newFile()
  const database = new DatabaseSync(file)
  database.exec(`CREATE TABLE t (c); PRAGMA application_id = 1129531214; PRAGMA user_version = ${version}`)
  database.close()
  const refusal = await openSqliteStore(file).catch((thrown: Error) => thrown)
  expect(String(refusal)).toMatch(problem)
  expect(String(refusal)).toMatch(/^StoreOpenError: Cannot open the store file [^\n]*$/)
  const after = new DatabaseSync(file)
  expect(after.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'delete' })
  expect(after.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 't' }])
  after.close()
})
