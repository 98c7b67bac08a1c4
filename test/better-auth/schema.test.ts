import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { betterAuth } from 'better-auth'
import { expect, test } from 'vitest'
import { crossDevice, walletSignIn } from '../../src/better-auth/index.ts'
import { run } from '../support/command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { approvedOrder, call } from './calls.ts'
import { makeAuth } from './support.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

test("Better Auth's own command line generates the schema", async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'schema.sql')
  const cli = fileURLToPath(new URL('./index.mjs', import.meta.resolve('auth/api')))
  const config = fileURLToPath(new URL('./schema-auth.ts', import.meta.url))
  const args = ['generate', '--config', config, '--output', file, '--yes']
  await run(process.execPath, [cli, ...args], {
    cwd: root,
    env: {
      ...process.env,
      BETTER_AUTH_TELEMETRY: '0',
      BETTER_AUTH_SECRET: 'a secret for tests, not for anything else',
    },
  })
  const schema = await readFile(file, 'utf8')
  const columnsOf = (table: string) =>
    [...(new RegExp(`create table "${table}" \\((.*)\\);`).exec(schema)?.[1] ?? '').matchAll(/"(\w+)" (\w+)/g)].map(
      ([, name, type]) => `${name} ${type}`,
    )
  expect(columnsOf('user')).toEqual(expect.arrayContaining(['walletAddress text', 'walletPublicKeyHex text']))
  expect(columnsOf('session')).toEqual(
    expect.arrayContaining([
      'walletAdapterId text',
      'walletSubject text',
      'walletPublicKeyHex text',
      'walletAddress text',
      'walletOrderId text',
      'walletComputerId text',
    ]),
  )
  expect(columnsOf('approvals')).toEqual([
    'id text',
    'orderId text',
    'kind text',
    'status text',
    'version integer',
    'record text',
    'createdAt date',
    'expiresAt date',
  ])
  expect(schema).toMatch(/"orderId" text not null unique/)
  expect(schema).toMatch(/create table "walletMark" .*"key" text not null unique/)

  // And the plugins run on the tables that it makes.
  const database = new DatabaseSync(':memory:')
  database.exec(schema)
  const storage = async () => ({ database })
  const auth = await makeAuth({ storage, orders: { orderModelName: 'approvals' } })
  expect((await call(auth, '/cross-device/finalize', await approvedOrder(auth))).status).toBe(200)
})

test.each(['a-b', '1a', '', 'o'.repeat(65)])('a model of orders cannot be called %j', (orderModelName) => {
  expect(() => crossDevice({ orderModelName })).toThrow(/^orderModelName must be a name of letters/)
})

test('a database that is not migrated is told of by name, with what to do', async () => {
  const database = new DatabaseSync(':memory:')
  const { $context } = await makeAuth({ storage: async () => ({ database }) })
  database.exec('alter table session drop column walletComputerId')
  const { options } = await $context
  const auth = betterAuth({ ...options, database })
  const missing = /Missing columns\s+session\.walletComputerId.*npx auth migrate/s
  await expect(call(auth, '/wallet/nonce', {})).rejects.toThrow(missing)
  await expect(call(auth, '/cross-device/start', { kind: 'login' })).rejects.toThrow(missing)
})

test('the fields of the user are there only where an option fills them', () => {
  expect(walletSignIn().schema.user.fields).toEqual({})
  expect(Object.keys(walletSignIn({ syncAddressToUser: true }).schema.user.fields)).toEqual(['walletAddress'])
})

test.each([
  [{ nonceTtlSeconds: 0 }, /nonceTtlSeconds/],
  [{ appName: 'a\nb' }, /appName/],
  [{ endpointPrefix: 'wallet' }, /endpointPrefix/],
  [{ adapters: ['nobody'] }, /nobody/],
  [{ enforceOrigins: true }, /enforceOrigins/],
])('an option that does not fit stops the start: %o', (options, message) => {
  expect(() => walletSignIn(options as never)).toThrow(message)
})
