import { setTimeout as pause } from 'node:timers/promises'
import { RedisServer, redisCli } from '../../support/redis-server.ts'
import type { Death } from './judge.ts'
import { until } from './until.ts'

/** Time in milliseconds after which the nodes declare a silent one dead. Long enough for a busy machine. */
const nodeTimeoutMs = 1500

/** The same while a master is frozen, so that it is replaced before the calls that it has not answered time out. */
const shortNodeTimeoutMs = 500

const nodeCount = 6

/** A node as another one sees it. */
interface NodeView {
  readonly id: string
  readonly port: number
  readonly flags: readonly string[]
  readonly masterId: string
  readonly linkUp: boolean
  readonly slots: number
}

/** A Redis cluster of three masters, each with a replica, and what can happen to it. */
export class ChaosCluster {
  readonly #nodes: readonly RedisServer[]

  private constructor(nodes: readonly RedisServer[]) {
    this.#nodes = nodes
  }

  /** Starts one. `timeoutMs` is the time after which the nodes declare a silent one dead. */
  static async start(timeoutMs = nodeTimeoutMs): Promise<ChaosCluster> {
    const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(timeoutMs)]
    // A master would wait five seconds for more replicas before it sends them its data.
    args.push('--cluster-require-full-coverage', 'no', '--repl-diskless-sync-delay', '0')
    const cluster = new ChaosCluster(
      await Promise.all(Array.from({ length: nodeCount }, () => RedisServer.start(...args))),
    )
    const addresses = cluster.#nodes.map(({ port }) => `127.0.0.1:${port}`)
    await redisCli('--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes')
    await cluster.settled()
    return cluster
  }

  get url(): string {
    return `redis+cluster://${this.#nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`
  }

  /** The nodes that are masters, and those that are replicas. */
  async byRole(): Promise<{ readonly masters: RedisServer[]; readonly replicas: RedisServer[] }> {
    const ports = mastersIn(await viewOf(this.#nodes[0]!)).map(({ port }) => port)
    const [masters, replicas] = [true, false].map((master) =>
      this.#nodes.filter(({ port }) => ports.includes(port) === master),
    )
    return { masters: masters!, replicas: replicas! }
  }

  /** Resolves once every node sees three masters that have all slots, and a replica of each that follows. */
  async settled(): Promise<void> {
    await until('the cluster is whole', async () => {
      const views = await Promise.all(this.#nodes.map((node) => viewOf(node)))
      const replicating = await Promise.all(this.#nodes.map((node) => followsIfReplica(node)))
      return views.every(isWhole) && replicating.every(Boolean)
    })
  }

  /** Kills a master. Once its replica has taken its place, it comes back, empty, as a replica. */
  async killMaster(): Promise<Death[]> {
    const { master, replica } = await this.#pair()
    const at = performance.now()
    await master.kill()
    await isMaster(replica)
    await pause(1000)
    await master.start()
    return [{ at }]
  }

  /** Freezes a master until its replica has taken its place. `meanwhile` runs just before it continues. */
  async freezeMaster(meanwhile: (master: RedisServer) => Promise<void> = async () => {}): Promise<Death[]> {
    const { master, replica } = await this.#pair()
    await this.#setNodeTimeout(shortNodeTimeoutMs)
    const at = performance.now()
    master.freeze()
    await isMaster(replica)
    await meanwhile(master)
    const resumedAt = performance.now()
    master.thaw()
    await this.#setNodeTimeout(nodeTimeoutMs)
    return [{ at, resumedAt }]
  }

  /** Lets a replica take its master's place in good order. */
  async switchMaster(): Promise<Death[]> {
    const { replica } = await this.#pair()
    await replica.cli('CLUSTER', 'FAILOVER')
    await isMaster(replica)
    return []
  }

  /** Moves a part of the slots from one master to another, while they are in use. */
  async reshard(slots = 1000): Promise<Death[]> {
    const [from, to] = mastersIn(await viewOf(this.#nodes[0]!)).toSorted((a, b) => b.slots - a.slots)
    const ends = ['--cluster-from', from!.id, '--cluster-to', to!.id, '--cluster-slots', String(slots)]
    await redisCli('--cluster', 'reshard', `127.0.0.1:${this.#nodes[0]!.port}`, ...ends, '--cluster-yes')
    return []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node[Symbol.asyncDispose]()))
  }

  /** A master, chosen at random, and its replica. */
  async #pair(): Promise<{ master: RedisServer; replica: RedisServer }> {
    const view = await viewOf(this.#nodes[0]!)
    const masters = mastersIn(view)
    const master = masters[Math.floor(Math.random() * masters.length)]!
    const replica = view.find(({ masterId }) => masterId === master.id)!
    return { master: this.#nodeAt(master.port), replica: this.#nodeAt(replica.port) }
  }

  async #setNodeTimeout(ms: number): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.cli('CONFIG', 'SET', 'cluster-node-timeout', String(ms))))
  }

  #nodeAt(port: number): RedisServer {
    return this.#nodes.find((node) => node.port === port)!
  }
}

/** All nodes, as one of them sees them. */
async function viewOf(node: RedisServer): Promise<NodeView[]> {
  const lines = (await node.cli('CLUSTER', 'NODES')).split('\n')
  return lines.map((line) => {
    const [id = '', address = '', flags = '', masterId = '', , , , link, ...ranges] = line.split(' ')
    const slots = ranges
      .map((range) => /^(\d+)(?:-(\d+))?$/.exec(range))
      .reduce((sum, range) => sum + (range ? Number(range[2] ?? range[1]) - Number(range[1]) + 1 : 0), 0)
    const port = Number(/:(\d+)@/.exec(address)?.[1])
    return { id, port, flags: flags.split(','), masterId, linkUp: link === 'connected', slots }
  })
}

function mastersIn(view: readonly NodeView[]): NodeView[] {
  return view.filter(({ flags, slots }) => flags.includes('master') && slots > 0)
}

function isWhole(view: readonly NodeView[]): boolean {
  const masters = mastersIn(view)
  return (
    view.length === nodeCount &&
    view.every(
      ({ linkUp, flags }) => linkUp && !flags.some((flag) => flag.startsWith('fail') || flag === 'handshake'),
    ) &&
    masters.length === nodeCount / 2 &&
    masters.reduce((sum, { slots }) => sum + slots, 0) === 16_384 &&
    masters.every(({ id }) => view.some(({ masterId }) => masterId === id))
  )
}

async function isMaster(node: RedisServer): Promise<void> {
  await until('the replica has taken the place of its master', async () =>
    (await node.cli('INFO', 'replication')).includes('role:master'),
  )
}

async function followsIfReplica(node: RedisServer): Promise<boolean> {
  const info = await node.cli('INFO', 'replication')
  return info.includes('role:master') || info.includes('master_link_status:up')
}
