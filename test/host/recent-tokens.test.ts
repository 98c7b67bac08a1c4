import { hash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { RecentTokens, type SignedToken } from '../../src/host/recent-tokens.ts'

const signed: SignedToken = { sessionId: 'an id', tokenHash: 'a hash' }

test('a token that was used lately is not looked at again, and any other one is', () => {
  const tokens = new RecentTokens()
  const make = vi.fn(() => signed)
  for (const token of ['css_one', 'css_one', 'css_two', 'css_one', 'css_two'])
    expect(tokens.of(token, 1, make)).toBe(signed)
  expect(make).toHaveBeenCalledTimes(2)
})

test('a token that nobody signed is looked at each time', () => {
  const tokens = new RecentTokens()
  const make = vi.fn(() => undefined)
  for (let time = 0; time < 3; time++) expect(tokens.of('css_made-up', 1, make)).toBeUndefined()
  expect(make).toHaveBeenCalledTimes(3)
})

test('made-up tokens push nothing out', () => {
  const tokens = new RecentTokens()
  const make = vi.fn(() => signed)
  tokens.of('css_good', 1, make)
  for (let index = 0; index < 25_000; index++) tokens.of(`css_made-up-${index}`, 1, () => undefined)
  tokens.of('css_good', 1, make)
  expect(make).toHaveBeenCalledTimes(1)
})

test('a token is remembered while four thousand others are used, and forgotten once eight thousand were', () => {
  const tokens = new RecentTokens()
  const make = vi.fn(() => signed)
  const use = (from: number, to: number): void => {
    for (let index = from; index < to; index++) tokens.of(`css_${index}`, 1, make)
  }
  use(0, 4_001)
  tokens.of('css_0', 1, make)
  expect(make).toHaveBeenCalledTimes(4_001)
  use(4_001, 12_001)
  make.mockClear()
  tokens.of('css_0', 1, make)
  expect(make).toHaveBeenCalledTimes(1)
})

describe('a token', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('that is not used is remembered for half a minute and forgotten within a minute', () => {
    const tokens = new RecentTokens()
    const make = vi.fn(() => signed)
    tokens.of('css_one', 1, make)
    vi.advanceTimersByTime(29_000)
    tokens.of('css_other', 1, make)
    vi.advanceTimersByTime(29_000)
    tokens.of('css_other', 1, make)
    expect(make).toHaveBeenCalledTimes(2)
    vi.advanceTimersByTime(2_000)
    tokens.of('css_one', 1, make)
    expect(make).toHaveBeenCalledTimes(3)
  })

  test('is remembered for half a minute, too, if others fill the memory just before that is over', () => {
    const tokens = new RecentTokens()
    const make = vi.fn(() => signed)
    for (let index = 0; index < 4_000; index++) tokens.of(`css_${index}`, 1, make)
    vi.advanceTimersByTime(29_000)
    for (let index = 4_000; index < 4_010; index++) tokens.of(`css_${index}`, 1, make)
    make.mockClear()
    vi.advanceTimersByTime(29_000)
    tokens.of('css_0', 1, make)
    expect(make).not.toHaveBeenCalled()
  })

  test('is waited for with one timer, which ends when no token is left', () => {
    const tokens = new RecentTokens()
    tokens.of('css_one', 1, () => signed)
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(60_000)
    expect(vi.getTimerCount()).toBe(0)
    tokens.of('css_two', 1, () => signed)
    expect(vi.getTimerCount()).toBe(1)
  })

  test('that is used all the time is looked at once', () => {
    const tokens = new RecentTokens()
    const make = vi.fn(() => signed)
    for (let second = 0; second < 600; second += 20) {
      tokens.of('css_one', 1, make)
      vi.advanceTimersByTime(20_000)
    }
    expect(make).toHaveBeenCalledTimes(1)
  })
})

/** Two tokens whose hashes have the same first 24 bits. */
function tokensAlike(): [one: string, other: string] {
  const seen = new Map<string, string>()
  for (let index = 0; ; index++) {
    const token = `css_${index}`
    const start = hash('sha256', token, 'hex').slice(0, 6)
    const before = seen.get(start)
    if (before !== undefined) return [before, token]
    seen.set(start, token)
  }
}

test('a token whose hash begins like that of another one is not taken for it, whether that was used just now or long before', () => {
  const [one, other] = tokensAlike()
  const tokens = new RecentTokens()
  const signedOther = { ...signed, sessionId: 'another id' }
  expect(tokens.of(one, 1, () => signed)).toBe(signed)
  expect(tokens.of(other, 1, () => undefined)).toBeUndefined()
  expect(tokens.of(one, 1, () => undefined)).toBe(signed)
  expect(tokens.of(other, 1, () => signedOther)).toBe(signedOther)
  for (let index = 0; index < 4_100; index++) tokens.of(`csd_${index}`, 1, () => signed)
  expect(tokens.of(one, 1, () => undefined)).toBeUndefined()
  expect(tokens.of(other, 1, () => undefined)).toBe(signedOther)
})

test('what is remembered of a token does not contain it', () => {
  const set = vi.spyOn(Map.prototype, 'set')
  onTestFinished(() => set.mockRestore())
  new RecentTokens().of('css_a-secret', 1, () => signed)
  expect(set).toHaveBeenCalled()
  expect(JSON.stringify(set.mock.calls)).not.toContain('a-secret')
})

test('nothing is remembered across a change of the secrets', () => {
  const tokens = new RecentTokens()
  const make = vi.fn(() => signed)
  tokens.of('css_one', 1, make)
  expect(tokens.of('css_one', 2, () => undefined)).toBeUndefined()
})
