import { expect, test } from 'vitest'
import { LiveRecords } from '../src/live-records.ts'

const now = 1_700_000_000_000

/** How many more records find room. */
function room(live: LiveRecords, endsAt: number, at: number): number {
  for (let count = 0; ; count++) {
    try {
      live.add(endsAt, at, undefined)
    } catch (error) {
      expect(error).toMatchObject({ reason: 'SERVER_BUSY', retryAfterMs: expect.any(Number) })
      return count
    }
  }
}

function liveRecords(most: number): { live: LiveRecords; refused: (string | undefined)[] } {
  const refused: (string | undefined)[] = []
  return { live: new LiveRecords({ most, refused: (client) => refused.push(client) }), refused }
}

test('there is room again when lives end, and not a moment before', () => {
  const { live } = liveRecords(5)
  for (let n = 0; n < 5; n++) live.add(now + 60_000 + n * 1000, now, undefined)
  expect(room(live, now + 60_000, now + 59_999)).toBe(0)
  expect(room(live, now + 120_000, now + 61_000)).toBe(2)
  expect(room(live, now + 120_000, now + 64_000)).toBe(3)
  expect(room(live, now + 240_000, now + 120_000)).toBe(5)
})

test('there is room again when a record is removed before its end, once', () => {
  const { live } = liveRecords(2)
  live.add(now + 60_500, now, undefined)
  live.add(now + 90_000, now, undefined)
  live.remove(now + 60_500)
  live.remove(now + 60_500)
  live.remove(now + 30_000)
  expect(room(live, now + 60_000, now)).toBe(1)
})

test('a record that ended is not counted out twice', () => {
  const { live } = liveRecords(3)
  live.add(now + 1000, now, undefined)
  expect(room(live, now + 90_000, now + 2000)).toBe(3)
  live.remove(now + 1000)
  expect(room(live, now + 90_000, now + 2000)).toBe(0)
})

test('a large record takes several places, and is refused whole', () => {
  const { live, refused } = liveRecords(10)
  live.add(now + 60_000, now, undefined, 8)
  expect(() => live.add(now + 60_000, now, '2001:db8::1', 3)).toThrow()
  expect(refused).toEqual(['2001:db8:0:0::/64'])
  expect(room(live, now + 60_000, now)).toBe(2)
  expect(room(live, now + 90_000, now + 60_000)).toBe(10)
})

test('a clock that is set on and back again keeps nobody out', () => {
  const { live } = liveRecords(3)
  const hourMs = 3_600_000
  live.add(now + 60_000, now, undefined)
  live.add(now + hourMs + 60_000, now + hourMs, undefined)
  expect(room(live, now + 120_000, now + 1000)).toBe(2)
  expect(room(live, now + 240_000, now + 120_000)).toBe(2)
})
