/**
 * Puts a mixed load on Countersign for a while, restarts parts of it in the middle, and then looks for what should not be left.
 *
 * `npm run soak -- --minutes 10` writes a report into a folder, and says what it found, a line for each. The exit code is 1 if it
 * found anything.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { hasRedis, root } from '../servers.ts'
import { type Plant, plants } from './plants.ts'
import { writeReport } from './report.ts'
import { runScenario, type ScenarioPlan } from './scenario.ts'
import { redisStore, sqliteStore } from './stores.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '20' },
    only: { type: 'string' },
    out: { type: 'string' },
    plant: { type: 'string' },
  },
})

const scenarios: readonly ScenarioPlan[] = [
  { id: 'redis', title: 'two instances on Redis', instances: 2, openStore: redisStore },
  { id: 'sqlite', title: 'one instance on a SQLite file', instances: 1, openStore: sqliteStore },
]

const minutes = positive('minutes', 1)
const rate = positive('rate', 1)
const plant = plantOf(values.plant)
const asked = scenarios.filter(({ id }) => values.only === undefined || values.only === id)
if (asked.length === 0) fail(`--only is one of ${scenarios.map(({ id }) => id).join(', ')}`)
const plans = hasRedis() ? asked : asked.filter(({ id }) => id !== 'redis')

const commit = git('rev-parse', '--short=12', 'HEAD')
const isDirty = git('status', '--porcelain') !== ''
const startedAt = new Date()
const stamp = startedAt.toISOString().slice(0, 16).replaceAll(/[:T]/g, '-')
const folder = values.out ?? join(root, 'bench/results', `soak-${stamp}-${commit}`)

console.log(
  `soak: ${minutes} minutes, ${rate} visits a second on each of: ${plans.map(({ title }) => title).join('; ')}`,
)
const environment: Record<string, string> = plant === undefined ? {} : { SOAK_PLANT: plant }
const say = (text: string): void =>
  console.log(`${((Date.now() - startedAt.getTime()) / 1000).toFixed(0).padStart(5)} s  ${text}`)
// Beside each other: at a bounded rate they do not fill two cores, and an hour stays an hour.
const records = await Promise.all(plans.map((plan) => runScenario(plan, { minutes, rate, environment, say })))
const options = { minutes, rate, startedAt, commit: `${commit}${isDirty ? ', with changes' : ''}`, plant }
await writeReport(folder, records, options)

const findings = records.flatMap((record) => record.findings)
console.log(`report: ${join(folder, 'README.md')}`)
if (findings.length === 0) console.log('nothing was found')
for (const finding of findings) console.log(`FOUND: ${finding}`)
process.exitCode = findings.length === 0 ? 0 : 1

function positive(name: 'minutes' | 'rate', least: number): number {
  const value = Number(values[name])
  if (!(value >= least)) fail(`--${name} is a number from ${least} on`)
  return value
}

function plantOf(value: string | undefined): Plant | undefined {
  const known = plants.find((name) => name === value)
  if (value !== undefined && known === undefined) fail(`--plant is one of ${plants.join(', ')}`)
  return known
}

function fail(text: string): never {
  console.error(text)
  process.exit(1)
}

function git(...args: string[]): string {
  return spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.trim()
}
