import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { StoreOpenError } from '../../../src/store/implementation.ts'
import { slotOf } from '../../../src/store/redis/cluster.ts'
import { openRedisStore } from '../../../src/store/redis/store.ts'
import { hasPart } from '../../support/optional.ts'
import { freePort, killServers, RedisServer, redisCli } from '../../support/redis-server.ts'
import { describeStoreContract } from '../contract.ts'
import { healed } from '../healed.ts'

// A master waits five seconds for more replicas otherwise.
const replicateAtOnce = ['--repl-diskless-sync-delay', '0']

const hasServer = hasPart('redis-server') && hasPart('redis-cli')

afterAll(killServers)

describe.skipIf(!hasServer)('a Redis store in a cluster', () => {
  const nodes: RedisServer[] = []
  let url: string

  beforeAll(async () => {
    const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000', '--cluster-require-full-coverage', 'no']
    args.push(...replicateAtOnce)
    nodes.push(...(await Promise.all([1, 2, 3, 4].map(() => RedisServer.start(...args)))))
    const masters = nodes.slice(0, 3)
    const serving = masters.map((node) => node.logs('Cluster state changed: ok'))
    await redisCli('--cluster', 'create', ...masters.map(address), '--cluster-yes')
    await Promise.all(serving)
    url = `redis+cluster://${nodes.slice(0, 2).map(address).join(',')}`
  }, 20_000)
  afterAll(() => Promise.all(nodes.map((node) => node[Symbol.asyncDispose]())))

  describeStoreContract('a Redis cluster', async () => [await openRedisStore(url), await openRedisStore(url)])

  it('counts slots as Redis does', async () => {
    const keys = [
      '',
      'a',
      '123456789',
      'a{b}c',
      '{}a{b}',
      'a{}',
      '{a',
      'a}b{c}',
      '{a}{b}',
      '{{a}}',
      `k:${randomUUID()}`,
    ]
    for (const key of keys)
      expect([key, slotOf(key)]).toEqual([key, Number(await nodes[0]!.cli('CLUSTER', 'KEYSLOT', key))])
  })

  it('has a value on the node of its slot, and of its braces', async () => {
    const store = await openRedisStore(url)
    const id = randomUUID()
    const keys = Array.from({ length: 20 }, (_, i) => `test:{${id}}:${i}`)
    for (const key of keys) await store.create(key, 'a', { ttlMs: 60_000 })
    const counts = await Promise.all(
      nodes.slice(0, 3).map(async (node) => (await node.cli('KEYS', `*${id}*`)).split('\n').filter(Boolean).length),
    )
    expect(counts.sort((a, b) => a - b)).toEqual([0, 0, 20])
    await store.close()
  })

  it('serves the keys of the other nodes while the node of the clock hangs, also if the clock has become doubtful', {
    timeout: 40_000,
  }, async () => {
    const store = await openRedisStore(url)
    onTestFinished(() => store.close())
    const owner = await ownerOf(String(slotOf('countersign:clock')))
    const keys = Array.from({ length: 50 }, () => `test:${randomUUID()}`)
    const owners = await Promise.all(keys.map((key) => ownerOf(String(slotOf(`countersign:${key}`)))))
    const key = keys.find((_, i) => owners[i] !== owner)!
    await store.create(key, 'a', { ttlMs: 60_000 })
    const now = Date.now
    const stepped = vi.spyOn(Date, 'now').mockImplementation(() => now() + 5000)
    onTestFinished(() => stepped.mockRestore())
    owner.freeze()
    try {
      for (let i = 0; i < 4; i++) expect(await store.get(key)).toMatchObject({ value: 'a' })
    } finally {
      owner.thaw()
    }
    for (const node of nodes.slice(0, 3)) {
      await expect.poll(() => node.cli('CLUSTER', 'INFO'), { timeout: 20_000 }).toContain('cluster_slots_ok:16384')
    }
  })

  it('goes by the clock of one node, whichever nodes a process knows, also when its slot moves', async () => {
    const masters = nodes.slice(0, 3)
    const asked = async (moreThan = 0): Promise<RedisServer[]> => {
      const stats = await Promise.all(masters.map((node) => node.cli('INFO', 'commandstats')))
      return masters.filter((_, i) => Number(/cmdstat_time:calls=(\d+)/.exec(stats[i]!)?.[1] ?? 0) > moreThan)
    }
    const slot = String(slotOf('countersign:clock'))
    const owner = await ownerOf(slot)
    const target = masters.find((node) => node !== owner)!
    for (const node of masters) await node.cli('CONFIG', 'RESETSTAT')
    const stores = await Promise.all(masters.map((node) => openRedisStore(`redis+cluster://${address(node)}`)))
    // As it is opened, each of the three stores also tries the three scripts of sets, which ask for the time, on each
    // node.
    expect(await asked(9)).toEqual([owner])

    // A slot that has keys of earlier tests cannot be given away in one step.
    await owner.cli('FLUSHALL')
    const [ownerId, targetId] = [await owner.cli('CLUSTER', 'MYID'), await target.cli('CLUSTER', 'MYID')]
    await target.cli('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ownerId)
    await owner.cli('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId)
    for (const node of [target, owner]) await node.cli('CLUSTER', 'SETSLOT', slot, 'NODE', targetId)
    for (const store of stores) {
      await target.cli('CONFIG', 'RESETSTAT')
      // A key of the same slot, and so the server says that it has moved.
      await store.get('test:{countersign:clock}')
      await expect.poll(() => asked()).toContain(target)
      await store.ping()
      await store.close()
    }
  })

  it('follows a slot that moves to another node, in the middle and after, with its watches', async () => {
    // As a node knows them that is new.
    for (const node of nodes) await node.cli('SCRIPT', 'FLUSH')
    const store = await openRedisStore(url)
    const key = `test:${randomUUID()}`
    const slot = String(slotOf(`countersign:${key}`))
    const owner = await ownerOf(slot)
    const target = nodes.slice(0, 3).find((node) => node !== owner)!
    const woken = Promise.withResolvers<void>()
    await store.create(key, 'a', 'forever')
    const unwatch = await store.watch(key, woken.resolve)
    const bystander = await openRedisStore(url)
    await bystander.get(key)

    const [ownerId, targetId] = [await owner.cli('CLUSTER', 'MYID'), await target.cli('CLUSTER', 'MYID')]
    await target.cli('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ownerId)
    await owner.cli('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId)
    await owner.cli('MIGRATE', '127.0.0.1', String(target.port), `countersign:${key}`, '0', '1000')
    // The owner sends callers on with ASK now.
    expect(await store.compareAndSet(key, 1, 'b', 'forever')).toBe(true)
    expect(await store.get(key)).toEqual({ value: 'b', version: 2 })
    for (const node of [target, owner]) await node.cli('CLUSTER', 'SETSLOT', slot, 'NODE', targetId)
    // The owner ends the subscription, and sends callers on with MOVED.
    await woken.promise
    expect(await store.get(key)).toEqual({ value: 'b', version: 2 })
    const again = Promise.withResolvers<void>()
    const unwatchAgain = await healed(store, () => store.watch(key, again.resolve))
    expect(await target.cli('PUBSUB', 'SHARDCHANNELS', '*')).toContain(key)
    expect(await store.compareAndSet(key, 2, 'c', 'forever', { wake: true })).toBe(true)
    await again.promise
    unwatch()
    unwatchAgain()
    // One that comes late is sent on once, and goes to the right place from then on.
    await owner.cli('CONFIG', 'RESETSTAT')
    for (let i = 0; i < 5; i++) expect(await bystander.get(key)).toEqual({ value: 'c', version: 3 })
    expect(await owner.cli('INFO', 'errorstats')).toContain('errorstat_MOVED:count=1')
    await bystander.close()
    await store.close()
  })

  it('lives through the loss of a master and goes on with its replica', async () => {
    const [first, , master, replica] = nodes as [RedisServer, RedisServer, RedisServer, RedisServer]
    const masterId = await master.cli('CLUSTER', 'MYID')
    const synchronized = replica.logs('sync: Finished with success')
    await redisCli(
      '--cluster',
      'add-node',
      address(replica),
      address(first),
      '--cluster-slave',
      '--cluster-master-id',
      masterId,
    )
    const store = await openRedisStore(url)
    const elsewhere = await keyOn(first)
    const key = await keyOn(master)
    await store.create(key, 'a', 'forever')
    await store.create(elsewhere, 'a', 'forever')
    const woken = Promise.withResolvers<void>()
    await store.watch(key, woken.resolve)
    await synchronized
    await master.replicated(`{countersign:${key}}`)
    await master.kill()
    await expect(store.get(key)).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    expect(await store.get(elsewhere)).toEqual({ value: 'a', version: 1 })

    await woken.promise
    expect(await healed(store, () => store.get(key))).toEqual({ value: 'a', version: 1 })
    const again = Promise.withResolvers<void>()
    await store.watch(key, again.resolve)
    expect(await store.compareAndSet(key, 1, 'b', 'forever', { wake: true })).toBe(true)
    await again.promise
    await store.close()
  })

  it('goes on while one of its nodes does not know the others', { timeout: 30_000 }, async () => {
    const own = await Promise.all([1, 2, 3].map(() => RedisServer.start('--cluster-enabled', 'yes')))
    onTestFinished(async () => void (await Promise.all(own.map((node) => node[Symbol.asyncDispose]()))))
    const serving = own.map((node) => node.logs('Cluster state changed: ok'))
    await redisCli('--cluster', 'create', ...own.map(address), '--cluster-yes')
    await Promise.all(serving)
    const store = await openRedisStore(`redis+cluster://${own.map(address).join(',')}`)
    onTestFinished(() => store.close())
    const [lost, ...others] = own
    for (const node of others) await lost!.cli('CLUSTER', 'FORGET', await node.cli('CLUSTER', 'MYID'))
    const keys = Array.from({ length: 60 }, (_, i) => `test:${i}`)
    // The first node has a third of the slots.
    const known = keys.filter((key) => slotOf(`countersign:${key}`) > 5460)
    for (let i = 0; i < 4; i++) {
      // After a silence the other nodes are asked.
      for (const node of others) node.freeze()
      await sleep(1600)
      for (const node of others) node.thaw()
      await Promise.all(known.map((key) => store.get(key)))
    }
  })

  it('asks the other nodes about a master only if that was silent, not if it was idle', async () => {
    const store = await openRedisStore(url)
    onTestFinished(() => store.close())
    const key = randomUUID()
    const askedBefore = await slotsAsked()
    for (let calls = 0; calls < 3; calls++) {
      await sleep(1500)
      await store.get(key)
    }
    // Each of the calls would ask the two other masters. A process that is held up itself may ask once.
    expect((await slotsAsked()) - askedBefore).toBeLessThan(3)
  })

  /** How often the nodes have been asked who has which slots. */
  async function slotsAsked(): Promise<number> {
    // Some of them were killed by the tests before.
    const stats = await Promise.all(nodes.map((node) => node.cli('INFO', 'commandstats').catch(() => '')))
    const counts = stats.map((text) => Number(/cmdstat_cluster\|slots:calls=(\d+)/.exec(text)?.[1] ?? 0))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  it('is refused under redis://, and a single server under redis+cluster://, with the scheme to use', async () => {
    await using single = await RedisServer.start()
    await refused(`redis://${address(nodes[0]!)}`, /part of a cluster: use redis\+cluster:/)
    await refused(`redis+cluster://${address(single)}`, /not part of a cluster: use redis:/)
    await refused(`redis+cluster://:s3cret@127.0.0.1:${await freePort()},127.0.0.1:${await freePort()}`, /ECONNREFUSED/)
  })

  async function ownerOf(slot: string): Promise<RedisServer> {
    for (const node of nodes.slice(0, 3)) {
      const ranges = (await node.cli('CLUSTER', 'NODES')).split('\n').find((line) => line.includes('myself'))
      for (const [, from, to] of ranges?.matchAll(/ (\d+)-(\d+)/g) ?? []) {
        if (Number(slot) >= Number(from) && Number(slot) <= Number(to)) return node
      }
    }
    throw new Error(`nobody has slot ${slot}`)
  }

  async function keyOn(node: RedisServer): Promise<string> {
    while (true) {
      const key = `test:${randomUUID()}`
      if ((await ownerOf(String(slotOf(`countersign:${key}`)))) === node) return key
    }
  }
})

function address(node: RedisServer): string {
  return `127.0.0.1:${node.port}`
}

async function refused(url: string, problem: RegExp): Promise<void> {
  const error = await openRedisStore(url).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(StoreOpenError)
  const { message } = error as StoreOpenError
  expect(message).toMatch(problem)
  expect(message).not.toContain('s3cret')
}
