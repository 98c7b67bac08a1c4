import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { type BetterAuthOptions, betterAuth, type SecondaryStorage } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import { bearer } from 'better-auth/plugins'
import { onTestFinished } from 'vitest'
import {
  type CrossDeviceOptions,
  crossDevice,
  type WalletSignInOptions,
  walletSignIn,
} from '../../src/better-auth/index.ts'
import { redisUrl } from '../support/stores.ts'
import { openRedisStorage, type RedisKeys } from './redis-storage.ts'

/** Where a Better Auth server keeps its things. */
export type AuthStorage = () => Promise<Partial<BetterAuthOptions>>

const sqlite: AuthStorage = async () => ({ database: new DatabaseSync(':memory:') })

const memory: AuthStorage = async () => {
  const models = ['user', 'session', 'account', 'verification', 'walletMark', 'crossDeviceOrder']
  return { database: memoryAdapter(Object.fromEntries(models.map((model) => [model, []]))) }
}

/** Sessions and verification values in Redis, the rest in SQLite. */
const redis: AuthStorage = async () => ({ ...(await sqlite()), secondaryStorage: await redisStorage() })

/** As {@link redis}, with the sessions in the database, too. */
const redisAndDatabase: AuthStorage = async () => ({ ...(await redis()), session: { storeSessionInDatabase: true } })

/** Every kind of storage, and the ones with Redis where it is to be had. */
export const authStorages: [name: string, storage: AuthStorage][] = [
  ['SQLite', sqlite],
  ['the memory adapter', memory],
  ...(redisUrl === undefined
    ? []
    : ([
        ['Redis as secondary storage', redis],
        ['Redis as secondary storage of sessions in SQLite', redisAndDatabase],
      ] as [string, AuthStorage][])),
]

let storages = 0

/** A Redis, and the beginning of keys of its own. */
export async function redisKeys(): Promise<RedisKeys> {
  return { url: (await redisUrl?.()) ?? '', prefix: `better-auth-test:${process.pid}:${storages++}:` }
}

/** A secondary storage on a real Redis, under keys of its own. */
async function redisStorage(): Promise<SecondaryStorage> {
  return await openForTest(await redisKeys())
}

/** A secondary storage that is closed when the test is over. */
export async function openForTest(keys: RedisKeys): Promise<SecondaryStorage> {
  const { storage, close } = await openRedisStorage(keys)
  onTestFinished(close)
  return storage
}

/** What a test can set. */
export interface AuthServerOptions {
  readonly storage?: AuthStorage
  readonly wallet?: WalletSignInOptions
  readonly orders?: CrossDeviceOptions
  readonly auth?: Partial<BetterAuthOptions>
  /** Whether Better Auth's bearer plugin is in use; it is. */
  readonly bearer?: boolean
}

/** The plugins as the tests use them. */
function plugins(wallet: WalletSignInOptions, orders: CrossDeviceOptions) {
  return [
    walletSignIn({ appName: 'App', ...wallet }),
    crossDevice({ appName: 'App', ...orders }),
    bearer({ requireSignature: true }),
  ]
}

/** A Better Auth server with the plugins, without a port. */
export async function makeAuth(given: AuthServerOptions = {}) {
  const { storage = sqlite, wallet = {}, orders = {}, auth = {}, bearer: withBearer = true } = given
  const { plugins: more = [], ...rest } = auth
  const options = {
    ...(await storage()),
    baseURL: 'http://localhost:3000',
    secret: 'a secret for tests, not for anything else',
    logger: { disabled: true },
    ...rest,
    plugins: [...plugins(wallet, orders).filter(({ id }) => withBearer || id !== 'bearer'), ...more] as ReturnType<
      typeof plugins
    >,
  } satisfies BetterAuthOptions
  if (options.database instanceof DatabaseSync) {
    const { runMigrations } = await getMigrations(options)
    await runMigrations()
  }
  return betterAuth(options)
}

/** Such a server. */
export type Auth = Awaited<ReturnType<typeof makeAuth>>

/** A Better Auth server with the plugins on a port of its own, stopped when the test ends. */
export async function startAuth(
  options: AuthServerOptions = {},
): Promise<{ readonly url: string; readonly auth: Auth }> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://localhost:${(server.address() as AddressInfo).port}`
  const auth = await makeAuth({ ...options, auth: { baseURL: url, ...options.auth } })
  server.on('request', toNodeHandler(auth))
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return { url, auth }
}
