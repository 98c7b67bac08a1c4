import { expect, test } from 'vitest'
import { failureIn } from './report.ts'
import { stepsOfWorld } from './run.ts'

test('once faults stop, all that was begun comes to its end', async () => {
  expect(await failureIn(Array(120).keys(), { steps: stepsOfWorld, liveness: true })).toBeUndefined()
})
