import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RateLimiter } from '../src/rate-limit.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

/** How many calls pass before the first is refused. */
function allowed(limiter: RateLimiter, ip: string): number {
  for (let count = 0; count < 100_000; count++) {
    try {
      limiter.spend('sign-in', ip)
    } catch (error) {
      expect(error).toMatchObject({ reason: 'RATE_LIMITED', retryAfterMs: expect.any(Number) })
      return count
    }
  }
  return Number.POSITIVE_INFINITY
}

test('an address has its allowance, and gets it back over a minute', () => {
  const limiter = new RateLimiter()
  const full = allowed(limiter, '192.0.2.1')
  expect(full).toBe(240)
  expect(allowed(limiter, '192.0.2.1')).toBe(0)
  expect(allowed(limiter, '192.0.2.2')).toBe(full)
  vi.setSystemTime(Date.now() + 30_000)
  expect(allowed(limiter, '192.0.2.1')).toBe(full / 2)
})

test('the time to wait is enough', () => {
  const limiter = new RateLimiter()
  allowed(limiter, '192.0.2.1')
  const refused = (): unknown => {
    try {
      limiter.spend('sign-in', '192.0.2.1')
      return undefined
    } catch (error) {
      return error
    }
  }
  const { retryAfterMs } = refused() as { retryAfterMs: number }
  vi.setSystemTime(Date.now() + retryAfterMs)
  expect(refused()).toBeUndefined()
})

test('a subscriber has one allowance for all of an IPv6 network, however it is written', () => {
  const limiter = new RateLimiter()
  allowed(limiter, '2001:db8:0:1::1')
  expect(allowed(limiter, '2001:0db8::1:ffff:0:0:2')).toBe(0)
  expect(allowed(limiter, '2001:db8:0:2::1')).toBe(240)
})

test('groups do not share an allowance', () => {
  const limiter = new RateLimiter()
  allowed(limiter, '192.0.2.1')
  expect(() => limiter.spend('session', '192.0.2.1')).not.toThrow()
})

test('clients of unknown address do not share one', () => {
  const limiter = new RateLimiter()
  for (let i = 0; i < 10_000; i++) limiter.spend('sign-in', undefined)
})

test('a clock that steps back neither adds to an allowance nor locks anyone out', () => {
  const limiter = new RateLimiter()
  expect(allowed(limiter, '192.0.2.1')).toBe(240)
  vi.setSystemTime(Date.now() - 3_600_000)
  expect(allowed(limiter, '192.0.2.1')).toBe(0)
  vi.setSystemTime(Date.now() + 60_000)
  expect(allowed(limiter, '192.0.2.1')).toBe(240)
})
