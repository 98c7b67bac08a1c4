import { machine } from './harness.ts'
import { benchSignIn } from './sign-in.ts'
import { benchStore } from './store.ts'
import { benchVerify } from './verify.ts'
import { benchWatch } from './watch.ts'
import { benchWatchers } from './watchers.ts'

const parts: Readonly<Record<string, () => Promise<void>>> = {
  'sign-in': benchSignIn,
  watch: benchWatch,
  watchers: benchWatchers,
  verify: benchVerify,
  store: benchStore,
}

/** A run that takes longer hangs. */
const limitMs = 300_000

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => parts[name] === undefined)
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')}; there are ${Object.keys(parts).join(', ')}`)
  process.exit(1)
}
setTimeout(() => {
  console.error(`bench: not done after ${limitMs / 1000} s`)
  process.exit(1)
}, limitMs).unref()

console.log(machine())
for (const [name, run] of Object.entries(parts)) {
  if (asked.length === 0 || asked.includes(name)) await run()
}
