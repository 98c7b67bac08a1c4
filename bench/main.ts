import { benchFlood } from './flood.ts'
import { machine } from './harness.ts'
import { benchSessionChecks } from './session-checks.ts'
import { benchSignIn } from './sign-in.ts'
import { benchStore } from './store.ts'
import { benchVerify } from './verify.ts'
import { benchWatch } from './watch.ts'
import { benchWatchers } from './watchers.ts'
import { benchWire } from './wire.ts'

const parts: Readonly<Record<string, () => Promise<void>>> = {
  'sign-in': benchSignIn,
  'session-checks': benchSessionChecks,
  flood: benchFlood,
  watch: benchWatch,
  verify: benchVerify,
  store: benchStore,
  // The last ones, because they pin this process.
  wire: benchWire,
  watchers: benchWatchers,
}

/** A part that takes longer hangs. */
const limitMs = 300_000

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => parts[name] === undefined)
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')}; there are ${Object.keys(parts).join(', ')}`)
  process.exit(1)
}
console.log(machine())
for (const [name, run] of Object.entries(parts)) {
  if (asked.length > 0 && !asked.includes(name)) continue
  const limit = setTimeout(() => {
    console.error(`bench: ${name} is not done after ${limitMs / 1000} s`)
    process.exit(1)
  }, limitMs)
  await run()
  clearTimeout(limit)
}
