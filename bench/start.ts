import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, lstat, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { packPackage } from '../scripts/pack.ts'
import { RedisServer } from '../test/support/redis-server.ts'
import { formatMs, median, printTable } from './harness.ts'
import { hasRedis, pin, root } from './servers.ts'

const run = promisify(execFile)

/** Starts on each store; the first one warms the system's cache of files and does not count. */
const starts = 7
const secret = 'a secret for benchmarks and for nothing else'

/** How long the packed service takes to start, and how large it is. */
export async function benchStart(): Promise<void> {
  const core = pin()
  await using open = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'countersign-bench-'))
  open.defer(() => rm(folder, { recursive: true, force: true }))
  const tarball = await packPackage()
  await run('tar', ['-xzf', tarball, '-C', folder])
  const unpacked = join(folder, 'package')
  const production = await productionPackages()
  // As npm would install them; what is started must not find those of development.
  for (const [name, from] of production) {
    await cp(from, join(unpacked, 'node_modules', name), {
      recursive: true,
      filter: (path) => !path.slice(from.length).includes('node_modules'),
    })
  }
  await printSizes(tarball, unpacked, [...production.keys()])

  const stores: (readonly [string, string])[] = [
    ['memory', 'sqlite::memory:'],
    ['SQLite in a file', `sqlite:${join(folder, 'store.db')}`],
  ]
  if (hasRedis()) stores.push(['Redis', open.use(await RedisServer.start()).url])
  const rows: string[][] = []
  for (const [name, store] of stores) {
    const all: Started[] = []
    for (let start = 0; start < starts; start++) all.push(await startOnce(unpacked, store, core))
    const counted = all.slice(1)
    const middle = (of: (started: Started) => number): string => formatMs(median(counted.map(of)))
    rows.push([
      name,
      middle(({ readyMs }) => readyMs),
      middle(({ nonceMs }) => nonceMs),
      middle(({ pageMs }) => pageMs),
      middle(({ cpuMs }) => cpuMs),
    ])
  }
  const bare: number[] = []
  for (let start = 0; start < starts; start++) bare.push(await startBare(core))
  rows.push(['floor: node that prints a line', formatMs(median(bare.slice(1))), '', '', ''])
  printTable(
    `Start of the packed service, with its pages, ${starts - 1} times; each time from the start of the process`,
    ['ready', 'first answer', 'first page', 'CPU until ready'],
    rows,
  )
}

interface Started {
  /** From the start of the process, ms. */
  readonly readyMs: number
  /** Until the first nonce is answered. */
  readonly nonceMs: number
  /** Until the sign-in page is answered, after that. */
  readonly pageMs: number
  /** CPU time of the process until it is ready. */
  readonly cpuMs: number
}

async function startOnce(folder: string, store: string, core: number | undefined): Promise<Started> {
  const startedAt = performance.now()
  const since = (): number => performance.now() - startedAt
  const child = spawnPinned(core, [join(folder, 'dist/src/main.js')], {
    PORT: '0',
    HOST: '127.0.0.1',
    COUNTERSIGN_STORE: store,
    COUNTERSIGN_SECRET: secret,
    COUNTERSIGN_DRAIN_SECONDS: '0',
    COUNTERSIGN_LOG_FORMAT: 'json',
  })
  try {
    const port = await readyPort(child)
    const readyMs = since()
    const cpuMs = await cpuMsOf(child)
    const address = `http://127.0.0.1:${port}`
    const answered = async (path: string, init?: RequestInit): Promise<number> => {
      const response = await fetch(address + path, init)
      await response.arrayBuffer()
      if (!response.ok) throw new Error(`${path} answered ${response.status}`)
      return since()
    }
    const headers = { 'content-type': 'application/json', origin: address }
    const nonceMs = await answered('/api/auth/wallet/nonce', { method: 'POST', body: '{}', headers })
    return { readyMs, nonceMs, pageMs: await answered('/'), cpuMs }
  } finally {
    await stop(child)
  }
}

async function startBare(core: number | undefined): Promise<number> {
  const startedAt = performance.now()
  const child = spawnPinned(core, ['-e', 'process.stderr.write("ready\\n")'], {})
  await once(child.stderr as NodeJS.ReadableStream, 'data')
  const ms = performance.now() - startedAt
  await stop(child)
  return ms
}

function spawnPinned(
  core: number | undefined,
  args: readonly string[],
  environment: Record<string, string>,
): ChildProcess {
  const [command = '', ...rest] = [
    ...(core === undefined ? [] : ['taskset', '-c', String(core)]),
    process.execPath,
    ...args,
  ]
  return spawn(command, rest, {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
}

async function readyPort(child: ChildProcess): Promise<number> {
  let printed = ''
  for await (const line of createInterface(child.stderr as NodeJS.ReadableStream)) {
    printed += `${line}\n`
    const port = /"text":"ready".*"port":(\d+)/.exec(line)?.[1]
    if (port !== undefined) return Number(port)
  }
  throw new Error(`the service ended: ${printed}`)
}

/** CPU time of a process so far, in ms; NaN where the system does not tell it. */
async function cpuMsOf({ pid }: ChildProcess): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  // Ticks of a hundredth of a second, on every Linux that Node runs on.
  return ((user ?? NaN) + (system ?? NaN)) * 10
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.stderr?.resume()
  child.kill('SIGTERM')
  await exited
}

async function printSizes(tarball: string, unpacked: string, production: readonly string[]): Promise<void> {
  const folders = join(unpacked, 'node_modules')
  const sizes = await Promise.all(production.map(async (name) => [name, await sizeOf(join(folders, name))] as const))
  const dependencies = sizes.reduce((sum, [, size]) => sum + size, 0)
  const whole = await sizeOf(unpacked)
  const largest = sizes.toSorted(([, a], [, b]) => b - a).slice(0, 5)
  const rows = [
    ['tarball', mib((await lstat(tarball)).size)],
    ['unpacked', mib(whole - dependencies)],
    [`its ${production.length} packages for production`, mib(dependencies)],
    ['installed', mib(whole)],
    ...largest.map(([name, size]) => [`of that ${name}`, mib(size)]),
  ]
  printTable('Size of the package, files only', ['size'], rows)
}

/**
 * The packages that an installation has, by name, with the folders that they are in here: what package.json and those that it names
 * depend on. A name that is there in two versions counts once.
 */
async function productionPackages(): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const visit = async (folder: string): Promise<void> => {
    const { dependencies = {} } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    for (const name of Object.keys(dependencies)) {
      if (found.has(name)) continue
      const of = await folderOf(name, folder)
      found.set(name, of)
      await visit(of)
    }
  }
  await visit(root)
  return found
}

/** The folder of a package as a file in another folder finds it. */
async function folderOf(name: string, from: string): Promise<string> {
  for (const folder of createRequire(join(from, 'package.json')).resolve.paths(name) ?? []) {
    const candidate = join(folder, name)
    if (await lstat(join(candidate, 'package.json')).catch(() => undefined)) return await realpath(candidate)
  }
  throw new Error(`${name}, which ${dirname(from)} needs, is not installed`)
}

async function sizeOf(path: string): Promise<number> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const sizes = await Promise.all(files.map(async ({ parentPath, name }) => (await lstat(join(parentPath, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

function mib(size: number): string {
  return `${(size / 1024 ** 2).toFixed(2)} MiB`
}
