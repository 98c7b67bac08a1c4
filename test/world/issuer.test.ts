import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { failureIn } from './report.ts'
import { runWorld, stepsOf } from './run.ts'

/** Longest time in ms of a test, on a machine that is busy. */
const limitMs = 300_000

const options = { steps: stepsOf({ issuer: true }), liveness: false, issuer: true }

test(
  'in worlds with an issuer, nothing happens that may never happen',
  async () => {
    expect(await failureIn(Array(8).keys(), options)).toBeUndefined()
  },
  limitMs,
)

test(
  'nor in the world of a fresh seed',
  async () => {
    const seed = randomInt(1_000_000_000)
    console.log(`npm run world -- --issuer --seed ${seed}`)
    expect(await failureIn([seed], options)).toBeUndefined()
  },
  limitMs,
)

test(
  'once faults stop, all that was begun comes to its end',
  async () => {
    expect(await failureIn(Array(8).keys(), { ...options, liveness: true })).toBeUndefined()
  },
  limitMs,
)

test(
  'the same seed gives the same history, in this process and another',
  async () => {
    const one = await runWorld({ ...options, seed: 7 })
    const other = await runWorld({ ...options, seed: 7 })
    expect(other.history).toEqual(one.history)
    const main = fileURLToPath(new URL('main.ts', import.meta.url))
    const printed = execFileSync(process.execPath, [main, '--issuer', '--seed', '7', '--history'], { encoding: 'utf8' })
    expect(printed.split('\n').slice(0, one.history.length)).toEqual(one.history)
  },
  limitMs,
)
