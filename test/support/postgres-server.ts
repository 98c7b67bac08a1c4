import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { appendFile, chmod, chown, copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './command.ts'
import { freePort, said } from './redis-server.ts'

const running = new Set<ChildProcess>()

/** The folder of Debian's newest server; its programs are not on the PATH. */
const debianServer: string | undefined = findDebianServer()

/** Name of the superuser of servers of our own, who needs no password. */
const superuser = 'postgres'

/** Kills the servers that are left, as after a test that ran out of time. */
export function killPostgresServers(): void {
  for (const child of running) child.kill('SIGKILL')
}

process.once('exit', killPostgresServers)

/** How a server of our own is made. */
export interface PostgresOptions {
  /** The folder of the server's programs. Default: Debian's. */
  readonly programs?: string
  /** Further arguments of initdb, such as a locale or an encoding. */
  readonly initdb?: readonly string[]
  /** Further settings, as postgresql.conf has them. */
  readonly settings?: Readonly<Record<string, string>>
  /** Files of the server's certificate and key, and of the authority of clients' certificates. Default: no TLS. */
  readonly certificate?: { readonly cert: string; readonly key: string; readonly authority?: string }
  /** The server that it is a standby of; `initdb` does not count then. */
  readonly primary?: PostgresServer
  /** An existing folder for its own. Default: one in the folder of temporary files. */
  readonly parent?: string
}

/** A PostgreSQL server of our own on a loopback port, in a folder of its own. */
export class PostgresServer {
  readonly port: number
  readonly folder: string
  /** The folder of the server's programs. */
  readonly programs: string
  readonly #settings: Readonly<Record<string, string>>
  #process: ChildProcess | undefined

  private constructor(port: number, folder: string, programs: string, settings: Readonly<Record<string, string>>) {
    this.port = port
    this.folder = folder
    this.programs = programs
    this.#settings = settings
  }

  static async start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const { programs = debianServer, initdb = [], settings = {}, certificate, primary, parent = tmpdir() } = options
    if (programs === undefined) throw new Error('there is no PostgreSQL server on this machine')
    const folder = await mkdtemp(join(parent, 'countersign-postgres-'))
    const user = await serverUser()
    if (user !== undefined) await chown(folder, user.uid, user.gid)
    await chmod(folder, 0o700)
    const tls: Record<string, string> = {}
    for (const [setting, file] of Object.entries({
      ssl_cert_file: certificate?.cert,
      ssl_key_file: certificate?.key,
      ssl_ca_file: certificate?.authority,
    })) {
      if (file === undefined) continue
      const own = join(folder, setting)
      await copyFile(file, own)
      await chmod(own, 0o600)
      if (user !== undefined) await chown(own, user.uid, user.gid)
      Object.assign(tls, { ssl: 'on', [setting]: own })
    }
    const server = new PostgresServer(await freePort(), folder, programs, { ...tls, ...settings })
    // Nothing is synced: what these servers keep ends with them. It outlives their processes, for the kernel has it.
    const [program, ...args] = primary
      ? ['pg_basebackup', '-R', '-d', primary.url(), '-c', 'fast']
      : ['initdb', '-U', superuser, '-A', 'trust', ...initdb]
    await run(join(programs, program!), ['-D', server.data, '--no-sync', ...args], {
      ...user,
      env: { ...process.env, LC_ALL: 'C.UTF-8' },
    })
    await server.start()
    return server
  }

  /** The folder of its data. */
  get data(): string {
    return join(this.folder, 'data')
  }

  /** The URL of a database, as the superuser. */
  url(database = 'postgres', user = superuser): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`
  }

  /** Starts the server again on the same port, after a stop. */
  async start(): Promise<void> {
    const settings = {
      fsync: 'off',
      listen_addresses: '127.0.0.1',
      unix_socket_directories: this.folder,
      ...this.#settings,
    }
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const program = join(this.programs, 'postgres')
    const child = await spawnAsServerUser(program, ['-D', this.data, '-p', String(this.port), ...args], this.folder)
    this.#process = child
    await said(child, 'ready to accept')
  }

  /** Starts the server again, after a stop in good order, as a standby of the one that has taken its place. */
  async startAsStandbyOf(primary: PostgresServer): Promise<void> {
    const address = `host=127.0.0.1 port=${primary.port} user=${superuser}`
    await appendFile(join(this.data, 'postgresql.auto.conf'), `primary_conninfo = '${address}'\n`)
    await writeFile(join(this.data, 'standby.signal'), '')
    await this.start()
  }

  /** Ends the server as a crash does: its processes are killed by the first that sees it. */
  async kill(): Promise<void> {
    await this.#end('SIGQUIT')
  }

  /** Ends the server, and all connections to it, in good order. */
  async stop(): Promise<void> {
    await this.#end('SIGINT')
  }

  /** Whether it has not ended, be it by itself. */
  get isRunning(): boolean {
    return this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null
  }

  /** Stops all processes of the server from answering, while their connections stay open. */
  freeze(): void {
    const { pid } = this.#process ?? {}
    if (pid === undefined) return
    // First the one that makes the others.
    process.kill(pid, 'SIGSTOP')
    for (const child of childrenOf(pid)) signalIfThere(child, 'SIGSTOP')
  }

  /** Lets a frozen server go on. */
  thaw(): void {
    const { pid } = this.#process ?? {}
    if (pid === undefined) return
    for (const one of [...childrenOf(pid), pid]) signalIfThere(one, 'SIGCONT')
  }

  /** Runs psql as the superuser and returns what it prints, unaligned and without headings. */
  psql(command: string, database?: string): Promise<string> {
    return this.psqlAt(this.url(database), command)
  }

  /** The same at another address of the server. */
  async psqlAt(url: string, command: string): Promise<string> {
    const args = ['-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', command]
    const { stdout } = await run('psql', args)
    return stdout.trim()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await rm(this.folder, { recursive: true, force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
}

/** Starts a program as the user of the server; it is killed when the process of the tests ends. */
export async function spawnAsServerUser(
  program: string,
  args: readonly string[],
  folder: string,
): Promise<ChildProcess> {
  const user = await serverUser()
  if (user !== undefined) await chown(folder, user.uid, user.gid)
  const child = spawn(program, [...args], { ...user, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** The system user of the server, which refuses to run as root. */
async function serverUser(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const [{ stdout: uid }, { stdout: gid }] = await Promise.all([
    run('id', ['-u', 'postgres']),
    run('id', ['-g', 'postgres']),
  ])
  return { uid: Number(uid), gid: Number(gid) }
}

/** Signals a process that may have ended since it was looked for. */
function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}

function findDebianServer(): string | undefined {
  const root = '/usr/lib/postgresql'
  if (!existsSync(root)) return undefined
  const versions = readdirSync(root)
    .map(Number)
    .filter(Number.isInteger)
    .sort((one, other) => other - one)
  const folders = versions.map((version) => `${root}/${version}/bin`)
  return folders.find((folder) => existsSync(`${folder}/postgres`))
}
