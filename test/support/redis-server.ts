import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './command.ts'

const running = new Set<ChildProcess>()

/** The redis-server of the machine. */
const ownProgram: readonly string[] = ['redis-server']

/** Starts a server with arguments; what it says when it is ready is to be waited for with `said`. */
export function spawnRedis(args: readonly string[], [program = '', ...before] = ownProgram): ChildProcess {
  const child = spawn(program, [...before, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Kills the servers that are left, as after a test that ran out of time. */
export function killServers(): void {
  for (const child of running) child.kill('SIGKILL')
}

process.once('exit', killServers)

/** A redis-server of our own, on a loopback port, in a folder of its own, without persistence. */
export class RedisServer {
  readonly port: number
  readonly #folder: string
  readonly #args: readonly string[]
  readonly #program: readonly string[]
  #process: ChildProcess | undefined

  private constructor(port: number, folder: string, args: readonly string[], program: readonly string[]) {
    this.port = port
    this.#folder = folder
    this.#args = args
    this.#program = program
  }

  /** Starts a server with further arguments of redis-server. */
  static async start(...args: string[]): Promise<RedisServer> {
    return RedisServer.startProgram(ownProgram, ...args)
  }

  /** Starts a server of another program, given with the arguments that come before all others. */
  static async startProgram(program: readonly string[], ...args: string[]): Promise<RedisServer> {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-redis-'))
    const server = new RedisServer(await freePort(), folder, args, program)
    await server.start()
    return server
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** The folder of the server; it goes when the server is disposed of. */
  get folder(): string {
    return this.#folder
  }

  /** Starts the server again on the same port, after a stop. */
  async start(): Promise<void> {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#folder]
    const quiet = ['--save', '', '--appendonly', 'no', ...this.#args]
    this.#process = spawnRedis([...args, ...quiet], this.#program)
    await said(this.#process, 'Ready to accept connections')
  }

  /** Kills the server without a goodbye. */
  async kill(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  /** Stops the server from answering, while its connections stay open. */
  freeze(): void {
    this.#process?.kill('SIGSTOP')
  }

  /** Lets a frozen server go on. */
  thaw(): void {
    this.#process?.kill('SIGCONT')
  }

  /** Resolves once the server logs a text. */
  async logs(text: string): Promise<void> {
    if (this.#process) await said(this.#process, text)
  }

  /** Runs redis-cli against the server and returns what it prints. */
  async cli(...args: string[]): Promise<string> {
    return redisCli('-p', String(this.port), ...args)
  }

  /** Resolves once one replica has everything that was written until now. `args` are for redis-cli. */
  async replicated(key: string, ...args: string[]): Promise<void> {
    // WAIT waits for what its own connection wrote, and so for all that was written before that.
    const writing = run('redis-cli', ['-e', '-p', String(this.port), ...args])
    writing.child.stdin?.end(`SET ${key} 1 PX 1000\nWAIT 1 5000\n`)
    const { stdout } = await writing
    if (stdout.trim() !== 'OK\n1') throw new Error(`nothing was replicated: ${stdout}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Runs redis-cli and returns what it prints; rejects when Redis answers with an error. */
export async function redisCli(...args: string[]): Promise<string> {
  const { stdout } = await run('redis-cli', ['-e', ...args])
  return stdout.trim()
}

/** Resolves once a process has printed a text; rejects, with all it printed, when it ends instead. */
export async function said(child: ChildProcess, text: string): Promise<void> {
  let printed = ''
  await new Promise<void>((resolve, reject) => {
    const onData = (chunk: Buffer) => {
      printed += chunk
      if (printed.includes(text)) resolve()
    }
    child.stdout?.on('data', onData)
    child.stderr?.on('data', onData)
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`${child.spawnfile} ended with ${code}: ${printed}`)))
  })
}

/**
 * Finds a loopback port that is free now, together with the port 10,000 above it, which a cluster node takes as well. On
 * Linux, no other process that runs tests finds it until this one has ended.
 */
export async function freePort(): Promise<number> {
  while (true) {
    // Both lie below the ports that the system gives to outgoing connections.
    const port = randomInt(11_000, 22_000)
    if ((await reserve(port)) && (await isFree(port)) && (await isFree(port + 10_000))) return port
  }
}

/** Marks a port by an abstract socket, which Linux alone has: for all processes, and closed with this one. */
async function reserve(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return true
  return await new Promise((resolve) => {
    const mark = createServer().unref()
    mark.once('error', () => resolve(false))
    mark.listen(`\0countersign-tests-${port}`, () => resolve(true))
  })
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
