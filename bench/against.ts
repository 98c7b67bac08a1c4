/**
 * Compares the server of this working tree with that of another commit: `npm run bench:against -- <ref> [path filter]`.
 *
 * Both run side by side and take turns on every path, so that disturbances hit both alike. What counts is the median of the ratios
 * within a round.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { RedisServer } from '../test/support/redis-server.ts'
import { paths } from './paths.ts'
import { hasRedis, pin, root, type ServerProcess, startCountersign, startPostgres } from './servers.ts'
import { ascending, median, printTable, ratios, type Turn, takeTurns } from './turns.ts'

/** Rounds that do not count: a server that is new to a path compiles. */
const warmUpRounds = 6
const size = { concurrency: 16, turnMs: 100 }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    // Two starts of one program can differ by more than two programs do.
    starts: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '20' },
    /** Of sqlite, redis and postgresql. */
    stores: { type: 'string', default: 'sqlite,redis' },
  },
})
const starts = Number(values.starts)
const roundsPerStart = Number(values.rounds)
const [ref, filter = ''] = positionals
const chosen = paths.filter(({ name }) => name.toLowerCase().includes(filter.toLowerCase()))
if (ref === undefined || chosen.length === 0 || !(starts >= 1) || !(roundsPerStart >= 1)) {
  console.error(
    'Usage: npm run bench:against -- [--starts 5] [--rounds 20] [--stores redis,postgresql] <git ref> [part of the name of a path]',
  )
  for (const { name } of paths) console.error(`  ${name}`)
  process.exit(1)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** What both trees came to on a path, by round. */
interface Compared {
  readonly old: Turn[]
  readonly new: Turn[]
}

/** `storeFor` gives each server a store of its own. */
async function compareOn(storeName: string, storeFor: (open: AsyncDisposableStack) => Promise<string>): Promise<void> {
  const all = new Map<string, Compared>(chosen.map(({ name }) => [name, { old: [], new: [] }]))
  for (let start = 0; start < starts; start++) {
    await using open = new AsyncDisposableStack()
    const startTree = async (folder: string): Promise<ServerProcess> =>
      open.use(await startCountersign(await storeFor(open), { folder, core: serverCore }))
    // The tree that starts first has no lasting advantage.
    const swapped = start % 2 === 1
    const first = await startTree(swapped ? folders.new : folders.old)
    const second = await startTree(swapped ? folders.old : folders.new)
    const servers = swapped ? { old: second, new: first } : { old: first, new: second }
    for (const path of chosen) {
      using connections = new DisposableStack()
      const contestantOf = async (name: 'old' | 'new') => {
        const server = servers[name]
        return { name, server, load: await path.connect(server.port, connections, size) }
      }
      const contestants = [await contestantOf('old'), await contestantOf('new')]
      const turns = await takeTurns(contestants, { warmUpRounds, rounds: roundsPerStart })
      for (const name of ['old', 'new'] as const) all.get(path.name)?.[name].push(...(turns.get(name) ?? []))
    }
  }
  printTable(
    `${storeName}, ${starts} starts of ${roundsPerStart} rounds`,
    ['old/s', 'new/s', 'rate new ÷ old', '95 %', 'CPU new ÷ old', '95 %'],
    [...all].map(([name, compared]) => [
      name,
      ...[compared.old, compared.new].map((turns) => median(turns.map(({ perSecond }) => perSecond)).toFixed(0)),
      ...ratioCells(ratios(compared.new, compared.old, ({ perSecond }) => perSecond)),
      ...ratioCells(ratios(compared.new, compared.old, ({ cpuMicros }) => cpuMicros)),
    ]),
  )
}

/** The median of ratios, and the range that contains it with a probability of 95 %. */
function ratioCells(values: readonly number[]): string[] {
  const sorted = values.toSorted(ascending)
  // The ranks of a binomial count, taken as normal.
  const reach = 0.98 * Math.sqrt(sorted.length)
  const at = (rank: number): string => (sorted[Math.min(Math.max(rank, 0), sorted.length - 1)] ?? NaN).toFixed(3)
  const range = `${at(Math.floor(sorted.length / 2 - reach))} to ${at(Math.ceil(sorted.length / 2 + reach))}`
  return [median(sorted).toFixed(3), range]
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()
}

function commitOf(ref: string): string {
  try {
    return git('rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`)
  } catch {
    console.error(`${ref} is not a commit of this repository`)
    process.exit(1)
  }
}

/** Checks a commit out into a folder of its own, which is removed when this process ends. */
function checkOut(commit: string): string {
  const parent = mkdtempSync(join(tmpdir(), 'countersign-bench-'))
  const folder = join(parent, 'old')
  process.once('exit', () => {
    spawnSync('git', ['worktree', 'remove', '--force', folder], { cwd: root, stdio: 'ignore' })
    rmSync(parent, { recursive: true, force: true })
  })
  git('worktree', 'add', '--quiet', '--detach', folder, commit)
  if (git('diff', '--name-only', commit, '--', 'package-lock.json') === '') {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  } else {
    execFileSync('npm', ['ci', '--ignore-scripts', '--loglevel=error'], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
  return folder
}

const commit = commitOf(ref)
const folders = { old: checkOut(commit), new: root }
const serverCore = pin()
console.log(`old: ${git('log', '-1', '--format=%h %s', commit)}`)
console.log(`new: the working tree on ${git('log', '-1', '--format=%h %s')}`)
const stores = values.stores.split(',')
if (stores.includes('sqlite')) {
  await compareOn('SQLite file', async (open) => {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-bench-store-'))
    open.defer(() => rmSync(folder, { recursive: true, force: true }))
    return `sqlite:${join(folder, 'store.db')}`
  })
}
if (stores.includes('redis') && hasRedis()) {
  await compareOn('Redis', async (open) => open.use(await RedisServer.start()).url)
}
if (stores.includes('postgresql')) await compareOn('PostgreSQL', async (open) => open.use(await startPostgres()).url())
