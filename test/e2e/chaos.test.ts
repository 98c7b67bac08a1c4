import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openRedisStore } from '../../src/store/redis/store.ts'
import { hasPart } from '../support/optional.ts'
import { killServers } from '../support/redis-server.ts'
import { ChaosCluster } from './chaos/cluster.ts'
import type { Death } from './chaos/judge.ts'
import { expectNothingUnexplained, persistently, rounds } from './chaos/rehearsal.ts'

const hasServer = hasPart('redis-server') && hasPart('redis-cli')
const timeout = 240_000 * rounds

afterAll(killServers)

/** Enough keys for each master to have some. */
function newKeys(): string[] {
  return Array.from({ length: 100 }, () => `test:${randomUUID()}`)
}

describe.skipIf(!hasServer)('sign-ins, orders and watches on two instances, while a Redis cluster', () => {
  let cluster: ChaosCluster
  beforeAll(async () => {
    cluster = await ChaosCluster.start()
  }, 120_000)
  afterAll(() => cluster[Symbol.asyncDispose]())

  test.for<[string, () => Promise<Death[]>]>([
    ['moves slots', () => cluster.reshard()],
    ['switches a master in good order', () => cluster.switchMaster()],
    ['loses a master', () => cluster.killMaster()],
    ['freezes a master, which continues once it is replaced', () => cluster.freezeMaster()],
  ])('%s', { timeout }, ([, disturb]) => expectNothingUnexplained(cluster, disturb))

  test('freezes a master: what it answers before it knows that it was replaced does not count', {
    timeout,
  }, async () => {
    await cluster.settled()
    const store = await persistently(() => openRedisStore(cluster.url))
    const create = (keys: readonly string[]) => keys.map((key) => store.create(key, '', { ttlMs: 60_000 }))
    // Makes the connections to all masters.
    await Promise.all(create(newKeys()))
    const keys = newKeys()
    let created: Promise<PromiseSettledResult<boolean>[]> | undefined
    await cluster.freezeMaster(async () => {
      created = Promise.allSettled(create(keys))
      await pause(100)
    })
    const results = await created!
    const acknowledged = keys.filter((_, i) => results[i]?.status === 'fulfilled')
    expect(acknowledged.length).toBeLessThan(keys.length)
    await cluster.settled()
    const found = await Promise.all(acknowledged.map((key) => store.get(key)))
    expect(found.filter((value) => value === undefined)).toEqual([])
    await store.close()
  })
})
