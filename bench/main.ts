import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { benchOrder, benchSessionCheck, benchSignIn } from './calls.ts'
import { benchCosts } from './costs.ts'
import { benchFlood } from './flood.ts'
import { benchGrowth } from './growth.ts'
import { machine, type Scale, scaleTo } from './harness.ts'
import { beginPart, measuredTree, results, writeResults } from './results.ts'
import { root } from './servers.ts'
import { benchSessionChecks } from './session-checks.ts'
import { benchStart } from './start.ts'
import { benchStore } from './store.ts'
import { benchVerify } from './verify.ts'
import { benchWatch } from './watch.ts'
import { benchWatchers } from './watchers.ts'
import { benchWorkers } from './workers.ts'

/** `notShort` is a part that cannot be done in a few seconds. */
interface Part {
  readonly run: (scale: Scale) => Promise<void>
  readonly notShort?: true
}

const parts: Readonly<Record<string, Part>> = {
  'session-checks': { run: benchSessionChecks },
  flood: { run: benchFlood },
  watch: { run: benchWatch },
  verify: { run: benchVerify },
  store: { run: benchStore },
  workers: { run: benchWorkers, notShort: true },
  // The last ones, because they pin this process.
  'sign-in': { run: benchSignIn },
  'session-check': { run: benchSessionCheck },
  order: { run: benchOrder },
  costs: { run: benchCosts, notShort: true },
  growth: { run: benchGrowth, notShort: true },
  start: { run: benchStart, notShort: true },
  watchers: { run: benchWatchers, notShort: true },
}

/** Longest time for a part, for each time that servers are started: one that takes longer hangs. */
const limitMsOfStart = 3_600_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: 'boolean', default: false },
    out: { type: 'string' },
    // For work on one thing: part of the name of a protocol or store, and how many are in flight.
    protocol: { type: 'string', default: '' },
    store: { type: 'string', default: '' },
    'in-flight': { type: 'string' },
    // How often servers are started anew, where they are.
    starts: { type: 'string' },
  },
})
const unknown = positionals.filter((name) => parts[name] === undefined)
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')}; there are ${Object.keys(parts).join(', ')}`)
  process.exit(1)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const protocol = values.protocol.toLowerCase()
const store = values.store.toLowerCase()
const inFlight = values['in-flight']?.split(',').map(Number)
const starts = values.starts === undefined ? undefined : Number(values.starts)
const scale = scaleTo(values.short, { protocol, store, ...(inFlight && { inFlight }), ...(starts && { starts }) })
const whole =
  !values.short &&
  positionals.length === 0 &&
  protocol === '' &&
  store === '' &&
  inFlight === undefined &&
  starts === undefined
const writes = values.out !== undefined || whole
const limitMs = limitMsOfStart * scale.starts
const tree = measuredTree()
let file: string | undefined
console.log(machine())
for (const [name, { run, notShort = false }] of Object.entries(parts)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue
  if (values.short && notShort) {
    console.log(`\nSKIPPED: ${name}, which takes too long for --short`)
    continue
  }
  const limit = setTimeout(() => {
    console.error(`bench: ${name} is not done after ${limitMs / 1000} s`)
    process.exit(1)
  }, limitMs)
  beginPart(name)
  await run(scale)
  clearTimeout(limit)
  // After each part, so that a run that is stopped has what it came to.
  if (writes)
    file = writeResults(
      results(tree, {
        short: values.short,
        parts: positionals,
        starts: scale.starts,
        ...(protocol !== '' && { protocol }),
        ...(store !== '' && { store }),
        ...(inFlight && { inFlight }),
      }),
      file ?? values.out,
    )
}
if (file !== undefined) {
  console.log(`\nThe results are in ${relative(root, file)}; \`npm run docs\` writes them into the documents.`)
}
