import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { RecentTokens, type SignedToken } from '../../../src/core/users/sessions.ts'

const signed: SignedToken = { sessionId: 'an id', tokenHash: 'a hash' }

test('a token that was used lately is not looked at again, and any other one is', () => {
  const tokens = new RecentTokens()
  const make = vi.fn(() => signed)
  for (const token of ['css_one', 'css_one', 'css_two', 'css_one', 'css_two'])
    expect(tokens.of(token, make)).toBe(signed)
  expect(make).toHaveBeenCalledTimes(2)
})

test('an unsigned token is looked at each time', () => {
  const tokens = new RecentTokens()
  const make = vi.fn(() => undefined)
  for (let time = 0; time < 3; time++) expect(tokens.of('css_made-up', make)).toBeUndefined()
  expect(make).toHaveBeenCalledTimes(3)
})

test('made-up tokens push nothing out', () => {
  const tokens = new RecentTokens()
  const make = vi.fn(() => signed)
  tokens.of('css_good', make)
  for (let index = 0; index < 25_000; index++) tokens.of(`css_made-up-${index}`, () => undefined)
  tokens.of('css_good', make)
  expect(make).toHaveBeenCalledTimes(1)
})

test('a token is remembered while four thousand others are used, and forgotten once eight thousand were', () => {
  const tokens = new RecentTokens()
  const make = vi.fn(() => signed)
  const use = (from: number, to: number): void => {
    for (let index = from; index < to; index++) tokens.of(`css_${index}`, make)
  }
  use(0, 4_001)
  tokens.of('css_0', make)
  expect(make).toHaveBeenCalledTimes(4_001)
  use(4_001, 12_001)
  make.mockClear()
  tokens.of('css_0', make)
  expect(make).toHaveBeenCalledTimes(1)
})

describe('a token', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('a token that is not used is remembered for half a minute and forgotten within a minute', () => {
    const tokens = new RecentTokens()
    const make = vi.fn(() => signed)
    tokens.of('css_one', make)
    vi.advanceTimersByTime(29_000)
    tokens.of('css_other', make)
    vi.advanceTimersByTime(29_000)
    tokens.of('css_other', make)
    expect(make).toHaveBeenCalledTimes(2)
    vi.advanceTimersByTime(2_000)
    tokens.of('css_one', make)
    expect(make).toHaveBeenCalledTimes(3)
  })

  test('is remembered for half a minute, too, if others fill the memory just before that is over', () => {
    const tokens = new RecentTokens()
    const make = vi.fn(() => signed)
    for (let index = 0; index < 4_000; index++) tokens.of(`css_${index}`, make)
    vi.advanceTimersByTime(29_000)
    for (let index = 4_000; index < 4_010; index++) tokens.of(`css_${index}`, make)
    make.mockClear()
    vi.advanceTimersByTime(29_000)
    tokens.of('css_0', make)
    expect(make).not.toHaveBeenCalled()
  })

  test('is waited for with one timer, which ends when no token is left', () => {
    const tokens = new RecentTokens()
    tokens.of('css_one', () => signed)
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(60_000)
    expect(vi.getTimerCount()).toBe(0)
    tokens.of('css_two', () => signed)
    expect(vi.getTimerCount()).toBe(1)
  })

  test('a token that is used all the time is looked at once', () => {
    const tokens = new RecentTokens()
    const make = vi.fn(() => signed)
    for (let second = 0; second < 600; second += 20) {
      tokens.of('css_one', make)
      vi.advanceTimersByTime(20_000)
    }
    expect(make).toHaveBeenCalledTimes(1)
  })
})

test('what is remembered of a token does not contain it', () => {
  const set = vi.spyOn(Map.prototype, 'set')
  onTestFinished(() => set.mockRestore())
  new RecentTokens().of('css_a-secret', () => signed)
  expect(set).toHaveBeenCalled()
  expect(JSON.stringify(set.mock.calls)).not.toContain('a-secret')
})

test('nothing is remembered once all tokens are forgotten', () => {
  const tokens = new RecentTokens()
  tokens.of('css_one', () => signed)
  tokens.clear()
  expect(tokens.of('css_one', () => undefined)).toBeUndefined()
})

test('a cache of no tokens looks at each token each time', () => {
  const tokens = new RecentTokens(0)
  const make = vi.fn(() => signed)
  for (let time = 0; time < 3; time++) expect(tokens.of('css_one', make)).toBe(signed)
  expect(make).toHaveBeenCalledTimes(3)
})
