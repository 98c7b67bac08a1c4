import { mkdtempSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { hasPart } from './optional.ts'
import { onPostgres, ordinaryStore } from './ordinary-store.ts'
import { PostgresServer } from './postgres-server.ts'
import { RedisServer } from './redis-server.ts'

/** A kind of store that everything has to work on. */
export interface StoreKind {
  readonly name: string
  /** Options that select it. */
  open(): Promise<CountersignOptions>
}

let folder: string | undefined
let files = 0
afterAll(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
})

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
      { name: 'SQLite', open: async () => ({ store: newFile() }) },
      ...(redisUrl === undefined ? [] : [{ name: 'Redis', open: async () => ({ store: await redisUrl(), secret }) }]),
    ]

/** Addresses of stores that can be opened more than once. */
export const sharedStores: readonly (readonly [name: string, open: () => Promise<string>])[] = [
  [
    'one SQLite file',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'countersign-shared-'))
      onTestFinished(() => rm(folder, { recursive: true, force: true }))
      return `sqlite:${join(folder, 'shared.db')}`
    },
  ],
  ...(redisUrl === undefined ? [] : [['one Redis', redisUrl] as const]),
  ...(postgresUrl === undefined ? [] : [['one PostgreSQL', postgresUrl] as const]),
]

/** The address of a SQLite file, in a folder that goes when the test file ends. */
function newFile(): string {
  folder ??= mkdtempSync(join(tmpdir(), 'countersign-stores-'))
  return `sqlite:${join(folder, `${++files}.db`)}`
}

function findRedis(): (() => Promise<string>) | undefined {
  if (process.env.TEST_STORES === 'sqlite') return undefined
  const given = process.env.REDIS_URL
  if (given !== undefined && given !== '') return async () => given
  if (!hasPart('redis-server')) return undefined
  let running: Promise<RedisServer> | undefined
  afterAll(async () => await (await running)?.[Symbol.asyncDispose]())
  return async () => {
    running ??= RedisServer.start()
    return (await running).url
  }
}

function findPostgres(): (() => Promise<string>) | undefined {
  if (process.env.TEST_STORES === 'sqlite' || !hasPart('postgresql')) return undefined
  let running: Promise<PostgresServer> | undefined
  afterAll(async () => await (await running)?.[Symbol.asyncDispose]())
  return async () => {
    running ??= PostgresServer.start()
    return (await running).url()
  }
}
