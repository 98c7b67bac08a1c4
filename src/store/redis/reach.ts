import { RedisCluster } from './cluster.ts'
import { OneServer, type Servers, type ServersEvents } from './connection.ts'
import type { RedisTarget } from './url.ts'

/** How many keys are tried to find one for each server of a cluster. */
const maxKeysTried = 1000

/** Connects to the servers of a target. */
export function connectTo(target: RedisTarget, events: ServersEvents): Servers {
  return target.kind === 'cluster' ? new RedisCluster(target, events) : new OneServer(target, events)
}

/** A key for each server that is known now, without the prefix that it has there; `first` is the one for its server. */
export function keyOfEachServer(servers: Servers, prefix: string, first: string): string[] {
  const keys = new Map<string, string>()
  for (let i = 0; i < maxKeysTried; i++) {
    const key = i === 0 ? first : `ping:{${i}}`
    try {
      const server = servers.locate(prefix + key)
      if (!keys.has(server)) keys.set(server, key)
    } catch {
      // No server has its slot.
    }
  }
  return [...keys.values()]
}
