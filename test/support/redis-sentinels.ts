import type { ChildProcess } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, RedisServer, redisCli, said, spawnRedis } from './redis-server.ts'

/** A master with replicas, and sentinels that watch it under the name `main`. */
export class SentinelSetup {
  readonly servers: readonly RedisServer[]
  readonly sentinels: readonly Sentinel[]
  /** A sentinel that does not know the password: it learns of nothing, and names the first master forever. */
  readonly cutOff: Sentinel

  private constructor(servers: readonly RedisServer[], sentinels: readonly Sentinel[], cutOff: Sentinel) {
    this.servers = servers
    this.sentinels = sentinels
    this.cutOff = cutOff
  }

  /** Starts three servers, three sentinels that replace a master after 1.5 s of silence, and one that is cut off. */
  static async start(): Promise<SentinelSetup> {
    const auth = ['--requirepass', 'pass', '--masterauth', 'pass', '--repl-diskless-sync-delay', '0']
    const master = await RedisServer.start(...auth)
    const replicaOf = ['--replicaof', '127.0.0.1', String(master.port)]
    const replicas = await Promise.all([1, 2].map(() => RedisServer.start(...auth, ...replicaOf)))
    const sentinels = await Promise.all([1, 2, 3].map((n) => Sentinel.start(master, `sentinel-${n}`, 'pass')))
    const cutOff = await Sentinel.start(master, 'cut-off', 'wrong')
    const setup = new SentinelSetup([master, ...replicas], sentinels, cutOff)
    await setup.settled()
    return setup
  }

  get url(): string {
    return this.urlOf(this.sentinels)
  }

  urlOf(sentinels: readonly { readonly port: number }[]): string {
    return `redis+sentinel://:pass@${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/main`
  }

  /** The master that the first sentinel names. */
  async master(): Promise<RedisServer> {
    return this.serverOn(await this.sentinels[0]!.masterPort())
  }

  serverOn(port: number): RedisServer {
    const server = this.servers.find((candidate) => candidate.port === port)
    if (server === undefined) throw new Error(`no server on port ${port}`)
    return server
  }

  /**
   * Resolves once all sentinels name the same master, it has a replica that can take its place, and they know each
   * other.
   */
  async settled(): Promise<void> {
    while (!(await this.#isSettled())) await sleep(100)
  }

  /** Resolves once all replicas that the master has at the moment have what was written to it. */
  async replicated(): Promise<void> {
    const master = await this.master()
    const count = await onlineReplicas(master)
    const reached = Number(await onServer(master, 'WAIT', String(count), '5000'))
    if (reached < count) throw new Error(`${reached} of ${count} replicas have it`)
  }

  /** Resolves once all sentinels name another master than this one. */
  async replaced(master: RedisServer): Promise<void> {
    while (true) {
      const ports = await Promise.all(this.sentinels.map((sentinel) => sentinel.masterPort()))
      if (new Set(ports).size === 1 && ports[0] !== master.port) return
      await sleep(20)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sentinel of [...this.sentinels, this.cutOff]) sentinel.kill()
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()))
  }

  async #isSettled(): Promise<boolean> {
    const master = await this.master()
    const views = await Promise.all(this.sentinels.map((sentinel) => sentinel.view()))
    const areInformed = views.every(
      (view) =>
        view.get('port') === String(master.port) &&
        view.get('flags') === 'master' &&
        view.get('num-other-sentinels') === '2' &&
        view.get('num-slaves') === '2',
    )
    return areInformed && (await onlineReplicas(master)) > 0
  }
}

/** One sentinel. */
export class Sentinel {
  readonly port: number
  readonly #process: ChildProcess

  private constructor(port: number, process: ChildProcess) {
    this.port = port
    this.#process = process
  }

  static async start(master: RedisServer, name: string, password: string): Promise<Sentinel> {
    const port = await freePort()
    const config = join(master.folder, `${name}.conf`)
    const lines = [
      'bind 127.0.0.1',
      `port ${port}`,
      `dir ${master.folder}`,
      `sentinel monitor main 127.0.0.1 ${master.port} 2`,
      `sentinel auth-pass main ${password}`,
      'sentinel down-after-milliseconds main 1500',
      'sentinel failover-timeout main 5000',
    ]
    await writeFile(config, `${lines.join('\n')}\n`)
    const child = spawnRedis([config, '--sentinel'])
    await said(child, '+monitor master main')
    return new Sentinel(port, child)
  }

  /** What the sentinel knows of the master, by the names of its fields. */
  async view(): Promise<ReadonlyMap<string, string>> {
    const lines = (await this.cli('SENTINEL', 'MASTER', 'main')).split('\n')
    return new Map(lines.flatMap((line, i) => (i % 2 === 0 ? [[line, lines[i + 1] ?? ''] as const] : [])))
  }

  async masterPort(): Promise<number> {
    return Number((await this.cli('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main')).split('\n')[1])
  }

  async cli(...args: string[]): Promise<string> {
    return redisCli('-p', String(this.port), ...args)
  }

  freeze(): void {
    this.#process.kill('SIGSTOP')
  }

  thaw(): void {
    this.#process.kill('SIGCONT')
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }
}

/** Runs redis-cli against one of the servers, which have a password. */
export async function onServer(server: RedisServer, ...args: string[]): Promise<string> {
  return server.cli('-a', 'pass', '--no-auth-warning', ...args)
}

async function onlineReplicas(server: RedisServer): Promise<number> {
  return (await onServer(server, 'INFO', 'replication')).match(/state=online/g)?.length ?? 0
}
