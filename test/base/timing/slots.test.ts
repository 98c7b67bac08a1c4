import { expect, test } from 'vitest'
import { Slots } from '../../../src/base/timing/slots.ts'

test('no more work than there are places is under way, and those who wait come in their order', async () => {
  const slots = new Slots(2)
  const begun: number[] = []
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
  const runs = ends.map(({ promise }, index) =>
    slots.run(() => {
      begun.push(index)
      return promise
    }),
  )
  await settled()
  expect(begun).toEqual([0, 1])
  ends[1]?.resolve()
  await settled()
  expect(begun).toEqual([0, 1, 2])
  for (const { resolve } of ends) resolve()
  await Promise.all(runs)
  expect(begun).toEqual([0, 1, 2, 3, 4])
})

test('work that fails leaves its place to the next', async () => {
  const slots = new Slots(1)
  const failing = slots.run(() => Promise.reject(new Error('it failed')))
  const next = slots.run(async () => 'done')
  await expect(failing).rejects.toThrow('it failed')
  expect(await next).toBe('done')
})

test('work whose signal is aborted while it waits is not begun, and leaves its place to the next', async () => {
  const slots = new Slots(1)
  const first = Promise.withResolvers<void>()
  const stop = new AbortController()
  let begun = 0
  const runs = [
    slots.run(() => first.promise),
    slots.run(async () => begun++, stop.signal),
    slots.run(async () => 'done', new AbortController().signal),
  ]
  stop.abort(new Error('no longer wanted'))
  first.resolve()
  const [, aborted, last] = await Promise.allSettled(runs)
  expect(aborted).toMatchObject({ status: 'rejected', reason: new Error('no longer wanted') })
  expect(last).toEqual({ status: 'fulfilled', value: 'done' })
  expect(begun).toBe(0)
})

/** Resolves once all promises that can be settled by now are. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
