import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort, RedisServer, redisCli, said, spawnRedis } from '../../support/redis-server.ts'
import type { Death } from './judge.ts'
import { until } from './until.ts'

/** Name of the master among the sentinels. */
const masterName = 'main'

/** Time in milliseconds after which a sentinel declares a silent master dead. */
const downAfterMs = 1000

/** The user as whom the services, and this file, come to the sentinels. */
const user = { name: 'countersign', password: 'pass' }

/** The user as whom the third sentinel comes to the servers, so that they can turn away that one alone. */
const thirdUser = { name: 'third', password: 'pass' }

/** A sentinel process, which keeps its configuration when it is started again. */
class Sentinel {
  readonly port: number
  readonly #config: string
  #process: ChildProcess | undefined

  constructor(port: number, config: string) {
    this.port = port
    this.#config = config
  }

  async start(): Promise<void> {
    this.#process = spawnRedis([this.#config, '--sentinel'])
    await said(this.#process, '+monitor master')
  }

  async kill(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  cli(...args: string[]): Promise<string> {
    const access = ['--user', user.name, '--pass', user.password, '--no-auth-warning']
    return redisCli('-p', String(this.port), ...access, ...args)
  }

  async masterPort(): Promise<number> {
    const [, port] = (await this.cli('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName)).split('\n')
    return Number(port)
  }

  /**
   * What the sentinel knows of the master, by the names of its fields, and the number of replicas that it finds
   * healthy.
   */
  async view(): Promise<{ master: Map<string, string>; replicas: number }> {
    const lines = (await this.cli('SENTINEL', 'MASTER', masterName)).split('\n')
    const master = new Map<string, string>()
    for (let i = 0; i + 1 < lines.length; i += 2) master.set(lines[i]!, lines[i + 1]!)
    const replicas = (await this.cli('SENTINEL', 'REPLICAS', masterName)).split('\n')
    return { master, replicas: replicas.filter((line, i) => replicas[i - 1] === 'flags' && line === 'slave').length }
  }
}

/** A master, two replicas and three sentinels, and what can happen to them. */
export class ChaosSentinels {
  readonly #servers: readonly RedisServer[]
  readonly #sentinels: readonly Sentinel[]

  private constructor(servers: readonly RedisServer[], sentinels: readonly Sentinel[]) {
    this.#servers = servers
    this.#sentinels = sentinels
  }

  static async start(): Promise<ChaosSentinels> {
    const third = ['--user', thirdUser.name, 'on', `>${thirdUser.password}`, '~*', '&*', '+@all']
    const args = ['--repl-diskless-sync-delay', '0', ...third]
    const master = await RedisServer.start(...args)
    const replicaOf = ['--replicaof', '127.0.0.1', String(master.port)]
    const replicas = await Promise.all([1, 2].map(() => RedisServer.start(...args, ...replicaOf)))
    const sentinels = await Promise.all([1, 2, 3].map((n) => newSentinel(master, n)))
    const all = new ChaosSentinels([master, ...replicas], sentinels)
    await Promise.all(sentinels.map((sentinel) => sentinel.start()))
    await all.settled()
    return all
  }

  get url(): string {
    const hosts = this.#sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const access = `sentinelUsername=${user.name}&sentinelPassword=${user.password}`
    return `redis+sentinel://${hosts}/${masterName}?${access}`
  }

  /** Resolves once all sentinels know of each other, of the same master and of two replicas that follow it. */
  async settled(): Promise<void> {
    await until('the sentinels agree', async () => {
      const views = await Promise.all(this.#sentinels.map((sentinel) => sentinel.view()))
      const ports = new Set(views.map(({ master }) => master.get('port')))
      const master = this.#serverAt(Number([...ports][0]))
      const following = (await master.cli('INFO', 'replication')).match(/state=online/g) ?? []
      return (
        ports.size === 1 &&
        following.length === 2 &&
        views.every(({ master, replicas }) => {
          return master.get('flags') === 'master' && master.get('num-other-sentinels') === '2' && replicas === 2
        })
      )
    })
  }

  /** Kills the master. Once another server has taken its place, it comes back, empty. */
  async killMaster(): Promise<Death[]> {
    const master = await this.#master()
    const at = performance.now()
    await master.kill()
    await this.#replaced(master)
    await pause(1000)
    await master.start()
    return [{ at }]
  }

  /**
   * Freezes the master until a replica was promoted, and then lets it continue. The sentinels still name it at that
   * moment, and it answers as a master until one of them makes it a replica.
   */
  async freezeMaster(): Promise<Death[]> {
    const master = await this.#master()
    const at = performance.now()
    master.freeze()
    await this.#promoted(master)
    const resumedAt = performance.now()
    master.thaw()
    return [{ at, resumedAt }]
  }

  /** Has the sentinels choose another master, although this one is healthy. */
  async switchMaster(): Promise<Death[]> {
    const master = await this.#master()
    const [first] = this.#sentinels as [Sentinel, ...Sentinel[]]
    let askedAt = Number.NEGATIVE_INFINITY
    await until('the sentinels have another master', async () => {
      if (await this.#isReplaced(master)) return true
      // Again after a while: a sentinel gives up if it has not heard of the replicas for some seconds, as on a busy
      // machine.
      if (performance.now() > askedAt + 15_000 && (await first.masterPort()) === master.port) {
        askedAt = performance.now()
        await first.cli('SENTINEL', 'FAILOVER', masterName)
      }
      return false
    })
    return []
  }

  /** Stops all sentinels for a while. */
  async stopSentinels(): Promise<Death[]> {
    await Promise.all(this.#sentinels.map((sentinel) => sentinel.kill()))
    await pause(3000)
    await Promise.all(this.#sentinels.map((sentinel) => sentinel.start()))
    return []
  }

  /**
   * Has the sentinels choose another master, while the third one is cut off from the servers and from the other
   * sentinels. The services can still reach it, and it still names the old master.
   */
  async switchMasterBehindAStaleSentinel(): Promise<Death[]> {
    const third = this.#sentinels[2]!
    await Promise.all([...this.#servers.map((server) => refuse(server, thirdUser.name)), refuse(third, 'default')])
    await this.switchMaster()
    await pause(3000)
    await Promise.all([...this.#servers.map((server) => admit(server, thirdUser.name)), admit(third, 'default')])
    return []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#sentinels.map((sentinel) => sentinel.kill()))
    await Promise.all(this.#servers.map((server) => server[Symbol.asyncDispose]()))
  }

  async #master(): Promise<RedisServer> {
    return this.#serverAt(await this.#sentinels[0]!.masterPort())
  }

  /** Resolves once another server is a master. The sentinels may not name it yet. */
  async #promoted(old: RedisServer): Promise<void> {
    const others = this.#servers.filter((server) => server !== old)
    await until('a replica was promoted', async () => {
      const infos = await Promise.all(others.map((server) => server.cli('INFO', 'replication')))
      return infos.some((info) => info.includes('role:master'))
    })
  }

  /** Resolves once most sentinels have another master. */
  async #replaced(old: RedisServer): Promise<void> {
    await until('the sentinels have another master', () => this.#isReplaced(old))
  }

  async #isReplaced({ port }: RedisServer): Promise<boolean> {
    const ports = await Promise.all(this.#sentinels.map((sentinel) => sentinel.masterPort()))
    return ports.filter((one) => one !== port).length >= 2
  }

  #serverAt(port: number): RedisServer {
    const server = this.#servers.find((one) => one.port === port)
    if (server === undefined) throw new Error(`no server has port ${port}`)
    return server
  }
}

type Refusing = Pick<RedisServer, 'cli'>

/** Turns a user away, and ends the connections that are there. */
async function refuse(server: Refusing, name: string): Promise<void> {
  await server.cli('ACL', 'SETUSER', name, 'off')
  await server.cli('CLIENT', 'KILL', 'USER', name)
}

async function admit(server: Refusing, name: string): Promise<void> {
  await server.cli('ACL', 'SETUSER', name, 'on')
}

async function newSentinel(master: RedisServer, n: number): Promise<Sentinel> {
  const port = await freePort()
  const config = join(master.folder, `sentinel-${n}.conf`)
  const access = `sentinel auth-user ${masterName} ${thirdUser.name}\nsentinel auth-pass ${masterName} ${thirdUser.password}`
  await writeFile(
    config,
    `bind 127.0.0.1\nport ${port}\ndir ${master.folder}
user ${user.name} on >${user.password} ~* &* +@all
sentinel monitor ${masterName} 127.0.0.1 ${master.port} 2
${n === 3 ? access : ''}
sentinel down-after-milliseconds ${masterName} ${downAfterMs}
sentinel failover-timeout ${masterName} 3000\n`,
  )
  return new Sentinel(port, config)
}
