import type { SecondaryStorage } from 'better-auth'
import { createClient } from 'redis'

/** A Redis, and the beginning of the keys of one storage in it. */
export interface RedisKeys {
  readonly url: string
  readonly prefix: string
}

/** A secondary storage on a real Redis. */
export async function openRedisStorage({ url, prefix }: RedisKeys): Promise<{
  readonly storage: SecondaryStorage
  close(): Promise<void>
}> {
  const client = createClient({ url })
  await client.connect()
  const storage: SecondaryStorage = {
    get: (key) => client.get(prefix + key),
    set: (key, value, ttl) =>
      client.set(prefix + key, value, ttl === undefined ? {} : { expiration: { type: 'EX', value: ttl } }),
    delete: async (key) => void (await client.del(prefix + key)),
    getAndDelete: (key) => client.getDel(prefix + key),
    async increment(key, ttl) {
      const [count] = await client
        .multi()
        .incr(prefix + key)
        .expire(prefix + key, ttl, 'NX')
        .exec()
      return Number(count)
    },
  }
  return { storage, close: async () => void (await client.close()) }
}
