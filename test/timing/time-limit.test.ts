import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TimeLimit } from '../../src/timing/time-limit.ts'

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

test('work that ends after its time is told of once, as late', async () => {
  const limit = new TimeLimit(1000, 100)
  const [good, bad] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const told: unknown[] = []
  const tell = (what: unknown): void => void told.push(what)
  for (const { promise } of [good, bad]) limit.when(promise, tell, tell, () => new Error('late'))
  vi.advanceTimersByTime(1100)
  expect(told).toEqual([new Error('late'), new Error('late')])
  good.resolve('done')
  bad.reject(new Error('failed'))
  await Promise.allSettled([good.promise, bad.promise])
  expect(told).toHaveLength(2)
})

test('work that ends in time is told of once, and what is thrown then as a failure', async () => {
  const limit = new TimeLimit(1000, 100)
  const told: unknown[] = []
  const tell = (what: unknown): void => void told.push(what)
  const thrown = new Error('thrown')
  const refuse = (): never => {
    throw thrown
  }
  limit.when(Promise.resolve('good'), tell, tell, () => new Error('late'))
  limit.when(Promise.reject(new Error('bad')), refuse, tell, () => new Error('late'))
  limit.when(Promise.resolve('refused'), refuse, tell, () => new Error('late'))
  await Promise.resolve()
  expect(told).toEqual(['good', new Error('bad'), thrown])
  vi.advanceTimersByTime(1100)
  expect(told).toHaveLength(3)
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
