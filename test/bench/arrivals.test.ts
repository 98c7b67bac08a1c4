import { expect, test } from 'vitest'
import { arrivals, merged, randomOf } from '../../bench/simulate/arrivals.ts'
import { paceAt, partOfDay, typicalDay } from '../../bench/simulate/day.ts'

const options = (seed: number) => ({
  pace: (share: number) => paceAt(typicalDay, share),
  mostPace: typicalDay.peakFactor,
  random: randomOf(seed),
})

test('events arrive in order, as many as the rate says, and follow the pace of the day', () => {
  const times = [...arrivals(100, 1000, options(1))]
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  // Four standard deviations of a Poisson process.
  expect(Math.abs(times.length - 100_000)).toBeLessThan(4 * Math.sqrt(100_000))
  for (const from of [0, 0.25, 0.5, 0.75]) {
    const due = 100_000 * partOfDay(typicalDay, from, from + 0.25)
    const there = times.filter((at) => at >= from * 1e6 && at < (from + 0.25) * 1e6).length
    expect(Math.abs(there - due)).toBeLessThan(4 * Math.sqrt(due))
  }
})

test('events are as far apart as those that know nothing of each other', () => {
  const times = [...arrivals(100, 1000, { pace: () => 1, mostPace: 1, random: randomOf(2) })]
  const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0))
  // Of exponential gaps, one in e is longer than the average.
  const long = gaps.filter((gap) => gap > 10).length / gaps.length
  expect(long).toBeCloseTo(1 / Math.E, 2)
})

test('the same seed makes the same run, another one another', () => {
  const run = (seed: number) => [...arrivals(10, 100, options(seed))]
  expect(run(1)).toEqual(run(1))
  expect(run(1)).not.toEqual(run(2))
})

test('what never happens never arrives', () => {
  expect([...arrivals(0, 1000, options(1))]).toEqual([])
})

test('what is due of several kinds comes soonest first, all of it', () => {
  const sources = new Map([
    ['a', [1, 4, 9].values()],
    ['b', [].values()],
    ['c', [2, 3, 10].values()],
  ])
  expect([...merged(sources)].map(({ kind, at }) => `${kind}${at}`)).toEqual(['a1', 'c2', 'c3', 'a4', 'a9', 'c10'])
})
