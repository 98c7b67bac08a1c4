import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { CountersignClientError } from '../../../src/browser/client/errors.ts'
import { backoffMs, pause, retrying } from '../../../src/browser/client/retry.ts'
import { codeOf, stubPage } from './support.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('waits grow from an eighth of a second to ten seconds, and differ from client to client', () => {
  fc.assert(
    fc.property(fc.nat(2000), (failures) => {
      const full = Math.min(10_000, 250 * 2 ** failures)
      const waits = Array.from({ length: 20 }, () => backoffMs(failures))
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(full / 2)
      expect(Math.max(...waits)).toBeLessThanOrEqual(full)
      expect(new Set(waits).size).toBeGreaterThan(1)
    }),
  )
})

test('a wait that the service asked for is waited out, for all that the page does', async () => {
  const tab = stubPage('visible')
  vi.useFakeTimers()
  const over = vi.fn()
  const waiting = pause(0, 5000).then(over)
  tab.online()
  await vi.advanceTimersByTimeAsync(4999)
  expect(over).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(over).toHaveBeenCalled()
  await waiting
})

test('a wait of weeks, which a timer takes for none, is one of a day', async () => {
  stubPage('visible')
  vi.useFakeTimers()
  const over = vi.fn()
  const { retryAfterMs } = new CountersignClientError('NETWORK', 'later', { retryAfterMs: 9_999_999_000 })
  const waiting = pause(0, retryAfterMs).then(over)
  await vi.advanceTimersByTimeAsync(86_399_999)
  expect(over).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  await waiting
})

test('any other wait ends when the page comes back to life', async () => {
  const tab = stubPage('hidden')
  vi.useFakeTimers()
  const waiting = pause(10, undefined)
  tab.show('visible')
  await waiting
  expect(vi.getTimerCount()).toBe(0)
})

test('aborting ends a wait with ABORTED', async () => {
  vi.useFakeTimers()
  const controller = new AbortController()
  const waiting = pause(10, undefined, controller.signal)
  controller.abort()
  expect(await codeOf(waiting)).toBe('ABORTED')
  expect(vi.getTimerCount()).toBe(0)
  expect(await codeOf(pause(0, undefined, controller.signal))).toBe('ABORTED')
})

test('a call is made again for as long as it can help, and no longer', async () => {
  vi.useFakeTimers()
  const failing = (code: 'NETWORK' | 'ORDER_NOT_FOUND' | 'RATE_LIMITED', retryAfterMs?: number) =>
    vi.fn(() => Promise.reject(new CountersignClientError(code, 'no', { retryAfterMs })))
  const final = failing('ORDER_NOT_FOUND')
  expect(await codeOf(retrying(final, undefined))).toBe('ORDER_NOT_FOUND')
  expect(final).toHaveBeenCalledTimes(1)

  const passing = failing('NETWORK')
  const code = codeOf(retrying(passing, undefined, 30_000))
  await vi.advanceTimersByTimeAsync(29_000)
  const calls = passing.mock.calls.length
  expect(calls).toBeGreaterThan(5)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await code).toBe('NETWORK')
  expect(passing.mock.calls.length - calls).toBeLessThan(3)

  const tooLate = failing('NETWORK', 31_000)
  expect(await codeOf(retrying(tooLate, undefined, 30_000))).toBe('NETWORK')
  expect(tooLate).toHaveBeenCalledTimes(1)

  // A limit that no time lifts, and one that is over in time.
  const lasting = failing('RATE_LIMITED')
  expect(await codeOf(retrying(lasting, undefined, 30_000))).toBe('RATE_LIMITED')
  expect(lasting).toHaveBeenCalledTimes(1)
  const limited = failing('RATE_LIMITED', 12_000)
  const refused = codeOf(retrying(limited, undefined, 30_000))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await refused).toBe('RATE_LIMITED')
  expect(limited).toHaveBeenCalledTimes(3)
})
