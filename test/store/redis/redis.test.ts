import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CountersignError } from '../../../src/shared/errors.ts'
import { StoreOpenError } from '../../../src/store/implementation.ts'
import { openRedisStore } from '../../../src/store/redis/store.ts'
import type { Store } from '../../../src/store/store.ts'
import { hasPart } from '../../support/optional.ts'
import { freePort, killServers, RedisServer, redisCli } from '../../support/redis-server.ts'
import { healed } from '../healed.ts'

const hasServer = hasPart('redis-server')
afterAll(killServers)
const unavailable = { reason: 'STORE_UNAVAILABLE', retryAfterMs: 1000 }

describe.skipIf(!hasServer && !process.env.REDIS_URL)('a Redis store for ordinary use', () => {
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

  it('is shared', async () => {
    await using store = await opened(url)
    expect(store.shared).toBe(true)
  })

  it('keeps each value, with its version, under a prefix and with a life that Redis ends', async () => {
    await using store = await opened(url)
    const [passing, lasting] = [`${prefix}${randomUUID()}`, `${prefix}${randomUUID()}`]
    await store.create(passing, 'a', { ttlMs: 60_000 })
    await store.create(lasting, 'a', 'forever')
    expect(await redisCli('-u', url, 'GET', `countersign:${passing}`)).toBe('1=a')
    expect(Number(await redisCli('-u', url, 'PTTL', `countersign:${passing}`))).toBeGreaterThan(0)
    expect(await redisCli('-u', url, 'PTTL', `countersign:${lasting}`)).toBe('-1')
  })

  it('leaves nothing of a set once its last member is over', async () => {
    await using store = await opened(url)
    const set = `${prefix}${randomUUID()}`
    const exists = () => redisCli('-u', url, 'EXISTS', `countersign:${set}`)
    await store.addMember(set, 'a', { ttlMs: 20 })
    await store.addMember(set, 'b', 'forever')
    await sleep(25)
    expect(await exists()).toBe('1')
    await store.addMember(set, 'c', { ttlMs: 20 })
    expect(await redisCli('-u', url, 'ZRANGE', `countersign:${set}`, '0', '-1')).not.toContain('a')
    await store.removeMember(set, 'b')
    await sleep(25)
    expect(await exists()).toBe('0')
  })
})

describe.skipIf(!hasServer)('a Redis store on a server of its own', () => {
  it('has two connections, however much is called and watched, and no subscription without a watcher', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    const unwatches = await Promise.all(Array.from({ length: 100 }, (_, i) => store.watch(`k${i}`, () => undefined)))
    await Promise.all(Array.from({ length: 100 }, (_, i) => store.create(`k${i}`, 'a', 'forever')))
    const clients = (await server.cli('CLIENT', 'LIST'))
      .split('\n')
      .filter((client) => client.includes('name=countersign'))
    expect(clients).toHaveLength(2)
    expect(await server.cli('PUBSUB', 'SHARDNUMSUB', 'countersign:k0')).toMatch(/\n1$/)
    for (const unwatch of unwatches) unwatch()
    // Subscriptions that nobody watches any more end soon after.
    const unwatch = await store.watch('k0', () => undefined)
    await expect.poll(() => server.cli('PUBSUB', 'SHARDCHANNELS'), { timeout: 20_000 }).toBe('countersign:k0')
    unwatch()
  })

  it('sends each script once and then its digest, also after Redis forgot them', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    await server.cli('SCRIPT', 'FLUSH')
    await server.cli('CONFIG', 'RESETSTAT')
    await store.create('k', 'a', 'forever')
    await server.cli('CONFIG', 'RESETSTAT')
    for (let version = 1; version <= 10; version++) await store.compareAndSet('k', version, 'b', 'forever')
    expect(await server.cli('INFO', 'commandstats')).toMatch(/cmdstat_eval:calls=1,/)
    await server.cli('SCRIPT', 'FLUSH')
    expect(await store.compareAndSet('k', 11, 'c', 'forever')).toBe(true)
    expect(await store.get('k')).toEqual({ value: 'c', version: 12 })
  })

  it('says it is unavailable while the server is gone, under load, and heals when it is back', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    const woken = Promise.withResolvers<void>()
    await store.watch('watched', woken.resolve)

    const failures: unknown[] = []
    let working = true
    const failed = Promise.withResolvers<void>()
    const load = Array.from({ length: 50 }, async () => {
      while (working) {
        const key = randomUUID()
        try {
          await store.create(key, 'a', { ttlMs: 1000 })
          await store.compareAndSet(key, 1, 'b', { ttlMs: 1000 }, { wake: true })
          await store.take(key)
        } catch (error) {
          failures.push(error)
          if (failures.length > 1000) failed.resolve()
          await sleep(5)
        }
      }
    })
    await sleep(100)
    await server.kill()
    await failed.promise
    await expect(store.get('k')).rejects.toMatchObject(unavailable)
    await expect(store.watch('k', () => undefined)).rejects.toMatchObject(unavailable)
    await expect(store.ping()).rejects.toMatchObject(unavailable)

    await server.start()
    await woken.promise
    await healed(store)
    working = false
    await Promise.all(load)
    for (const failure of failures) expect(failure).toMatchObject(unavailable)
    expect(failures.every((failure) => failure instanceof CountersignError)).toBe(true)

    expect(await store.create('k', 'a', 'forever')).toBe(true)
    const again = Promise.withResolvers<void>()
    await store.watch('k', again.resolve)
    await store.compareAndSet('k', 1, 'b', 'forever', { wake: true })
    await again.promise
  })

  it('gives up on a server that stopped answering, and heals', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    const woken = Promise.withResolvers<void>()
    await store.create('k', 'a', 'forever')
    await store.watch('k', woken.resolve)
    server.freeze()
    const first = store.get('k')
    const others = Promise.allSettled([store.watch('another', () => undefined), store.ping()])
    await expect(first).rejects.toMatchObject({ ...unavailable, cause: { message: 'no answer within 2500 ms' } })
    for (const call of await others) expect(call).toMatchObject({ reason: unavailable })
    await expect(store.get('k')).rejects.toMatchObject(unavailable)
    server.thaw()
    await woken.promise
    await healed(store)
    expect(await store.get('k')).toEqual({ value: 'a', version: 1 })
  })

  it('keeps its connection through calls that run out of time if the server answers soon after', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    const before = await connectionsOf(server)
    server.freeze()
    await sleep(100)
    const late = await Promise.allSettled(Array.from({ length: 10 }, () => store.create(randomUUID(), 'a', 'forever')))
    server.thaw()
    for (const call of late) expect(call).toMatchObject({ status: 'rejected', reason: unavailable })
    // Longer than the connection would have lasted if the server had said nothing.
    await sleep(1000)
    expect(await store.create('k', 'a', 'forever')).toBe(true)
    expect(before).toHaveLength(1)
    expect(await connectionsOf(server)).toEqual(before)
  })

  it('leaves a connection that stays silent, although it goes on writing to it', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    const before = await connectionsOf(server)
    server.freeze()
    const until = performance.now() + 4500
    while (performance.now() < until) {
      store.get('k').catch(() => undefined)
      await sleep(50)
    }
    server.thaw()
    await healed(store)
    expect(before).toHaveLength(1)
    expect(await connectionsOf(server)).not.toContain(before[0])
  })

  it('does not stay with a master that became a replica, not even to read', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    await store.create('k', 'a', 'forever')
    await server.cli('REPLICAOF', '127.0.0.1', String(await freePort()))
    await expect(store.create('another', 'a', 'forever')).rejects.toMatchObject(unavailable)
    await expect(store.get('k')).rejects.toMatchObject(unavailable)
    await server.cli('REPLICAOF', 'NO', 'ONE')
    expect(await healed(store, () => store.get('k'))).toEqual({ value: 'a', version: 1 })
  })

  it('keeps idle connections, and notices without any call that one leads nowhere', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    const woken = Promise.withResolvers<void>()
    await store.watch('k', woken.resolve)
    const before = await connectionsOf(server)
    await sleep(4000)
    expect(await connectionsOf(server)).toEqual(before)
    server.freeze()
    await sleep(6000)
    server.thaw()
    await woken.promise
  })

  it('bounds what waits for a server that stopped answering', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    server.freeze()
    const calls = await Promise.allSettled(Array.from({ length: 25_000 }, () => store.get('k')))
    const full = { reason: { ...unavailable, cause: { message: 'The queue is full' } } }
    expect(calls.at(-1)).toMatchObject(full)
    expect(calls.every(({ status }) => status === 'rejected')).toBe(true)
    server.thaw()
    await healed(store)
  })

  it('wakes every watcher after the connection of its watches was lost, and those only', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    const keys = Array.from({ length: 1000 }, (_, i) => `k${i}`)
    const woken = new Map<string, PromiseWithResolvers<void>>()
    const unwatches = await Promise.all(
      keys.map((key) => {
        const call = Promise.withResolvers<void>()
        woken.set(key, call)
        return store.watch(key, call.resolve)
      }),
    )
    let ended = 0
    const unwatch = await store.watch('ended', () => ended++)
    unwatch()
    expect(await server.cli('CLIENT', 'KILL', 'TYPE', 'pubsub')).toBe('1')
    await Promise.all([...woken.values()].map(({ promise }) => promise))
    expect(ended).toBe(0)
    // In force again, not only woken.
    const again = Promise.withResolvers<void>()
    await store.watch('k7', again.resolve)
    await store.create('k7', 'a', 'forever')
    await store.compareAndSet('k7', 1, 'b', 'forever', { wake: true })
    await again.promise
    expect((await server.cli('PUBSUB', 'SHARDCHANNELS')).split('\n').sort()).toEqual(
      [...keys].map((key) => `countersign:${key}`).sort(),
    )
    for (const end of unwatches) end()
  })

  it('makes its watches anew when the connection of its calls was lost, for the same may have befallen them', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    const woken = Promise.withResolvers<void>()
    await store.watch('k', woken.resolve)
    await server.cli('CLIENT', 'KILL', 'TYPE', 'normal')
    await woken.promise
    await healed(store)
  })

  it('heals from several lost connections while watches begin and end', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    await using writer = await opened(server.url)
    let version = 1
    await writer.create('k', 'a', 'forever')
    for (let round = 0; round < 6; round++) {
      const watching = Promise.allSettled(Array.from({ length: 20 }, () => store.watch('k', () => undefined)))
      await server.cli('CLIENT', 'KILL', 'TYPE', 'pubsub').catch(() => undefined)
      for (const watch of await watching) {
        if (watch.status === 'fulfilled') watch.value()
        else expect(watch.reason).toMatchObject(unavailable)
      }
      const woken = Promise.withResolvers<void>()
      const unwatch = await healed(store, () => store.watch('k', woken.resolve))
      expect(await writer.compareAndSet('k', version++, 'b', 'forever', { wake: true })).toBe(true)
      await woken.promise
      unwatch()
    }
  })
})

describe.skipIf(!hasServer)('opening a Redis store', () => {
  it('logs in with the user and password of the URL, into its database, and names neither', async () => {
    await using server = await RedisServer.start()
    await server.cli('ACL', 'SETUSER', 'signer', 'on', '>p@ss:w/rd', '~countersign:*', '&countersign:*', '+@all')
    await using store = await opened(`redis://signer:${encodeURIComponent('p@ss:w/rd')}@127.0.0.1:${server.port}/3`)
    await store.create('k', 'a', 'forever')
    const unwatch = await store.watch('k', () => undefined)
    unwatch()
    expect(await server.cli('-n', '3', 'GET', 'countersign:k')).toBe('1=a')
    expect(store.description).toBe(`Redis at 127.0.0.1:${server.port}, database 3`)
  })

  it('refuses a server with what was written before 0.1.0; without the permission to look, when it is read', async () => {
    await using server = await RedisServer.start()
    await server.cli('SET', 'countersign:user:u', '1:{"v":1}')
    await refused(
      server.url,
      /: it was written before version 0\.1\.0, so begin with an empty one\. Delete its keys, set/,
    )
    await server.cli('ACL', 'SETUSER', 'default', '-scan')
    await using store = await opened(server.url)
    await expect(store.get('user:u')).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
      cause: { message: 'an entry was written before version 0.1.0' },
    })
  })

  it('tells a wrong password from an absent server, in one line without the password', async () => {
    await using server = await RedisServer.start('--requirepass', 'right')
    await refused(`redis://:s3cret@127.0.0.1:${server.port}`, /WRONGPASS/)
    await refused(`redis://:s3cret@127.0.0.1:${await freePort()}`, /ECONNREFUSED/)
    await refused(server.url, /NOAUTH/)
  })

  it('gives up on a server that takes connections and says nothing', async () => {
    await using server = await RedisServer.start()
    server.freeze()
    await refused(`redis://:s3cret@127.0.0.1:${server.port}`, /no answer within 2500 ms/)
  })

  it('names the version it needs to a server that is older', async () => {
    // Only the greeting of an old server: there is none to install beside the new one.
    const hello = '%3\r\n+version\r\n+6.2.14\r\n+mode\r\n+standalone\r\n+role\r\n+master\r\n'
    const old = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.on('data', (chunk) => {
        for (const [name] of String(chunk).matchAll(/\n(HELLO|CLIENT)\r/g))
          socket.write(name.includes('HELLO') ? hello : '+OK\r\n')
      })
    }).listen(0, '127.0.0.1')
    await once(old, 'listening')
    await refused(`redis://127.0.0.1:${(old.address() as AddressInfo).port}`, /is Redis 6\.2\.14, and .* needs Redis 7/)
    old.close()
  })

  it('refuses a replica, which takes no writes', async () => {
    await using server = await RedisServer.start()
    await using replica = await RedisServer.start('--replicaof', '127.0.0.1', String(server.port))
    await refused(replica.url, /is a replica and takes no writes/)
  })
})

async function opened(url: string): Promise<Store & AsyncDisposable> {
  const store = await openRedisStore(url)
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() })
}

/** The connections of stores to a server, by the number that the server gave each. */
async function connectionsOf(server: RedisServer): Promise<string[]> {
  const clients = (await server.cli('CLIENT', 'LIST')).split('\n')
  return clients.filter((client) => client.includes('name=countersign')).map((client) => client.split(' ')[0] ?? '')
}

async function refused(url: string, problem: RegExp): Promise<void> {
  const error = await openRedisStore(url).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(StoreOpenError)
  const { message } = error as StoreOpenError
  expect(message).toMatch(problem)
  expect(message).toMatch(/^[^\n]*COUNTERSIGN_STORE[^\n]*$/)
  expect(message).not.toContain('s3cret')
}
