import { afterAll } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { PostgresServer } from './postgres-server.ts'

/** Whether the tests of this run are on PostgreSQL, for which the nightly run has a step. */
export const onPostgres = process.env.TEST_STORES === 'postgresql'

/** A store of its own that uses this process's clock, which tests can move, and answers at once. */
export const inMemory = { store: 'sqlite::memory:' } as const

let running: Promise<PostgresServer> | undefined
if (onPostgres) afterAll(async () => await (await running)?.[Symbol.asyncDispose]())
let databases = 0

/** The store of a service that is given none: memory or, with TEST_STORES=postgresql, a database of its own. */
export async function ordinaryStore(): Promise<CountersignOptions & { readonly store: string }> {
  if (!onPostgres) return inMemory
  running ??= PostgresServer.start({ settings: { max_connections: '500' } })
  const [server, name] = [await running, `test_${++databases}`]
  await server.psql(`CREATE DATABASE ${name} STRATEGY file_copy`)
  return { store: server.url(name), secret: 'a secret for tests and for nothing else' }
}
