/**
 * Puts a mixed load on Countersign for a while, restarts parts of it in the middle, and then looks for what should not
 * be left.
 *
 * `npm run soak -- --minutes 10` prints times, memory and what it found, a line for each. The exit code is 1 if it
 * found anything. `--out FILE` keeps everything that was measured, in JSON.
 */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { hasRedis } from '../servers.ts'
import { formatMs, median, percentile, printTable } from '../turns.ts'
import { type Plant, plants } from './plants.ts'
import { runScenario, type ScenarioPlan, type ScenarioRecord } from './scenario.ts'
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

const startedAt = Date.now()
console.log(
  `soak: ${minutes} minutes, ${rate} visits a second on each of: ${plans.map(({ title }) => title).join('; ')}`,
)
const environment: Record<string, string> = plant === undefined ? {} : { SOAK_PLANT: plant }
const say = (text: string): void =>
  console.log(`${((Date.now() - startedAt) / 1000).toFixed(0).padStart(5)} s  ${text}`)
// Beside each other: at a bounded rate they do not fill two cores, and an hour stays an hour.
const records = await Promise.all(plans.map((plan) => runScenario(plan, { minutes, rate, environment, say })))
for (const record of records) printRecord(record)
if (values.out !== undefined) await writeFile(values.out, `${JSON.stringify(records, undefined, 2)}\n`)

const findings = records.flatMap((record) => record.findings)
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

/** How long calls and events took, and the memory of each process. */
function printRecord({ title, times, processes }: ScenarioRecord): void {
  const kinds = Map.groupBy(times, ({ kind, protocol }) => `${kind}, ${protocol}`)
  printTable(
    title,
    ['times', 'p50', 'p99'],
    [...kinds].map(([kind, all]) => {
      const took = all.map(({ value }) => value)
      return [kind, String(took.length), formatMs(median(took)), formatMs(percentile(took, 0.99))]
    }),
  )
  const mib = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MiB`
  printTable(
    `${title}: memory, medians`,
    ['heap', 'resident', 'heap when idle, after the load'],
    processes.map(({ name, samples, idle }) => [
      name,
      mib(median(samples.map(({ heapUsed }) => heapUsed))),
      mib(median(samples.map(({ rss }) => rss))),
      idle === undefined ? '' : mib(idle.memory.heapUsed),
    ]),
  )
}
