import { ErrorReply } from 'redis'
import type { RedisClient } from './connection.ts'

/** What a server does when it runs out of memory: its `maxmemory-policy`, or "unknown" if the user must not ask. */
export async function evictionPolicyOf(client: RedisClient): Promise<string> {
  return (await policyFromInfo(client)) ?? (await policyFromConfig(client)) ?? 'unknown'
}

/**
 * What to tell the operator about the policies of some servers, or undefined if all of them keep what they have. `volatile-*`
 * is no better than `allkeys-*`, because nearly everything is stored with a life.
 */
export function evictionWarning(policies: readonly string[]): string | undefined {
  const lossy = [...new Set(policies)].filter((policy) => policy !== 'noeviction')
  if (lossy.length === 0) return undefined
  if (lossy.every((policy) => policy === 'unknown')) {
    return 'Redis does not say what it does when its memory is full: permit INFO, or make sure that its maxmemory-policy is noeviction, because any other can drop sessions, orders and the marks of ended sessions'
  }
  return `Redis can drop sessions, orders and the marks of ended sessions when its memory is full, because its maxmemory-policy is ${lossy.join(', ')}: set it to noeviction`
}

/** Managed services often forbid CONFIG, so INFO is asked first. */
async function policyFromInfo(client: RedisClient): Promise<string | undefined> {
  const info = await answerOf(client.info('memory'))
  return info === undefined ? undefined : /^maxmemory_policy:(\S+)/m.exec(info)?.[1]
}

async function policyFromConfig(client: RedisClient): Promise<string | undefined> {
  return (await answerOf(client.configGet('maxmemory-policy')))?.['maxmemory-policy']
}

/** The answer, or undefined if the server refuses it. */
export async function answerOf<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking
  } catch (error) {
    if (error instanceof ErrorReply) return undefined
    throw error
  }
}
