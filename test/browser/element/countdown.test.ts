import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Countdown, minutesAndSeconds } from '../../../src/browser/element/countdown.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A countdown with all that it showed, and how often it ended. */
function watched() {
  const shown: (number | undefined)[] = []
  const onEnd = vi.fn()
  return { shown, onEnd, countdown: new Countdown((seconds) => shown.push(seconds), onEnd) }
}

test('shows the seconds that are left, and ends once', () => {
  const { countdown, shown, onEnd } = watched()
  countdown.start(2500)
  vi.advanceTimersByTime(10_000)
  expect(shown).toEqual([3, 2, 1, 0])
  expect(onEnd).toHaveBeenCalledTimes(1)
})

test('a later report can shorten the time, not prolong it', () => {
  const { countdown, shown } = watched()
  countdown.start(60_000)
  vi.advanceTimersByTime(10_000)
  countdown.start(60_000)
  expect(shown.at(-1)).toBe(50)
  countdown.start(20_000)
  expect(shown.at(-1)).toBe(20)
})

test('after it was stopped it shows nothing, and can start with any time', () => {
  const { countdown, shown, onEnd } = watched()
  countdown.start(5000)
  countdown.stop()
  vi.advanceTimersByTime(10_000)
  expect(shown).toEqual([5, undefined])
  expect(onEnd).not.toHaveBeenCalled()
  countdown.start(60_000)
  expect(shown.at(-1)).toBe(60)
})

test('a time that is over ends it at once', () => {
  const { countdown, shown, onEnd } = watched()
  countdown.start(-1)
  expect(shown).toEqual([0])
  expect(onEnd).toHaveBeenCalledTimes(1)
})

test('neither a clock that is set back nor one that stands still in sleep prolongs it', () => {
  const { countdown, shown } = watched()
  countdown.start(60_000)
  // The wall clock alone, as after a device's sleep.
  vi.setSystemTime(Date.now() + 30_000)
  vi.advanceTimersByTime(1000)
  expect(shown.at(-1)).toBe(29)
  vi.setSystemTime(Date.now() - 3_600_000)
  vi.advanceTimersByTime(1000)
  expect(shown.at(-1)).toBe(58)
})

test('times are written in minutes and seconds', () => {
  expect([0, 5, 65, 600].map(minutesAndSeconds)).toEqual(['0:00', '0:05', '1:05', '10:00'])
})
