import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { PostgresServer } from '../test/support/postgres-server.ts'
import type { LoopTurns, Usage, UsageQuestion } from './probe.ts'

/** A server in a process of its own, on a loopback port. */
export interface ServerProcess extends AsyncDisposable {
  readonly port: number
  /** What it has used so far. */
  usage(question: UsageQuestion): Promise<Usage>
  /** Stops it as an operator does, and resolves when it has ended with what its event loop did meanwhile. */
  stop(): Promise<LoopTurns>
}

/** The instances of one service: what they have in common. */
export const publicUrl = 'http://countersign.test'

/** The folder of this working tree. */
export const root = fileURLToPath(new URL('..', import.meta.url))
const probeUrl = new URL('./probe.ts', import.meta.url).href
const stopMs = 3000
/** Time between two looks at whether a server is ready. */
const readyPauseMs = 20
/** How much is read of the beginning and of the end of a log, bytes. */
const logPieceBytes = 65_536

// A run that breaks off leaves no server behind.
const running = new Map<ChildProcess, LogFile>()
process.once('exit', () => {
  for (const [child, log] of running) {
    child.kill('SIGKILL')
    log.remove()
  }
})

/** Which Countersign to start, and how. */
export interface CountersignStart {
  /** Folder of the working tree whose server it is. Default: this one. */
  readonly folder?: string
  /** Number of the processor core that it is to stay on. Default: any. */
  readonly core?: number | undefined
  /** Whether it limits clients, which it tells apart by what a proxy in front says. Default: no. */
  readonly limited?: boolean
  /** Lifetime of an order in seconds. Default: that of the service. */
  readonly orderTtlSeconds?: number
  /** File with the clients of its issuer. Default: it is none. */
  readonly oidcClients?: string
}

/**
 * Starts Countersign as `npm start` does, on this store and without its pages, which are not measured. Callers send the
 * origin {@link publicUrl}.
 */
export async function startCountersign(
  store: string,
  { folder = root, core, limited = false, orderTtlSeconds, oidcClients }: CountersignStart = {},
): Promise<ServerProcess> {
  const environment = {
    PORT: '0',
    HOST: '127.0.0.1',
    COUNTERSIGN_PUBLIC_URL: publicUrl,
    COUNTERSIGN_STORE: store,
    COUNTERSIGN_ADAPTERS: 'nimiq,ed25519,ethereum',
    COUNTERSIGN_RATE_LIMIT: limited ? 'on' : 'off',
    COUNTERSIGN_TRUST_PROXY: limited ? '1' : '0',
    COUNTERSIGN_PAGES: 'off',
    COUNTERSIGN_DRAIN_SECONDS: '0',
    // An order is finalized by its computer alone.
    COUNTERSIGN_CONFIRMATION_CODE: 'compare',
    // All load comes from one address, and each watcher by server-sent events has a connection of its own.
    COUNTERSIGN_MAX_CONNECTIONS_PER_ADDRESS: '1000000',
    ...(orderTtlSeconds === undefined ? {} : { COUNTERSIGN_ORDER_TTL_SECONDS: String(orderTtlSeconds) }),
    ...(oidcClients === undefined ? {} : { COUNTERSIGN_OIDC_CLIENTS: oidcClients }),
    // An embedded store keeps a secret of its own.
    ...(store.startsWith('sqlite:') ? {} : { COUNTERSIGN_SECRET: 'a secret for benchmarks and for nothing else' }),
  }
  return await start([join(folder, 'src/main.ts')], environment, core)
}

/** A PostgreSQL as Debian sets it up, which waits for the disk at each commit. */
export function startPostgres(): Promise<PostgresServer> {
  return PostgresServer.start({ settings: { fsync: 'on' } })
}

/** A server to compare with. */
export type Floor = 'least' | 'connect-node' | 'better-auth' | 'oidc-koa'

/** Starts a floor on a Redis. Better Auth and the floor of the issuer speak HTTP/1.1 only; the latter has no Redis. */
export async function startFloor(
  floor: Floor,
  redisUrl: string,
  http: 'http' | 'http2',
  core?: number,
): Promise<ServerProcess> {
  const file = fileURLToPath(new URL(`./floors/${floor}.ts`, import.meta.url))
  return await start([file, redisUrl, http], {}, core)
}

async function start(
  args: readonly string[],
  environment: Record<string, string>,
  core?: number,
): Promise<ServerProcess> {
  const pinned = core === undefined ? [] : ['taskset', '-c', String(core)]
  // Options of node go on to the servers: that is how one is profiled. All have the one that Countersign is run with.
  const options = ['--min-semi-space-size=16', ...process.execArgv]
  const node = [process.execPath, ...options, '--expose-gc', '--import', probeUrl]
  const [command = '', ...rest] = [...pinned, ...node, ...args]
  const log = await LogFile.create()
  const child = spawn(command, rest, {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'ignore', log.descriptor, 'ipc'],
  })
  running.set(child, log)
  const exited = once(child, 'exit').then(() => running.delete(child))
  return {
    port: await portIn(log, child),
    async usage(question) {
      const answer = once(child, 'message') as Promise<[Usage]>
      child.send(question)
      const [usage] = await answer
      return usage
    },
    async stop() {
      child.kill('SIGTERM')
      await exited
      return turnsIn(log.end())
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), stopMs)
      await exited
      clearTimeout(late)
      log.remove()
    },
  }
}

/**
 * What a server writes to standard error, in a file: that is what a log costs it. To read it from a pipe would be work of the process
 * that makes the load, and each write would wake it.
 */
class LogFile {
  readonly descriptor: number
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
    this.descriptor = openSync(join(folder, 'log'), 'a+')
  }

  static async create(): Promise<LogFile> {
    return new LogFile(await mkdtemp(join(tmpdir(), 'countersign-bench-log-')))
  }

  beginning(): string {
    return this.#read(0)
  }

  end(): string {
    return this.#read(Math.max(0, fstatSync(this.descriptor).size - logPieceBytes))
  }

  #read(position: number): string {
    const piece = Buffer.alloc(logPieceBytes)
    return piece.toString('utf8', 0, readSync(this.descriptor, piece, 0, piece.length, position))
  }

  remove(): void {
    closeSync(this.descriptor)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The port that a server names when it is ready. Rejects with what it printed if it ends without. */
async function portIn(log: LogFile, child: ChildProcess): Promise<number> {
  for (;;) {
    const hasEnded = child.exitCode !== null || child.signalCode !== null
    const printed = log.beginning()
    const said = /"text":"ready".*"port":(\d+)/.exec(printed)?.[1]
    if (said !== undefined) return Number(said)
    if (hasEnded) {
      log.remove()
      throw new Error(`the server ended: ${printed}`)
    }
    await sleep(readyPauseMs)
  }
}

/** What a server's probe says last. */
function turnsIn(printed: string): LoopTurns {
  const line = printed.split('\n').findLast((one) => one.startsWith('{"text":"turns"'))
  if (line === undefined) throw new Error(`the server ended: ${printed}`)
  return JSON.parse(line) as LoopTurns
}

/** Whether redis-server can be started; says so when not, so that nobody takes a short run for a whole one. */
export function hasRedis(): boolean {
  if (spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status === 0) return true
  console.log('\nSKIPPED: everything on Redis, because redis-server is not installed')
  return false
}

/**
 * Pins this process, which makes the load, to one core, and returns another for the servers; `undefined` if that cannot be done.
 * A Redis that this process starts shares its core.
 */
export function pin(): number | undefined {
  const [load, server] = allowedCores()
  const args = ['-a', '-c', '-p', String(load), String(process.pid)]
  const pinned = server !== undefined && spawnSync('taskset', args, { stdio: 'ignore' }).status === 0
  console.log(pinned ? `servers on core ${server}` : 'not pinned: taskset or a second core is missing')
  return pinned ? server : undefined
}

function allowedCores(): number[] {
  const status = process.platform === 'linux' ? readFileSync('/proc/self/status', 'utf8') : ''
  const allowed = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? ''
  return allowed.split(',').flatMap((range) => {
    const [first = NaN, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 || 0 }, (_, offset) => first + offset)
  })
}
