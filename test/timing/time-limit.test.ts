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

test('work that leaves in time is not ended, and leaves no timer behind', () => {
  const limit = new TimeLimit(1000, 100)
  const end = vi.fn()
  limit.enter(end)
  limit.leave(end)
  vi.advanceTimersByTime(5000)
  expect(end).not.toHaveBeenCalled()
  expect(vi.getTimerCount()).toBe(0)
})
