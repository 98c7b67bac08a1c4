import type { CountersignOptions } from '../../src/service/config.ts'
import { onePerFile } from './file-end.ts'
import { PostgresServer } from './postgres-server.ts'

/** Whether the tests of this run are on PostgreSQL, for which the nightly run has a step. */
export const onPostgres = process.env.TEST_STORES === 'postgresql'

/** A store of its own that uses this process's clock, which tests can move, and answers at once. */
export const inMemory = { store: 'sqlite::memory:' } as const

const ownServer = onePerFile(() => PostgresServer.start({ settings: { max_connections: '500' } }))
let databases = 0

/** The store of a service that is given none: memory or, with TEST_STORES=postgresql, a database of its own. */
export async function ordinaryStore(): Promise<CountersignOptions & { readonly store: string }> {
  if (!onPostgres) return inMemory
  const [server, name] = [await ownServer(), `test_${++databases}`]
  await server.psql(`CREATE DATABASE ${name} STRATEGY file_copy`)
  return { store: server.url(name), secret: 'a secret for tests and for nothing else' }
}
