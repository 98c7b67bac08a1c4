import { describe, expect, test } from 'vitest'
import { comparisons } from '../../bench/simulate/comparison.ts'
import { actions, type Day, paceAt, partOfDay, typicalDay } from '../../bench/simulate/day.ts'
import { readFigures } from '../../bench/simulate/figures.ts'
import {
  averageRates,
  bytesOf,
  capacityOf,
  countsOf,
  expect as expected,
  microsAt,
  peakRates,
  type Room,
  usageOf,
  usageOfDay,
  utilizationOf,
  watchersOf,
} from '../../bench/simulate/model.ts'
import { roundFigures, steady } from './figures.ts'

const figures = roundFigures()
const room: Room = {
  instanceUtilization: 0.5,
  redisUtilization: 0.5,
  shardBytes: 1_000_000,
  shardImbalance: 1,
  streamsPerInstance: 1000,
}
const checks = (count: number) => ({ rates: { 'session check': count }, watchers: 0, bytes: 0 })

describe('a day', () => {
  test('is over at its end, and has its peak in the middle', () => {
    expect(partOfDay(typicalDay, 0, 1)).toBeCloseTo(1)
    expect(paceAt(typicalDay, 0.5)).toBeCloseTo(typicalDay.peakFactor)
    expect(paceAt(typicalDay, 0)).toBeCloseTo(2 - typicalDay.peakFactor)
  })

  test('has in each part what its pace says', () => {
    const parts = 1000
    for (const from of [0, 0.2, 0.5, 0.9]) {
      const middle = paceAt(typicalDay, from + 0.5 / parts) / parts
      expect(partOfDay(typicalDay, from, from + 1 / parts)).toBeCloseTo(middle, 8)
    }
  })

  test('has its peak at its peak factor', () => {
    expect(peakRates(typicalDay).order).toBeCloseTo(averageRates(typicalDay).order * typicalDay.peakFactor)
    expect(averageRates(typicalDay)['session check']).toBeCloseTo((typicalDay.users * 10) / 86_400)
  })
})

describe('the cost of an event', () => {
  const cost = { light: { utilization: 0.2, micros: 300 }, busy: { utilization: 0.8, micros: 100 } }

  test('lies between what was measured at two loads, and never beyond', () => {
    const found = [0, 0.2, 0.5, 0.8, 1, 3].map((utilization) => microsAt(cost, utilization))
    expect(found.map(Math.round)).toEqual([300, 300, 200, 100, 100, 100])
  })

  test('is that under load if both loads were alike', () => {
    const alike = { light: { utilization: 0.8, micros: 300 }, busy: { utilization: 0.7, micros: 100 } }
    expect(microsAt(alike, 0.1)).toBe(100)
  })
})

describe('the utilization', () => {
  test('is events times cost, and what goes on beside them', () => {
    expect(utilizationOf(figures, 'instance', { order: 100, 'sign-in': 100 }, 2, 50_000)).toBeCloseTo(0.15)
  })

  test('is the one at which the events cost so much', () => {
    const cost = { light: { utilization: 0, micros: 2000 }, busy: { utilization: 1, micros: 1000 } }
    const falling = roundFigures({ order: { instance: cost } })
    for (const rate of [100, 500, 900, 5000]) {
      const utilization = utilizationOf(falling, 'instance', { order: rate }, 1, 0)
      expect((rate * microsAt(cost, utilization)) / 1e6).toBeCloseTo(utilization, 5)
    }
  })
})

describe('what an installation holds', () => {
  test('grows with the instances until Redis is the bottleneck, and then with its shards', () => {
    const most = (instances: number, shards: number) =>
      capacityOf((count) => usageOf(figures, { instances, shards }, checks(count), room))
    expect(most(1, 1)).toMatchObject({ bottleneck: 'CPU of the instances', next: { bottleneck: 'CPU of Redis' } })
    expect(most(1, 1).most).toBeCloseTo(499, -1)
    expect(most(2, 1).most).toBeCloseTo(998, -1)
    expect(most(100, 1)).toMatchObject({ bottleneck: 'CPU of Redis', next: { bottleneck: 'CPU of the instances' } })
    expect(most(100, 1).most).toBeCloseTo(5000, -2)
    expect(most(100, 3).most).toBeCloseTo(15_000, -2)
  })

  test('is bounded by streams and by memory', () => {
    const watching = capacityOf((watchers) =>
      usageOf(figures, { instances: 2, shards: 1 }, { rates: {}, watchers, bytes: 0 }, room),
    )
    expect(watching).toMatchObject({ bottleneck: 'streams of the instances' })
    expect(watching.most).toBeCloseTo(2000, -1)
    const storing = capacityOf((bytes) =>
      usageOf(
        figures,
        { instances: 2, shards: 3 },
        { rates: {}, watchers: 0, bytes },
        { ...room, shardImbalance: 1.5 },
      ),
    )
    expect(storing).toMatchObject({ bottleneck: 'memory of Redis', next: { most: Infinity } })
    expect(storing.most / 2_000_000).toBeCloseTo(1, 2)
  })

  test('is full with the most users, and not before', async () => {
    const measured = await readFigures()
    const size = { instances: 10, shards: 3 }
    const usage = (users: number) => Math.max(...Object.values(usageOfDay(measured, size, { ...typicalDay, users })))
    const { most } = capacityOf((users) => usageOfDay(measured, size, { ...typicalDay, users }))
    expect(usage(most)).toBeLessThanOrEqual(1)
    expect(usage(most * 1.01)).toBeGreaterThan(1)
  })

  test('counts records as long as they live', () => {
    const records = {
      user: { count: 1, bytes: 100, lifeMs: null },
      order: { count: 2, bytes: 10, lifeMs: 60_000 },
    }
    const kept = roundFigures({ order: { records } })
    expect(bytesOf(kept, { order: 3 }, 30)).toBe(3 * 30 * (100 + 20))
    expect(bytesOf(kept, { order: 3 }, 600)).toBe(3 * (600 * 100 + 60 * 20))
  })

  test('has a watcher for each order as long as it is watched', () => {
    const { orderSeconds, unusedOrderSeconds } = typicalDay
    expect(watchersOf(typicalDay, { order: 5, 'unused order': 2 })).toBe(5 * orderSeconds + 2 * unusedOrderSeconds)
  })
})

describe('a run', () => {
  const perUser = { ...typicalDay.perUser, order: 0, 'unused order': 0 }
  const day: Day = { ...typicalDay, perUser }
  const run = { day, population: 1000, seconds: 100, instances: 2, shards: 3 }

  test('comes to what its events cost', () => {
    const events = actions.reduce((sum, action) => sum + countsOf(run)[action], 0)
    expect(events).toBeCloseTo(1000 * (0.6 + 10 + 0.3 + 0.1))
    const found = expected(figures, run)
    expect(found.commands).toBeCloseTo(events * 2)
    expect(found.instanceMicros).toBeCloseTo(events * 1000 + 2 * 100 * 1000)
    expect(found.redisMicros).toBeCloseTo(events * 100)
    expect(found.replicaMicros).toBeCloseTo(events * 50)
  })

  test('has watchers while orders are watched, but not beyond its end', () => {
    const waiting: Day = { ...day, perUser: { ...perUser, 'unused order': 0.1 }, unusedOrderSeconds: 1e6 }
    const idle = roundFigures({ 'unused order': { instance: steady(0), commands: 0 } })
    const { commands } = expected(idle, { ...run, day: waiting })
    const without = expected(idle, { ...run, day: { ...waiting, perUser } }).commands
    // 100 watchers, on average there for half of the time, by symmetry, at 0.1 commands a second.
    expect((commands - without) / (100 * 50 * 0.1)).toBeCloseTo(1, 1)
  })

  test('leaves records that have not expired', () => {
    const kept = roundFigures({
      'unused nonce': { records: { 'nonce (minutes)': { count: 1, bytes: 10, lifeMs: 50_000 } } },
      'first sign-in': { records: { user: { count: 1, bytes: 100, lifeMs: null } } },
    })
    const users = 1000 * (1 - Math.exp(-0.6))
    const { keys, memory } = expected(kept, { ...run, day: { ...day, perUser: { ...perUser, 'sign-out': 0.6 } } })
    expect(keys).toBeCloseTo(users + 50)
    expect(memory).toBeCloseTo(users * 100 + 50 * 10)
  })
})

test('a run is within a fifth of the model, or it is apart', () => {
  const model = { instanceMicros: 100, redisMicros: 100, replicaMicros: 100, commands: 100, keys: 100, memory: 100 }
  const used = (value: number) => ({ ...model, atMs: 0, commands: value, keys: [value / 2, value / 2], memory: value })
  const fits = (value: number) =>
    comparisons(model, used(1000), used(1000 + value))
      .filter(({ name }) => /commands|keys|memory/.test(name))
      .map((one) => one.fits)
  expect([79, 81, 119, 121].map(fits)).toEqual([false, true, true, false].map((fit) => [fit, fit, fit]))
  expect(comparisons(model, used(0), used(Number.NaN)).some((one) => one.fits)).toBe(false)
})
