import { describe, expect, test } from 'vitest'
import {
  type Failure,
  failureFindings,
  gaugeFindings,
  heapFindings,
  type LogLine,
  logFindings,
  objectFindings,
  type Window,
} from '../../bench/soak/findings.ts'
import { growthOf, type Sample, slopeOf } from '../../bench/soak/statistics.ts'

const mib = 1024 * 1024
/** Five minutes of samples, 5 s apart, of a heap of 30 MiB with noise of up to 150 KiB. */
const samplesOf = (heap: (at: number, index: number) => number): Sample[] =>
  Array.from({ length: 60 }, (_, index) => ({
    at: 300_000 + index * 5000,
    value: 30 * mib + ((index * 7919) % 150) * 1024 + heap(index * 5000, index),
  }))

const redisAway: Window = { name: 'Redis restarts', from: 1000, to: 5000, allows: ['STORE_UNAVAILABLE'] }

describe('the slope of samples', () => {
  test('is that of their line', () => {
    expect(slopeOf([1, 2, 3].map((at) => ({ at, value: 2 * at + 7 })))).toBe(2)
  })

  test('is not moved by a few that stand out', () => {
    const samples = samplesOf((_, index) => (index % 9 === 4 ? 20 * mib : 0))
    expect(Math.abs(growthOf(samples))).toBeLessThan(150 * 1024)
  })

  test('is 0 of none and of one', () => {
    expect([slopeOf([]), growthOf([]), slopeOf([{ at: 1, value: 1 }])]).toEqual([0, 0, 0])
  })
})

describe('a heap', () => {
  test('a heap that is flat is no finding', () => {
    expect(
      heapFindings(
        'a',
        samplesOf(() => 0),
      ),
    ).toEqual([])
  })

  test('a heap that shrinks is no finding', () => {
    expect(
      heapFindings(
        'a',
        samplesOf((ms) => -10 * ms),
      ),
    ).toEqual([])
  })

  test('a heap that keeps 60 bytes of each of 100 calls a second is a finding', () => {
    expect(
      heapFindings(
        'a',
        samplesOf((ms) => 0.1 * ms * 60),
      ),
    ).toEqual([
      expect.stringMatching(/^a: the heap grew by \d{4} KiB in the second half of the run; \d+ KiB are allowed$/),
    ])
  })

  test('a heap of which too little is known is a finding', () => {
    expect(heapFindings('a', samplesOf(() => 0).slice(0, 7))).toEqual([expect.stringContaining('only 7 samples')])
  })
})

describe('an idle server', () => {
  const before = { objects: { timers: 11, sockets: 7, promises: 500, maps: 236 }, resources: { Timeout: 2 } }

  test('an idle server that holds what it held before is no finding', () => {
    expect(objectFindings('a', before, before)).toEqual([])
    expect(objectFindings('a', before, { ...before, objects: { timers: 14, sockets: 7, promises: 530 } })).toEqual([])
  })

  test('that holds a map for each second in which an order ends is no finding', () => {
    expect(objectFindings('a', before, { ...before, objects: { ...before.objects, maps: 236 + 612 } })).toEqual([])
  })

  test.for([
    ['timers', 40],
    ['sockets', 11],
    ['promises', 900],
    ['maps', 1200],
  ] as const)('that holds more %s is one', ([kind, count]) => {
    const after = { ...before, objects: { ...before.objects, [kind]: count } }
    expect(objectFindings('a', before, after)).toEqual([
      `a: ${count} ${kind} are left, of ${before.objects[kind]} before the load`,
    ])
  })

  test('an idle server that holds a kind of object of which nothing was known before is a finding', () => {
    expect(objectFindings('a', before, { ...before, objects: { ...before.objects, ghosts: 1 } })).toHaveLength(1)
  })

  test('with another resource that keeps it alive is one', () => {
    const after = { ...before, resources: { Timeout: 2, TCPSocketWrap: 1 } }
    expect(objectFindings('a', before, after)).toEqual([
      'a: 1 active resources of kind TCPSocketWrap are left, of 0 before the load',
    ])
  })

  test('an idle server that counts something of clients is a finding, apart from orders, which are remembered', () => {
    expect(gaugeFindings('a', { watchers: 0, streams: 1, orders: 700 })).toEqual([
      'a: streams is at 1 although no client is left',
    ])
  })
})

describe('a visit that failed', () => {
  const failure: Failure = {
    from: 900,
    to: 1100,
    what: 'sign-in over REST',
    reason: 'STORE_UNAVAILABLE',
    message: 'away',
  }

  test('in a window that allows its reason is no finding', () => {
    expect(failureFindings([failure], [redisAway])).toEqual([])
  })

  test('outside of it is one, and alike ones are one together', () => {
    const late = { ...failure, from: 5001, to: 5002 }
    expect(failureFindings([late, late, late], [redisAway])).toEqual([
      'sign-in over REST: STORE_UNAVAILABLE at 5.0 s, and 2 more (away)',
    ])
  })

  test('in it with another reason is one', () => {
    expect(failureFindings([{ ...failure, reason: 'INTERNAL' }], [redisAway])).toHaveLength(1)
  })
})

describe('a line of the log', () => {
  const expected = { texts: ['ready'], reasons: ['SESSION_INVALID'] }
  const line = (level: string, text: string, fields: LogLine['fields'] = {}, at = 2000): LogLine => ({
    at,
    instance: 'a',
    level,
    text,
    fields,
  })
  const found = (...lines: LogLine[]) => logFindings(lines, [redisAway], expected)

  test('a line of the log that is expected is no finding', () => {
    expect(found(line('info', 'ready'), line('info', 'request refused', { reason: 'SESSION_INVALID' }))).toEqual([])
  })

  test('of a store that is away is one if the store is there', () => {
    const away = (at: number) => line('warn', 'store unavailable', { reason: 'STORE_UNAVAILABLE' }, at)
    expect(found(away(2000))).toEqual([])
    expect(found(away(6000))).toEqual(['log of a: warn: store unavailable, STORE_UNAVAILABLE at 6.0 s'])
  })

  test('at level error is one at any time', () => {
    expect(found(line('error', 'request failed', { reason: 'INTERNAL', cause: 'Error: no\n    at x' }))).toEqual([
      'log of a: error: request failed, INTERNAL at 2.0 s (Error: no)',
    ])
    expect(found(line('error', 'request failed', { reason: 'STORE_UNAVAILABLE' }))).toHaveLength(1)
  })

  test('a line of the log that is not expected is a finding', () => {
    expect(found(line('info', 'hello'), line('info', 'request refused', { reason: 'RATE_LIMITED' }))).toHaveLength(2)
  })
})
