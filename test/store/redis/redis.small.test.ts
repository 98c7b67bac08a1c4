import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe } from 'vitest'
import { openRedisStore } from '../../../src/store/redis/store.ts'
import { hasPart } from '../../support/optional.ts'
import { RedisServer, redisCli } from '../../support/redis-server.ts'
import { describeStoreContract } from '../contract.ts'

describe.skipIf(!hasPart('redis-server') && !process.env.REDIS_URL)('a Redis store', () => {
  // The server may be someone else's: what is left at the end is found by this, and removed.
  const prefix = `test:${randomUUID()}:`
  let own: RedisServer | undefined
  let url: string

  beforeAll(async () => {
    own = process.env.REDIS_URL ? undefined : await RedisServer.start()
    url = own?.url ?? String(process.env.REDIS_URL)
  })
  afterAll(async () => {
    const keys = (await redisCli('-u', url, '--scan', '--pattern', `countersign:${prefix}*`)).split('\n')
    await redisCli('-u', url, 'UNLINK', ...keys)
    await own?.[Symbol.asyncDispose]()
  })

  describeStoreContract('Redis', async () => [await openRedisStore(url), await openRedisStore(url)], prefix)
})
