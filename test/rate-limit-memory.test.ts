import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RateLimiter } from '../src/rate-limit.ts'

// The clock stands still, so that no allowance comes back by itself.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

/** Most addresses that a limiter remembers. */
const remembered = 50_000

const address = (index: number): string => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`

/** Whether an address has a call left, which this takes. */
function hasCall(limiter: RateLimiter, ip: string): boolean {
  try {
    limiter.spend('start order', ip)
    return true
  } catch {
    return false
  }
}

function useUp(limiter: RateLimiter, ip: string): void {
  while (hasCall(limiter, ip));
}

test('a flood from many addresses costs bounded memory: those that were not seen for long are forgotten', () => {
  const limiter = new RateLimiter()
  useUp(limiter, '192.0.2.1')
  for (let index = 0; index < remembered - 1; index++) hasCall(limiter, address(index))
  expect(hasCall(limiter, '192.0.2.1')).toBe(false)
  for (let index = 0; index < remembered; index++) hasCall(limiter, address(index))
  expect(hasCall(limiter, '192.0.2.1')).toBe(true)
})

test('a flood does not free an address that goes on calling', () => {
  const limiter = new RateLimiter()
  useUp(limiter, '192.0.2.1')
  for (let index = 0; index < 2 * remembered; index++) {
    hasCall(limiter, address(index))
    if (index % 1000 === 0) expect(hasCall(limiter, '192.0.2.1')).toBe(false)
  }
})
