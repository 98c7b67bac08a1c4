/**
 * `npm run world`: simulated worlds, one for each seed. A seed that fails prints the shortest history that still fails,
 * and the command that runs it again.
 *
 * `-- --seed N` runs this one; with `--minutes N` or `--calls N`, it and those after it, for so long or for so many
 * steps at the store. `--steps N` is the length of a world, `--liveness` stops the faults and waits for all to end.
 * `--found` prints no history of a seed that fails.
 * `--history` prints the history of a world that does not fail, too.
 * `--mutation TEXT` runs the worlds once for each entry of scripts/mutations.ts whose row, file, declaration or text is or
 * contains it, in a copy of the working tree; it prints the seed that finds the entry.
 */
import { parseArgs } from 'node:util'
import { failureOf } from './report.ts'
import { runWorld, stepsOfWorld } from './run.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    steps: { type: 'string', default: String(stepsOfWorld) },
    minutes: { type: 'string' },
    calls: { type: 'string' },
    liveness: { type: 'boolean', default: false },
    found: { type: 'boolean', default: false },
    history: { type: 'boolean', default: false },
    mutation: { type: 'string' },
  },
})
const { liveness } = values
const steps = Number(values.steps)
const first = values.seed === undefined ? Math.floor(Math.random() * 1_000_000_000) : Number(values.seed)
const isOne = values.minutes === undefined && values.calls === undefined && values.seed !== undefined
const endsAt = performance.now() + Number(values.minutes ?? (values.calls === undefined ? 1 : 600)) * 60_000
const most = Number(values.calls ?? Number.POSITIVE_INFINITY)

if (values.mutation !== undefined) {
  const { plant } = await import('./planted.ts')
  process.exitCode = await plant(values.mutation, { first, steps, liveness })
} else await runAll()

async function runAll(): Promise<void> {
  const startedAt = performance.now()
  const total = { worlds: 0, calls: 0, orders: 0 }
  const states = new Set<string>()
  for (let seed = first; ; seed++) {
    const run = { seed, steps, liveness }
    const ran = await runWorld(run)
    total.worlds++
    total.calls += ran.storeCalls
    total.orders += ran.orders
    for (const state of ran.states) states.add(state)
    if (ran.violation !== undefined) {
      console.log(values.found ? `seed ${seed}: ${ran.violation}` : await failureOf(run, ran))
      process.exitCode = 1
      break
    }
    if (values.history) console.log(ran.history.join('\n'))
    if (isOne || performance.now() >= endsAt || total.calls >= most) break
  }
  const seconds = (performance.now() - startedAt) / 1000
  const rate = (count: number): string => `${count} (${Math.round(count / seconds)} a second)`
  console.log(
    `${total.worlds} worlds from seed ${first}, ${rate(total.calls)} steps at the store, ${rate(total.orders)} orders, ` +
      `${states.size} distinct states of orders`,
  )
}
