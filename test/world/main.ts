/**
 * `npm run world`: simulated worlds, one for each seed. A seed that fails prints the shortest history that still fails,
 * and the command that runs it again.
 *
 * `-- --seed N` runs this one; with `--minutes N` or `--calls N`, it and those after it, for so long or for so many
 * steps at the store. `--steps N` is the length of a world, `--liveness` stops the faults and waits for all to end.
 * `--issuer` runs worlds with an OpenID Connect issuer and applications, in place of those with orders.
 * `--brief` prints no history of a seed that fails.
 * `--history` prints the history of a world that does not fail, too.
 * `--planted TEXT…` plants the faults of scripts/mutations.ts in copies of the working tree, one at a time, and prints the
 * seed that finds each: those whose row is or whose file, declaration or text contains a TEXT; without one, those that
 * have a seed. With `--write`, seeds that do not find their fault any more are replaced, and new ones written.
 */
import { parseArgs } from 'node:util'
import { failureOf } from './report.ts'
import { runWorld, stepsOf } from './run.ts'

const { values, positionals } = parseArgs({
  options: {
    seed: { type: 'string' },
    steps: { type: 'string' },
    minutes: { type: 'string' },
    calls: { type: 'string' },
    liveness: { type: 'boolean', default: false },
    issuer: { type: 'boolean', default: false },
    brief: { type: 'boolean', default: false },
    history: { type: 'boolean', default: false },
    planted: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const { liveness, issuer } = values
const steps = Number(values.steps ?? stepsOf({ issuer }))
const first = values.seed === undefined ? Math.floor(Math.random() * 1_000_000_000) : Number(values.seed)
const isOne = values.minutes === undefined && values.calls === undefined && values.seed !== undefined
const endsAt = performance.now() + Number(values.minutes ?? (values.calls === undefined ? 1 : 600)) * 60_000
const most = Number(values.calls ?? Number.POSITIVE_INFINITY)

if (values.planted) {
  const { plant } = await import('./planted.ts')
  process.exitCode = (await plant(positionals, { writes: values.write, steps: values.steps })) === 0 ? 0 : 1
} else await runAll()

async function runAll(): Promise<void> {
  const startedAt = performance.now()
  const total = { worlds: 0, calls: 0, orders: 0 }
  const states = new Set<string>()
  for (let seed = first; ; seed++) {
    const run = { seed, steps, liveness, issuer }
    const ran = await runWorld(run)
    total.worlds++
    total.calls += ran.storeCalls
    total.orders += ran.orders
    for (const state of ran.states) states.add(state)
    if (ran.violation !== undefined) {
      console.log(values.brief ? `seed ${seed}: ${ran.violation}` : await failureOf(run, ran))
      process.exitCode = 1
      break
    }
    if (values.history) console.log(ran.history.join('\n'))
    if (isOne || performance.now() >= endsAt || total.calls >= most) break
  }
  const seconds = (performance.now() - startedAt) / 1000
  const noun = issuer ? 'tokens' : 'orders'
  const rate = (count: number): string => `${count} (${Math.round(count / seconds)} a second)`
  console.log(
    `${total.worlds} worlds from seed ${first}, ${rate(total.calls)} steps at the store, ${rate(total.orders)} ${noun}, ` +
      `${states.size} distinct states of ${noun}`,
  )
}
