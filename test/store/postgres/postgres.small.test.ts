import { afterAll, beforeAll, describe } from 'vitest'
import { openPostgresStore } from '../../../src/store/postgres/store.ts'
import { hasPart } from '../../support/optional.ts'
import { killPostgresServers, PostgresServer } from '../../support/postgres-server.ts'
import { describeStoreContract } from '../contract.ts'

describe.skipIf(!hasPart('postgresql'))('a PostgreSQL store', () => {
  let server: PostgresServer

  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
    killPostgresServers()
  })

  describeStoreContract('PostgreSQL', async () => [
    await openPostgresStore(server.url()),
    await openPostgresStore(server.url()),
  ])
})
