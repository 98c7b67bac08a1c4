import { expect, test } from 'vitest'
import { Concurrency, LiveCount } from '../../src/limits/concurrency.ts'
import { keptLog } from '../support/log-lines.ts'

const now = 1_700_000_000_000

/** How many more records find room. */
function room(live: LiveCount, endsAt: number, at: number): number {
  for (let count = 0; ; count++) {
    try {
      live.add(endsAt, at, undefined)
    } catch (error) {
      expect(error).toMatchObject({ reason: 'SERVER_BUSY', retryAfterMs: expect.any(Number) })
      return count
    }
  }
}

function liveCount(orders: number, networkShare = 1) {
  const { logger, lines } = keptLog()
  return { live: new LiveCount(new Concurrency('orders', { orders, networkShare }, logger)), lines }
}

test('there is room again when lives end, and not a moment before', () => {
  const { live } = liveCount(5)
  for (let n = 0; n < 5; n++) live.add(now + 60_000 + n * 1000, now, undefined)
  expect(room(live, now + 60_000, now + 59_999)).toBe(0)
  expect(room(live, now + 120_000, now + 61_000)).toBe(2)
  expect(room(live, now + 120_000, now + 64_000)).toBe(3)
  expect(room(live, now + 240_000, now + 120_000)).toBe(5)
})

test('there is room again when a record is removed before its end, once', () => {
  const { live } = liveCount(2)
  live.add(now + 60_500, now, undefined)
  live.add(now + 90_000, now, undefined)
  live.remove(now + 60_500, undefined)
  live.remove(now + 60_500, undefined)
  live.remove(now + 30_000, undefined)
  expect(room(live, now + 60_000, now)).toBe(1)
})

test('a record that ended is not counted out twice', () => {
  const { live } = liveCount(3)
  live.add(now + 1000, now, undefined)
  expect(room(live, now + 90_000, now + 2000)).toBe(3)
  live.remove(now + 1000, undefined)
  expect(room(live, now + 90_000, now + 2000)).toBe(0)
})

test('a large record takes several places, and is refused whole', () => {
  const { live, lines } = liveCount(10)
  live.add(now + 60_000, now, undefined, 8)
  expect(() => live.add(now + 60_000, now, '2001:db8::1', 3)).toThrow()
  expect(lines).toMatchObject([{ text: 'ceiling reached', fields: { most: 10, lastRefused: '2001:db8:0::/48' } }])
  expect(room(live, now + 60_000, now)).toBe(2)
  expect(room(live, now + 90_000, now + 60_000)).toBe(10)
})

test('a clock that is set on and back again locks no one out', () => {
  const { live } = liveCount(3)
  const hourMs = 3_600_000
  live.add(now + 60_000, now, undefined)
  live.add(now + hourMs + 60_000, now + hourMs, undefined)
  expect(room(live, now + 120_000, now + 1000)).toBe(2)
  expect(room(live, now + 240_000, now + 120_000)).toBe(2)
})

test('a network has its share of the room, a /48 in all, and others have theirs', () => {
  const { live, lines } = liveCount(40, 1 / 4)
  const inRow = (count: number, address: (n: number) => string | undefined): number => {
    for (let n = 0; n < count; n++) {
      try {
        live.add(now + 60_000 + n * 500, now, address(n))
      } catch {
        return n
      }
    }
    return count
  }
  expect(inRow(40, (n) => `2001:db8:1:${n.toString(16)}::1`)).toBe(10)
  expect(lines[0]?.fields).toMatchObject({ ceiling: 'live orders', most: 10, lastRefused: '2001:db8:1::/48' })
  expect(inRow(40, () => '192.0.2.1')).toBe(10)
  // Callers of unknown address are one network.
  expect(inRow(40, () => undefined)).toBe(10)
  // Those that are removed or end make room for the same network.
  live.remove(now + 60_000, '192.0.2.1')
  expect(inRow(2, () => '192.0.2.1')).toBe(1)
  expect(live.use(now + 120_000)).toMatchObject({ held: 0, most: 40 })
  expect(inRow(40, () => '192.0.2.1')).toBe(10)
})

test('a record that another network uses up is counted out, and counts for no network any more', () => {
  const { live } = liveCount(8, 1 / 4)
  live.add(now + 60_000, now, '192.0.2.1')
  live.add(now + 60_000, now, '192.0.2.1')
  expect(() => live.add(now + 60_000, now, '192.0.2.1')).toThrow()
  live.remove(now + 60_000, '192.0.2.2')
  live.remove(now + 60_000, undefined)
  expect(live.use(now)).toMatchObject({ held: 0 })
  live.add(now + 60_000, now, '192.0.2.1')
})

test('beside more networks than are counted one by one, a network has a share, and most others have theirs', () => {
  const { live } = liveCount(200_000, 1 / 1000)
  const endsAt = now + 60_000
  const added = (ip: string, records: number): number => {
    for (let n = 0; n < records; n++) {
      try {
        live.add(endsAt, now, ip)
      } catch {
        return n
      }
    }
    return records
  }
  for (let n = 0; n < 50_000; n++) live.add(endsAt, now, `2001:${n.toString(16)}::1`)
  expect(added('192.0.2.1', 1_000)).toBe(200)
  const others = Array.from({ length: 100 }, (_, n) => added(`198.51.100.${n}`, 2))
  expect(others.filter((records) => records === 2).length).toBeGreaterThan(90)
  for (let n = 0; n < 200; n++) live.remove(endsAt, '192.0.2.1')
  expect(added('192.0.2.1', 1_000)).toBeGreaterThan(190)
  expect(live.use(endsAt)).toMatchObject({ held: 0 })
})
