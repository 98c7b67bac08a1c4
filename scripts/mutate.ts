/**
 * Takes out each defence that SECURITY.md names, one at a time, in a copy of the working tree, and says which test
 * noticed.
 *
 * `npm run mutate` tries every entry of scripts/mutations.ts; `npm run mutate -- nonce 12` those of a row with this
 * number, and those whose file, declaration or text contains one of the words. The exit code is 0 only if each mutation
 * is noticed. An entry with a seed is tried by simulated worlds from this seed on, and by its tests only if none notices.
 * One that keeps a test file from loading has shown nothing, and neither has one whose tests are not green
 * without it either: both count as broken.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { type Mutation, placesOf, worldOf } from './mutation.ts'
import { mutations } from './mutations.ts'
import { copyWorkingTree, root } from './working-copy.ts'

/** Time in ms after which a run of tests is ended. A defence whose absence hangs its tests is one that they notice. */
const limitMs = 180_000

/** The part of vitest's JSON report that is used here. */
interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

type Verdict =
  /** `files` are the test file that failed or, if the tests did not end, all of them. */
  | { readonly kind: 'noticed'; readonly by: string; readonly files: readonly string[] }
  | { readonly kind: 'survived' }
  | { readonly kind: 'broken'; readonly why: string }

const scratch = mkdtempSync(join(tmpdir(), 'countersign-mutate-'))
// A test starts the service as another system user, who has to read the copy.
chmodSync(scratch, 0o755)
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** Makes a copy of the working tree to mutate. Tests import from it, and packages from the original's node_modules. */
function makeCopy(name: string): string {
  const copy = join(scratch, name)
  copyWorkingTree(copy)
  return copy
}

/** Runs some tests in a copy. `undefined` if they do not end in time. */
async function runTests(copy: string, tests: readonly string[]): Promise<Report | undefined> {
  const output = join(copy, 'mutation-report.json')
  rmSync(output, { force: true })
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const child = spawn(
    process.execPath,
    [vitest, 'run', '--bail=1', '--maxWorkers=1', '--reporter=json', `--outputFile=${output}`, ...tests],
    { cwd: copy, stdio: 'ignore', detached: true },
  )
  let late = false
  const timer = setTimeout(() => {
    late = true
    // The tests and the servers that they started are one process group.
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }, limitMs)
  await once(child, 'exit')
  clearTimeout(timer)
  return late ? undefined : (JSON.parse(readFileSync(output, 'utf8')) as Report)
}

function judge(report: Report | undefined, tests: readonly string[], copy: string): Verdict {
  if (report === undefined) {
    return { kind: 'noticed', by: `tests that did not end within ${limitMs / 1000} s`, files: tests }
  }
  for (const { name, assertionResults } of report.testResults) {
    const failed = assertionResults.find(({ status }) => status === 'failed')
    if (failed !== undefined) {
      const file = relative(copy, name)
      return { kind: 'noticed', by: `${file}: ${failed.fullName.trim()}`, files: [file] }
    }
  }
  const unloaded = report.testResults.find(({ assertionResults }) => assertionResults.length === 0)
  if (unloaded !== undefined) {
    return { kind: 'broken', why: `${relative(copy, unloaded.name)} did not load: ${unloaded.message.split('\n')[0]}` }
  }
  // What fails before the first test, such as a hook, leaves all tests of its file skipped.
  const ended = report.testResults.find(({ status }) => status === 'failed')
  if (ended !== undefined) {
    const file = relative(copy, ended.name)
    return { kind: 'noticed', by: `${file}: ${ended.message.split('\n')[0]}`, files: [file] }
  }
  return { kind: 'survived' }
}

/**
 * Runs the world of a seed in a copy, and those after it for a while: another change of the code may have moved what it
 * found to another seed. Resolves with what it says of the one that fails; `undefined` if none does.
 */
async function runWorlds(copy: string, seed: number, kind: readonly string[]): Promise<string | undefined> {
  const args = ['test/world/main.ts', '--seed', String(seed), '--calls', '100000', '--brief', ...kind]
  const child = spawn(process.execPath, args, { cwd: copy, stdio: ['ignore', 'pipe', 'ignore'] })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  await once(child, 'close')
  return /^seed \d+: .*$/m.exec(printed)?.[0]
}

/** Answers of {@link areGreen} by the names of the files, for the whole run. */
const known = new Map<string, Promise<boolean>>()

/**
 * Whether test files end and are green in a copy without a mutation. Those that were asked about before are not run
 * again.
 */
function areGreen(files: readonly string[], copy: string): Promise<boolean> {
  const names = files.join(' ')
  const green =
    known.get(names) ?? runTests(copy, files).then((report) => judge(report, files, copy).kind === 'survived')
  known.set(names, green)
  return green
}

async function tryMutation(copy: string, mutation: Mutation): Promise<Verdict> {
  const { find, replace, tests, seed } = mutation
  const [place, ...others] = placesOf(mutation)
  if (place === undefined || others.length > 0) return { kind: 'broken', why: `there is not one such place: ${find}` }
  const path = join(copy, place.file)
  const original = readFileSync(path, 'utf8')
  let verdict: Verdict
  try {
    writeFileSync(path, original.slice(0, place.start) + replace + original.slice(place.end))
    const found = seed === undefined ? undefined : await runWorlds(copy, seed, worldOf(place))
    if (found !== undefined) return { kind: 'noticed', by: `a simulated world: ${found}`, files: [] }
    verdict = judge(await runTests(copy, tests), tests, copy)
  } finally {
    writeFileSync(path, original)
  }
  // A test that is red anyway, or never ends, would seem to notice everything.
  if (verdict.kind === 'noticed' && !(await areGreen(verdict.files, copy))) {
    return { kind: 'broken', why: `${verdict.files.join(' or ')} is not green without the mutation either` }
  }
  return verdict
}

/** What a mutation does, in a line. */
function describe(mutation: Mutation): string {
  const [place] = placesOf(mutation)
  const by = mutation.replace === '' ? 'without' : `${mutation.replace.replace(/\s+/g, ' ')} in place of`
  return `row ${mutation.row}, ${place?.file ?? '?'}, ${mutation.within}: ${by} ${mutation.find}`
}

const words = process.argv.slice(2)
const asked = mutations.filter(
  (mutation) =>
    words.length === 0 ||
    words.some((word) => (/^\d+$/.test(word) ? mutation.row === Number(word) : describe(mutation).includes(word))),
)
if (asked.length === 0) {
  console.error('No mutation has such a row, file, declaration or text; scripts/mutations.ts lists them')
  process.exit(1)
}

const copies = Array.from({ length: Math.min(availableParallelism(), asked.length) }, (_, index) =>
  makeCopy(String(index)),
)

const queue = [...asked]
const verdicts = new Map<Mutation, Verdict>()
await Promise.all(
  copies.map(async (copy) => {
    for (let mutation = queue.shift(); mutation !== undefined; mutation = queue.shift()) {
      const verdict = await tryMutation(copy, mutation)
      verdicts.set(mutation, verdict)
      const told = { noticed: 'noticed ', survived: 'SURVIVED', broken: 'BROKEN  ' }[verdict.kind]
      const detail = verdict.kind === 'noticed' ? verdict.by : verdict.kind === 'broken' ? verdict.why : 'by no test'
      console.log(`${told} ${describe(mutation)}\n         ${detail}`)
    }
  }),
)

const counts = { noticed: 0, survived: 0, broken: 0 }
for (const { kind } of verdicts.values()) counts[kind]++
console.log(
  `\n${asked.length} mutations: ${counts.noticed} noticed, ${counts.survived} survived, ${counts.broken} broken`,
)
process.exitCode = counts.noticed === asked.length ? 0 : 1
