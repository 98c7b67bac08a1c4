import { ErrorReply } from 'redis'
import { withinTimeLimit } from '../reconnecting-link.ts'
import { connectTo, keyOfEachServer } from './cluster.ts'
import type { RedisClient } from './connection.ts'
import { explainProblem } from './problem.ts'
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
export type ExaminedServer = RedisFacts | { readonly problem: string; readonly advice: string }

/**
 * Asks each server that takes writes about itself, over connections of its own, and changes nothing. Rejects if none
 * can be reached.
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
        return explainProblem(cause, target.tls !== undefined)
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

/** What a server does when it runs out of memory: its `maxmemory-policy`, or "unknown" if the user must not ask. */
export async function evictionPolicyOf(client: RedisClient): Promise<string> {
  // Managed services often forbid CONFIG, so INFO is asked first.
  const info = await answerOf(client.info('memory'))
  const policy = /^maxmemory_policy:(\S+)/m.exec(info ?? '')?.[1]
  return policy ?? (await answerOf(client.configGet('maxmemory-policy')))?.['maxmemory-policy'] ?? 'unknown'
}

/**
 * Advice to the operator about the policies of some servers, or undefined if all of them keep what they have.
 * `volatile-*` is no better than `allkeys-*`, because nearly everything is stored with a life.
 */
export function evictionWarning(policies: readonly string[]): string | undefined {
  const lossy = [...new Set(policies)].filter((policy) => policy !== 'noeviction')
  if (lossy.length === 0) return undefined
  if (lossy.every((policy) => policy === 'unknown')) {
    return (
      'Redis does not say what it does when its memory is full: permit INFO, or make sure that its ' +
      'maxmemory-policy is noeviction, because any other can drop sessions, orders and the marks of ended sessions'
    )
  }
  return (
    'Redis can drop sessions, orders and the marks of ended sessions when its memory is full, because its ' +
    `maxmemory-policy is ${lossy.join(', ')}: set it to noeviction`
  )
}

/** The answer, or undefined if the server refuses it. */
async function answerOf<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking
  } catch (error) {
    if (error instanceof ErrorReply) return undefined
    throw error
  }
}
