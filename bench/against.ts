/**
 * Compares the server of this working tree with that of another commit: `npm run bench:against -- <ref> [path filter]`.
 *
 * Both run side by side, and every path is measured on both in turn, so that whatever else the machine is at hits both
 * alike. What counts is the median of the ratios within a round.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { RedisServer } from '../test/support/redis-server.ts'
import { machine, median, printTable } from './harness.ts'
import { inTurns, type Pair, ratioCells, ratioTitles, runnerOf } from './pairs.ts'
import { paths } from './paths.ts'
import { hasRedis, pin, root, type ServerProcess, startCountersign } from './servers.ts'

/** Rounds for which a server that is new to a path warms up; they do not count. */
const warmUpRounds = 6

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    // Two starts of one program can differ by more than two programs do.
    starts: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '20' },
  },
})
const starts = Number(values.starts)
const roundsPerStart = Number(values.rounds)
const [ref, filter = ''] = positionals
const chosen = paths.filter(({ name }) => name.toLowerCase().includes(filter.toLowerCase()))
if (ref === undefined || chosen.length === 0 || !(starts >= 1) || !(roundsPerStart >= 1)) {
  console.error('Usage: npm run bench:against -- [--starts 5] [--rounds 20] <git ref> [part of the name of a path]')
  for (const { name } of paths) console.error(`  ${name}`)
  process.exit(1)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** `storeFor` gives the servers a store each. */
async function compareOn(storeName: string, storeFor: (open: AsyncDisposableStack) => Promise<string>): Promise<void> {
  const pairs = new Map<string, Pair[]>(chosen.map(({ name }) => [name, []]))
  for (let start = 0; start < starts; start++) {
    await using open = new AsyncDisposableStack()
    const startTree = async (folder: string): Promise<ServerProcess> =>
      open.use(await startCountersign(await storeFor(open), { folder, core: serverCore }))
    // Whichever starts first has no lasting advantage.
    const swapped = start % 2 === 1
    const first = await startTree(swapped ? folders.new : folders.old)
    const second = await startTree(swapped ? folders.old : folders.new)
    const [oldServer, newServer] = swapped ? [second, first] : [first, second]
    for (const path of chosen) {
      using connections = new DisposableStack()
      const oldRunner = await runnerOf(path, oldServer, connections)
      const newRunner = await runnerOf(path, newServer, connections)
      pairs.get(path.name)?.push(...(await inTurns(oldRunner, newRunner, { warmUpRounds, rounds: roundsPerStart })))
    }
  }
  printPairs(storeName, pairs)
}

function printPairs(storeName: string, pairs: ReadonlyMap<string, readonly Pair[]>): void {
  const rows = [...pairs].map(([name, all]) => [
    name,
    median(all.map((pair) => pair.base.perSecond)).toFixed(0),
    median(all.map((pair) => pair.other.perSecond)).toFixed(0),
    ...ratioCells(all.map((pair) => pair.other.perSecond / pair.base.perSecond)),
    ...ratioCells(all.map((pair) => pair.other.cpuMicros / pair.base.cpuMicros)),
  ])
  printTable(
    `${storeName}, ${starts} starts of ${roundsPerStart} rounds`,
    ['old/s', 'new/s', ...ratioTitles('rate new ÷ old'), ...ratioTitles('CPU new ÷ old')],
    rows,
  )
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
console.log(machine())
const serverCore = pin()
console.log(`old: ${git('log', '-1', '--format=%h %s', commit)}`)
console.log(`new: the working tree on ${git('log', '-1', '--format=%h %s')}`)
await compareOn('memory', async () => 'sqlite::memory:')
if (hasRedis()) await compareOn('Redis', async (open) => open.use(await RedisServer.start()).url)
