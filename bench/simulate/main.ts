/**
 * Replays a hundredth of a day of ten million users on a real Redis cluster and two instances, and compares what they use with
 * what the model of docs/scaling.md says. Exits with 1 if the two are further apart than 20 %.
 *
 * `npm run simulate` takes 20 minutes, and measures for two more what single events cost on this machine. `--minutes 2` replays a
 * tenth of that at the same rates; `--users 1000 --minutes 2` lets fewer users come in that time. `--short` measures single events for less
 * time, and less exactly.
 */
import { parseArgs } from 'node:util'
import { measureFigures, printFigures } from '../costs.ts'
import { formatMs, machine, printTable, printVerdict } from '../harness.ts'
import { hasRedis } from '../servers.ts'
import { type Comparison, comparisons, tolerance } from './comparison.ts'
import { typicalDay } from './day.ts'
import { expect } from './model.ts'
import { People } from './people.ts'
import { type Replayed, replay } from './replay.ts'
import { Stage } from './stage.ts'

const instanceCount = 2
const shardCount = 3
/** A hundredth of a day's events is what so many users do in a day, replayed in so many minutes. */
const hundredth = { users: typicalDay.users / 100, minutes: 20 }

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: String(hundredth.minutes) },
    users: { type: 'string' },
    seed: { type: 'string', default: '1' },
    short: { type: 'boolean', default: false },
  },
})
const minutes = Number(values.minutes)
const population = Math.round(Number(values.users ?? (hundredth.users * minutes) / hundredth.minutes))
const seed = Number(values.seed)
if (!(minutes > 0 && minutes <= 24 * 60 && population >= 1 && Number.isSafeInteger(seed))) {
  console.error('--minutes is a number from 0 to 1440, --users a number from 1, and --seed a whole number')
  process.exit(2)
}
console.log(machine())
if (!hasRedis()) process.exit(1)
const figures = await measureFigures(values.short)
printFigures(figures)
const run = { day: typicalDay, population, seconds: minutes * 60, instances: instanceCount, shards: shardCount }
const { replayed, found } = await simulate()
printOutcomes(replayed)
printComparisons(found)
const failed = replayed.outcomes.reduce((sum, outcome) => sum + outcome.failed, 0)
for (const failure of replayed.failures) console.log(failure)
const apart = found.filter(({ fits }) => !fits).map(({ name }) => name)
const broken = [...apart, ...(failed > 0 ? [`${failed} events failed`] : [])]
printVerdict(`the model is right within ${tolerance * 100} %, and nothing fails`, broken)
process.exitCode = broken.length === 0 ? 0 : 1

async function simulate() {
  await using stage = await Stage.open(instanceCount)
  using people = new People(stage.ports)
  // What has just started is not compiled yet, and is not what the figures are of.
  await warmUp(people)
  const before = await stage.used()
  const done = await replay(people, { ...run, seed })
  const after = await stage.used()
  return { replayed: done, found: comparisons(expect(figures, run), before, after) }
}

async function warmUp(people: People): Promise<void> {
  const worker = async (): Promise<void> => {
    for (let round = 0; round < 100; round++) {
      const person = people.arrive()
      const token = await people.signIn(person)
      await people.check(person, token)
      await people.finishOrder(person, await people.startOrder(person))
      await people.signOut(person, token)
    }
  }
  await Promise.all(Array.from({ length: 8 }, worker))
}

function printOutcomes({ outcomes, late }: Replayed): void {
  printTable(
    `${population} users' day in ${minutes} minutes; ${late} events began more than 50 ms late`,
    ['events', 'failed', 'p50, from when due', 'p99', 'max'],
    outcomes.map(({ kind, done, failed, times }) => [
      kind,
      String(done),
      String(failed),
      ...(times === undefined ? [] : [times.p50, times.p99, times.max].map(formatMs)),
    ]),
  )
}

function printComparisons(all: readonly Comparison[]): void {
  printTable(
    'The model and the run',
    ['model', 'run', 'run ÷ model'],
    all.map(({ name, expected, found, ratio }) => [name, expected, found, ratio.toFixed(3)]),
  )
}
