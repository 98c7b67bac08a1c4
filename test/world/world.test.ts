import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { failureIn } from './report.ts'
import { runWorld, stepsOfWorld } from './run.ts'

// Half of the worlds: the others, whose faults stop, are in liveness.test.ts.

const options = { steps: stepsOfWorld, liveness: false }

test('in worlds of many seeds, nothing happens that may never happen', async () => {
  expect(await failureIn(Array(120).keys(), options)).toBeUndefined()
})

test('nor in the world of a fresh seed', async () => {
  const seed = randomInt(1_000_000_000)
  console.log(`npm run world -- --seed ${seed}`)
  expect(await failureIn([seed], options)).toBeUndefined()
})

test('the same seed gives the same history, in this process and another', async () => {
  const one = await runWorld({ ...options, seed: 7 })
  const other = await runWorld({ ...options, seed: 7 })
  expect(other.history).toEqual(one.history)
  const main = fileURLToPath(new URL('main.ts', import.meta.url))
  const printed = execFileSync(process.execPath, [main, '--seed', '7', '--history'], { encoding: 'utf8' })
  expect(printed.split('\n').slice(0, one.history.length)).toEqual(one.history)
})
