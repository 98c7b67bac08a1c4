import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TimeLimit } from '../../../src/base/timing/time-limit.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('work is ended when its time is over, at the next check, and each piece at its own time', () => {
  const limit = new TimeLimit(1000, 100)
  const ended: string[] = []
  limit.enter(() => ended.push('first'))
  vi.advanceTimersByTime(350)
  limit.enter(() => ended.push('second'))
  vi.advanceTimersByTime(649)
  expect(ended).toEqual([])
  vi.advanceTimersByTime(101)
  expect(ended).toEqual(['first'])
  vi.advanceTimersByTime(350)
  expect(ended).toEqual(['first', 'second'])
})

test('work that ends after its time is late, and its result is dropped', async () => {
  const limit = new TimeLimit(1000, 100)
  const [good, bad] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const waits = [good, bad].map(({ promise }) => limit.within(promise, () => new Error('late')))
  const outcomes = Promise.allSettled(waits)
  vi.advanceTimersByTime(1100)
  good.resolve('done')
  bad.reject(new Error('failed'))
  const late = { status: 'rejected', reason: new Error('late') }
  expect(await outcomes).toEqual([late, late])
})

test('work that ends in time resolves or rejects as it does, and leaves no timer behind', async () => {
  const limit = new TimeLimit(1000, 100)
  expect(await limit.within(Promise.resolve('good'), () => new Error('late'))).toBe('good')
  await expect(limit.within(Promise.reject(new Error('bad')), () => new Error('late'))).rejects.toThrow('bad')
  vi.advanceTimersByTime(1100)
  expect(vi.getTimerCount()).toBe(0)
})

test('work that leaves in time is not ended, and leaves no timer behind', () => {
  const limit = new TimeLimit(1000, 100)
  const ended: number[] = []
  const all = Array.from({ length: 5 }, (_, n) => limit.enter(() => ended.push(n)))
  // The first, the last, one in between, and one of these twice.
  for (const n of [0, 4, 2, 2]) limit.leave(all[n]!)
  vi.advanceTimersByTime(1100)
  expect(ended).toEqual([1, 3])
  for (const work of all) limit.leave(work)
  vi.advanceTimersByTime(1100)
  expect(ended).toEqual([1, 3])
  expect(vi.getTimerCount()).toBe(0)
})
