import { expect, test } from 'vitest'
import { Tally } from '../../bench/turns.ts'

/** A turn with this CPU time for a call, and this 99th percentile. */
function turn(cpuMicros: number, p99 = 1) {
  return { perSecond: 1e6 / cpuMicros, cpuMicros, besideScript: 0, p99, loadBusy: 0.5 }
}

test('the ratio of two is the median of those within the rounds in which both had a turn', () => {
  const [own, floor] = [new Tally(), new Tally()]
  const rounds = Array.from({ length: 5 }, () => Symbol())
  const [first, second, third, ofOne, ofOther] = rounds as [symbol, symbol, symbol, symbol, symbol]
  // The machine is twice as slow in the second round, and four times in the third.
  own.add(first, turn(200), [1])
  own.add(second, turn(400), [1])
  own.add(third, turn(1000), [1])
  own.add(ofOne, turn(9), [1])
  floor.add(ofOther, turn(7), [1])
  floor.add(third, turn(400), [1])
  floor.add(second, turn(200), [1])
  floor.add(first, turn(100), [1])
  expect(own.cpuUnder(floor)).toBeCloseTo(0.5)
  expect(own.rateOver(floor)).toBeCloseTo(0.5)
})

test('one pause of the machine, which all calls in flight wait for, does not make the ratio of the 99th percentiles', () => {
  const [own, floor] = [new Tally(), new Tally()]
  for (const ownP99 of [2, 2, 2, 90, 2]) {
    const round = Symbol()
    own.add(round, turn(100, ownP99), [ownP99])
    floor.add(round, turn(100, 2), [2])
  }
  expect(own.p99Over(floor)).toBe(1)
  // The table shows it all the same.
  expect(own.times.p99).toBe(90)
})

test('one that is as fast as another may be at least as fast in truth, and one that is slower in nearly all rounds is not', () => {
  const atMost = (ratios: readonly number[]): number => {
    const [own, other] = [new Tally(), new Tally()]
    for (const ratio of ratios) {
      const round = Symbol()
      own.add(round, turn(100 / ratio), [1])
      other.add(round, turn(100), [1])
    }
    return own.rateAtMostOver(other)
  }
  const among = (count: number, slower: number): number[] =>
    Array.from({ length: count }, (_, i) => (i < slower ? 0.98 : 1.02))
  expect(atMost(among(48, 24))).toBeCloseTo(1.02)
  expect(atMost(among(48, 30))).toBeCloseTo(1.02)
  // As a fair coin does in one of forty tries.
  expect(atMost(among(48, 31))).toBeCloseTo(0.98)
  expect(atMost(among(8, 6))).toBeCloseTo(1.02)
  expect(atMost(among(8, 7))).toBeCloseTo(0.98)
})
