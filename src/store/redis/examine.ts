import { type RedisClient, withinTimeLimit } from './connection.ts'
import { answerOf, evictionPolicyOf } from './eviction.ts'
import { explainProblem } from './problem.ts'
import { connectTo, keyOfEachServer } from './reach.ts'
import type { RedisTls } from './tls.ts'
import { parseRedisUrl } from './url.ts'

/** What a server says of itself. `undefined` for what the user must not ask. */
export interface RedisFacts {
  readonly version: string | undefined
  /** What it does when its memory is full: its `maxmemory-policy`, or "unknown". */
  readonly policy: string
  /** Most bytes that it stores; 0 if it has no bound of its own. */
  readonly maxMemory: number | undefined
  readonly usedMemory: number | undefined
  /** Whether it writes what it has to a disk, by whichever of Redis's two ways. */
  readonly persistent: boolean | undefined
  /** Replicas that are connected to it. */
  readonly replicas: number | undefined
}

/** A server that answers to the store's address, or why it cannot be asked. */
export type ExaminedServer = RedisFacts | { readonly problem: string }

/**
 * Asks each server that takes writes about itself, over connections of its own, and changes nothing. Rejects if none can be
 * reached.
 */
export async function examineRedis(url: string, tls: RedisTls): Promise<readonly ExaminedServer[]> {
  const target = parseRedisUrl(url, tls)
  const servers = connectTo(target, { onLost() {}, onUp() {}, onMoved() {} })
  try {
    await withinTimeLimit(servers.opened)
    const examined = keyOfEachServer(servers, '', 'ping').map(async (key) => {
      try {
        return await withinTimeLimit(servers.run(key, factsOf, {}))
      } catch (cause) {
        return { problem: explainProblem(cause, target.tls !== undefined) }
      }
    })
    return await Promise.all(examined)
  } finally {
    servers.close()
  }
}

async function factsOf(client: RedisClient): Promise<RedisFacts> {
  const [info = '', policy] = await Promise.all([answerOf(client.info()), evictionPolicyOf(client)])
  const field = (name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
  const number = (name: string): number | undefined => {
    const value = field(name)
    return value === undefined ? undefined : Number(value)
  }
  return {
    version: field('redis_version'),
    policy,
    maxMemory: number('maxmemory'),
    usedMemory: number('used_memory'),
    persistent: field('aof_enabled') === '1' ? true : await savesSnapshots(client),
    replicas: number('connected_slaves'),
  }
}

async function savesSnapshots(client: RedisClient): Promise<boolean | undefined> {
  const save = (await answerOf(client.configGet('save')))?.save
  return save === undefined ? undefined : save !== ''
}
