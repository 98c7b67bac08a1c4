import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CountersignOptions } from '../../src/service/config.ts'
import { onePerFile } from './file-end.ts'
import { hasPart } from './optional.ts'
import { onPostgres, ordinaryStore } from './ordinary-store.ts'
import { PostgresServer } from './postgres-server.ts'
import { RedisServer } from './redis-server.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A kind of store that everything has to work on. */
export interface StoreKind {
  readonly name: string
  /** Options that select it. */
  open(): Promise<CountersignOptions>
}

const ownFolder = onePerFile(() => mkdtempDisposable(join(tmpdir(), 'countersign-stores-')))
let files = 0

const secret = 'a secret for tests and for nothing else'

/**
 * The Redis to test with: that of REDIS_URL, or one of our own for this file; `undefined` when there is none to start,
 * or with TEST_STORES=sqlite.
 */
export const redisUrl: (() => Promise<string>) | undefined = findRedis()

/** The address of a PostgreSQL of our own for this file; `undefined` when there is none to start. */
const postgresUrl: (() => Promise<string>) | undefined = findPostgres()

/** A SQLite file always, and Redis where it is to be had; with TEST_STORES=postgresql, PostgreSQL alone. */
export const stores: StoreKind[] = onPostgres
  ? [{ name: 'PostgreSQL', open: ordinaryStore }]
  : [
      { name: 'SQLite', open: async () => ({ store: await newFile() }) },
      ...(redisUrl === undefined ? [] : [{ name: 'Redis', open: async () => ({ store: await redisUrl(), secret }) }]),
    ]

/** Addresses of stores that can be opened more than once. */
export const sharedStores: readonly (readonly [name: string, open: () => Promise<string>])[] = [
  [
    'one SQLite file',
    async () => {
      const folder = temporaryFolder()
      return `sqlite:${join(folder, 'shared.db')}`
    },
  ],
  ...(redisUrl === undefined ? [] : [['one Redis', redisUrl] as const]),
  ...(postgresUrl === undefined ? [] : [['one PostgreSQL', postgresUrl] as const]),
]

/** The address of a SQLite file, in a folder that goes when the test file ends. */
async function newFile(): Promise<string> {
  const { path } = await ownFolder()
  return `sqlite:${join(path, `${++files}.db`)}`
}

function findRedis(): (() => Promise<string>) | undefined {
  if (process.env.TEST_STORES === 'sqlite') return undefined
  const given = process.env.REDIS_URL
  if (given !== undefined && given !== '') return async () => given
  if (!hasPart('redis-server')) return undefined
  const server = onePerFile(() => RedisServer.start())
  return async () => (await server()).url
}

function findPostgres(): (() => Promise<string>) | undefined {
  if (process.env.TEST_STORES === 'sqlite' || !hasPart('postgresql')) return undefined
  const server = onePerFile(() => PostgresServer.start())
  return async () => (await server()).url()
}
