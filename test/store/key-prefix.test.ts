import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { withKeyPrefix } from '../../src/store/map-store.ts'
import { openStore } from '../../src/store/open.ts'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { hasPart } from '../support/optional.ts'
import { killServers, RedisServer } from '../support/redis-server.ts'
import { describeStoreContract } from './contract.ts'

afterAll(killServers)

describeStoreContract('a store behind a key prefix', async () => {
  const store = withKeyPrefix(await openSqliteStore(':memory:'), 'staging')
  return [store, store]
})

describe('a key prefix', () => {
  it('begins every key of a store that is opened, and none by default', async () => {
    const inner = await openSqliteStore(':memory:')
    const store = withKeyPrefix(inner, 'staging')
    await store.create('a', '1', 'forever')
    await store.addMember('s', 'm', 'forever')
    expect(await inner.get('staging:a')).toEqual({ value: '1', version: 1 })
    expect(await inner.members('staging:s')).toEqual(['m'])
    expect(await inner.get('a')).toBeUndefined()
    expect([store.description, store.shared]).toEqual([inner.description, inner.shared])
    expect(withKeyPrefix(inner, 'countersign')).toBe(inner)
    await store.close()
    await expect(inner.ping()).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
  })

  it('is refused unless it is a plain word, by openStore too', async () => {
    for (const keyPrefix of ['', 'a:b', '{a}', 'a*', 'a b', 'x'.repeat(65)]) {
      await expect(openStore('sqlite::memory:', { keyPrefix }), keyPrefix).rejects.toThrow(
        /^The key prefix must be 1 to 64 letters/,
      )
    }
    const store = await openStore('sqlite::memory:', { keyPrefix: 'staging' })
    await store.create('a', '1', 'forever')
    expect(await store.take('a')).toBe('1')
    await store.close()
  })

  it.skipIf(!hasPart('redis-server'))(
    'begins every key and channel in Redis, so that an access list can hold it',
    async () => {
      await using server = await RedisServer.start()
      await server.cli('ACL', 'SETUSER', 'staging', 'on', '>pass', '~staging:*', '&staging:*', '+@all')
      const url = `redis://staging:pass@127.0.0.1:${server.port}`
      const [store, other] = [await openStore(url, { keyPrefix: 'staging' }), await openStore(server.url)]
      const life = { ttlMs: 60_000 }
      await store.create('a', '1', life)
      const woken = Promise.withResolvers<void>()
      const unwatch = await store.watch('a', woken.resolve)
      expect(await server.cli('PUBSUB', 'SHARDCHANNELS')).toBe('staging:a')
      expect(await store.compareAndSet('a', 1, '2', life, { wake: true })).toBe(true)
      await woken.promise
      unwatch()
      expect(await store.get('a')).toEqual({ value: '2', version: 2 })
      await store.addMember('s', randomUUID(), life, 1)
      await store.ping()
      expect((await server.cli('KEYS', '*')).split('\n').sort()).toEqual(['staging:a', 'staging:s'])
      expect(await other.get('a')).toBeUndefined()
      await other.create('a', 'of the other', life)
      expect(await server.cli('GET', 'countersign:a')).toBe('1=of the other')
      await expect(readOnce(url, 'a')).rejects.toThrow()
      await Promise.all([store, other].map((each) => each.close()))
    },
  )
})

/** Reads a key of a store that is opened without a prefix of its own. */
async function readOnce(url: string, key: string): Promise<void> {
  const store = await openStore(url)
  await store.get(key).finally(() => store.close())
}
