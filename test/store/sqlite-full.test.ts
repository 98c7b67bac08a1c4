import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite.ts'

const life = { ttlMs: 60_000 }
/** So long that some ten thousand fill the store. */
const value = 'a'.repeat(100_000)

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

test('a store in memory that is full says so, can be read and taken from, and has room again once values have expired', async () => {
  const store = await openSqliteStore(':memory:')
  onTestFinished(() => store.close())
  const full = { reason: 'STORE_UNAVAILABLE', cause: { message: 'database or disk is full' } }
  let count = 0
  const fill = async (): Promise<void> => {
    for (; count < 20_000; count++) await store.create(`key:${count}`, value, life)
  }
  await expect(fill()).rejects.toMatchObject(full)
  expect(count).toBeGreaterThan(10_000)
  await expect(store.create('one more', value, life)).rejects.toMatchObject(full)
  expect(await store.get('key:0')).toEqual({ value, version: 1 })

  expect(await store.take('key:0')).toBe(value)
  expect(await store.create('one more', value, life)).toBe(true)
  await expect(store.create('and another', value, life)).rejects.toMatchObject(full)

  vi.advanceTimersByTime(life.ttlMs + 20_000)
  for (let i = 0; i < 10_000; i++) expect(await store.create(`later:${i}`, value, life)).toBe(true)
})
