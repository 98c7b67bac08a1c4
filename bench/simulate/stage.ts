import { createClient } from 'redis'
import { ChaosCluster } from '../../test/e2e/chaos/cluster.ts'
import type { RedisServer } from '../../test/support/redis-server.ts'
import { pin, type ServerProcess, startCountersign } from '../servers.ts'

/** A busy machine must not look like a dead node. */
const nodeTimeoutMs = 15_000

/** Commands of whoever measures, of the cluster itself, and of connections. */
const uncounted =
  /^(info|ping|hello|scan|pttl|memory|replconf|psync|cluster|config|client|asking|readonly|command)(\||$)/

/** Instances of Countersign on a Redis cluster of three masters with a replica each, all in processes of their own. */
export class Stage implements AsyncDisposable {
  readonly instances: readonly ServerProcess[]
  readonly #masters: readonly RedisServer[]
  readonly #replicas: readonly RedisServer[]
  readonly #open: AsyncDisposableStack

  private constructor(
    instances: readonly ServerProcess[],
    { masters, replicas }: Awaited<ReturnType<ChaosCluster['byRole']>>,
    open: AsyncDisposableStack,
  ) {
    this.instances = instances
    this.#masters = masters
    this.#replicas = replicas
    this.#open = open
  }

  /** Starts so many instances. They share a core if this process can be pinned; Redis shares the other with this process. */
  static async open(instanceCount: number): Promise<Stage> {
    const core = pin()
    await using open = new AsyncDisposableStack()
    const cluster = open.use(await ChaosCluster.start(nodeTimeoutMs))
    const instances = []
    while (instances.length < instanceCount) {
      instances.push(open.use(await startInstance(cluster.url, core)))
    }
    return new Stage(instances, await cluster.byRole(), open.move())
  }

  get ports(): number[] {
    return this.instances.map(({ port }) => port)
  }

  /** What all processes have used so far. */
  async used(): Promise<Used> {
    const [instances, masters, replicas] = await Promise.all([
      Promise.all(this.instances.map(async (instance) => (await instance.usage('cpu')).cpuMicros)),
      Promise.all(this.#masters.map(infoOf)),
      Promise.all(this.#replicas.map(infoOf)),
    ])
    return {
      atMs: performance.now(),
      instanceMicros: sum(instances),
      redisMicros: sum(masters.map(({ cpuMicros }) => cpuMicros)),
      replicaMicros: sum(replicas.map(({ cpuMicros }) => cpuMicros)),
      commands: sum(masters.map(({ commands }) => commands)),
      memory: sum(masters.map(({ memory }) => memory)),
      keys: masters.map(({ keys }) => keys),
    }
  }

  /** All keys, with what they take. */
  async keys(): Promise<Map<string, StoredKey>> {
    const all = new Map<string, StoredKey>()
    for (const { url } of this.#masters) {
      await using client = closing(createClient({ url }))
      await client.redis.connect()
      for (let cursor = '0'; ; ) {
        const found = await client.redis.scan(cursor, { COUNT: 1000 })
        const asked = found.keys.map(async (key) => {
          const [lifeMs, bytes] = await Promise.all([client.redis.pTTL(key), client.redis.memoryUsage(key)])
          // It may have expired in between.
          if (bytes !== null && lifeMs !== -2) all.set(key, { bytes, lifeMs: lifeMs === -1 ? null : lifeMs })
        })
        await Promise.all(asked)
        cursor = found.cursor
        if (cursor === '0') break
      }
    }
    return all
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync()
  }
}

/** Starts an instance, which gives up if Redis does not answer in 2.5 s, as can happen while everything starts at once. */
async function startInstance(url: string, core: number | undefined): Promise<ServerProcess> {
  for (let triesLeft = 4; ; triesLeft--) {
    try {
      return await startCountersign(url, { core, limited: true })
    } catch (error) {
      if (triesLeft === 0) throw error
    }
  }
}

/** What processes have used so far. */
export interface Used {
  readonly atMs: number
  /** CPU time of all instances, microseconds. */
  readonly instanceMicros: number
  /** CPU time of all masters, microseconds. */
  readonly redisMicros: number
  /** CPU time of all replicas, microseconds. */
  readonly replicaMicros: number
  /** Commands that masters carried out, those in scripts included. */
  readonly commands: number
  /** What the masters' data takes, without connections and replication, bytes. */
  readonly memory: number
  /** Keys of each master. */
  readonly keys: readonly number[]
}

/** A key in Redis. */
export interface StoredKey {
  readonly bytes: number
  /** Time in ms until it expires; `null` if it stays. */
  readonly lifeMs: number | null
}

/** Adds numbers up. */
export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

async function infoOf(node: RedisServer) {
  const info = await node.cli('INFO', 'everything')
  const numberOf = (field: string): number => Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(info)?.[1] ?? 0)
  const commands = [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].filter(([, name = '']) => !uncounted.test(name))
  const overhead = ['mem_clients_normal', 'mem_clients_slaves', 'mem_cluster_links', 'mem_total_replication_buffers']
  return {
    cpuMicros: (numberOf('used_cpu_user') + numberOf('used_cpu_sys')) * 1e6,
    commands: sum(commands.map(([, , calls]) => Number(calls))),
    memory: numberOf('used_memory') - sum(overhead.map(numberOf)),
    keys: Number(/^db0:keys=(\d+)/m.exec(info)?.[1] ?? 0),
  }
}

function closing(redis: ReturnType<typeof createClient>) {
  return { redis, [Symbol.asyncDispose]: async () => void redis.destroy() }
}
