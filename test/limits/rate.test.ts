import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type RequestContext, readRequest } from '../../src/base/request.ts'
import { defaultLimits } from '../../src/limits/limits.ts'
import { RateLimiter } from '../../src/limits/rate.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

const from = (ip: string | undefined) => ({ ip }) as RequestContext

/** How many calls pass before the first is refused. */
function allowed(limiter: RateLimiter, ip: string): number {
  for (let count = 0; count < 100_000; count++) {
    try {
      limiter.spend('sign-in', from(ip))
    } catch (error) {
      expect(error).toMatchObject({ reason: 'RATE_LIMITED', retryAfterMs: expect.any(Number) })
      return count
    }
  }
  return Number.POSITIVE_INFINITY
}

test('an address has its allowance, and gets it back over a minute', () => {
  const limiter = new RateLimiter(defaultLimits)
  const full = allowed(limiter, '192.0.2.1')
  expect(full).toBe(240)
  expect(allowed(limiter, '192.0.2.1')).toBe(0)
  expect(allowed(limiter, '192.0.2.2')).toBe(full)
  vi.setSystemTime(Date.now() + 30_000)
  expect(allowed(limiter, '192.0.2.1')).toBe(full / 2)
})

test('the time to wait is enough', () => {
  const limiter = new RateLimiter(defaultLimits)
  allowed(limiter, '192.0.2.1')
  const refused = (): unknown => {
    try {
      limiter.spend('sign-in', from('192.0.2.1'))
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
  const limiter = new RateLimiter(defaultLimits)
  allowed(limiter, '2001:db8:0:1::1')
  expect(allowed(limiter, '2001:0db8::1:ffff:0:0:2')).toBe(0)
  expect(allowed(limiter, '2001:db8:0:2::1')).toBe(240)
})

/** How many of these addresses, asking once each, are let through. */
function passing(limiter: RateLimiter, addresses: Iterable<string>): number {
  let count = 0
  for (const ip of addresses) {
    try {
      limiter.spend('sign-in', from(ip))
      count++
    } catch (error) {
      // Not `expect`, which takes its time, and there are very many of these.
      if ((error as { reason?: unknown }).reason !== 'RATE_LIMITED') throw error
    }
  }
  return count
}

/** One address in each of the first `count` networks /64 of a /48. */
function* subnets(site: string, count: number, first = 0): Generator<string> {
  for (let subnet = first; subnet < first + count; subnet++) yield `${site}:${subnet.toString(16)}::1`
}

describe('the networks around an IPv6 address', () => {
  test('have 4 and 16 times its allowance, at no cost to others', () => {
    const limiter = new RateLimiter(defaultLimits)
    expect(
      passing(
        limiter,
        Array(10)
          .fill([...subnets('2001:db8:0', 256)])
          .flat(),
      ),
    ).toBe(4 * 240)
    expect(passing(limiter, subnets('2001:db8:0', 8_000))).toBe(12 * 240)
    expect(allowed(limiter, '2001:db8:1::1')).toBe(240)
    expect(allowed(limiter, '192.0.2.1')).toBe(240)
  })

  test('stop a flood from 90,000 networks of two /48s, as they are read behind a proxy', () => {
    const limiter = new RateLimiter(defaultLimits)
    const addresses = [...subnets('2001:db8:a', 45_000), ...subnets('2001:db8:b', 45_000)].map((ip) => {
      const headers = new Headers({ 'x-forwarded-for': `192.0.2.1, ${ip}` })
      return readRequest({ headers, scheme: 'http', authority: 'a', remoteAddress: '10.0.0.1' }, 1).ip as string
    })
    expect(new Set(addresses).size).toBe(90_000)
    expect(passing(limiter, addresses)).toBe(2 * 16 * 240)
    expect(passing(limiter, addresses)).toBe(0)
    vi.setSystemTime(Date.now() + 30_000)
    expect(passing(limiter, addresses)).toBe(16 * 240)
  })

  test('the networks around an IPv6 address lose nothing to calls that the address’s own allowance refuses', () => {
    const limiter = new RateLimiter(defaultLimits)
    expect(passing(limiter, Array(10_000).fill('2001:db8:0:1::1'))).toBe(240)
    expect(passing(limiter, subnets('2001:db8:0', 8_000, 2))).toBe(15 * 240)
  })

  test('take nothing from an address whose calls they refuse', () => {
    const limiter = new RateLimiter(defaultLimits)
    passing(limiter, subnets('2001:db8:0', 8_000))
    expect(passing(limiter, Array(1_000).fill('2001:db8:0:ffff::1'))).toBe(0)
    // 384 calls of the /48 are back by then, and 24 of a /64.
    vi.setSystemTime(Date.now() + 6_000)
    expect(allowed(limiter, '2001:db8:0:ffff::1')).toBe(240)
  })

  test('are remembered through a flood from more networks than the limiter remembers', () => {
    const limiter = new RateLimiter(defaultLimits)
    passing(limiter, subnets('2001:db8:0', 8_000))
    let flood = 0
    for (let site = 1; flood < 60_000; site++) {
      flood += passing(limiter, subnets(`2001:db8:${site.toString(16)}`, 4_000))
    }
    expect(passing(limiter, subnets('2001:db8:0', 8_000))).toBe(0)
  })
})

test('an address is remembered while 20,000 others call, and not for ever', () => {
  const limiter = new RateLimiter(defaultLimits)
  const others = (first: number, count: number): number =>
    passing(
      limiter,
      Array.from({ length: count }, (_, n) => `10.${(first + n) >> 16}.${((first + n) >> 8) & 255}.${n & 255}`),
    )
  expect(others(0, 20_000)).toBe(20_000)
  expect(allowed(limiter, '192.0.2.1')).toBe(240)
  others(65_536, 20_000)
  expect(allowed(limiter, '192.0.2.1')).toBe(0)
  others(131_072, 60_000)
  expect(allowed(limiter, '192.0.2.1')).toBe(240)
})

test('an address that goes on calling is not forgotten, however many others call', () => {
  const limiter = new RateLimiter(defaultLimits)
  expect(allowed(limiter, '192.0.2.1')).toBe(240)
  for (let first = 0; first < 200_000; first += 5_000) {
    passing(
      limiter,
      Array.from(
        { length: 5_000 },
        (_, n) => `10.${(first + n) >> 16}.${((first + n) >> 8) & 255}.${(first + n) & 255}`,
      ),
    )
    expect(allowed(limiter, '192.0.2.1')).toBe(0)
  }
})

test('groups do not share an allowance', () => {
  const limiter = new RateLimiter(defaultLimits)
  allowed(limiter, '192.0.2.1')
  expect(() => limiter.spend('session', from('192.0.2.1'))).not.toThrow()
})

test('clients of unknown address do not share one', () => {
  const limiter = new RateLimiter(defaultLimits)
  for (let i = 0; i < 10_000; i++) limiter.spend('sign-in', from(undefined))
})

test('a clock that steps back neither adds to an allowance nor locks anyone out', () => {
  const limiter = new RateLimiter(defaultLimits)
  expect(allowed(limiter, '192.0.2.1')).toBe(240)
  vi.setSystemTime(Date.now() - 3_600_000)
  expect(allowed(limiter, '192.0.2.1')).toBe(0)
  // A time further ahead than instances can let through is not believed.
  vi.setSystemTime(Date.now() + 120_000)
  expect(allowed(limiter, '192.0.2.1')).toBe(240)
})
