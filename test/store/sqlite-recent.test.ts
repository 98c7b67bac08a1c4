import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import type { Store } from '../../src/store/store.ts'
import { Random } from '../http/generated/random.ts'

const folder = mkdtempSync(join(tmpdir(), 'countersign-sqlite-recent-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const long = { ttlMs: 3_600_000 }
/** Not remembered. */
const tooLong = 'a'.repeat(5000)

async function open(location: string): Promise<Store> {
  const store = await openSqliteStore(location)
  onTestFinished(() => store.close())
  return store
}

describe('a store in memory, which remembers what was used lately', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('answers 60,000 calls as a file does, whatever expires and however the clock is set', async () => {
    const stores = [await open(':memory:'), await open(join(folder, 'same.db'))]
    const random = new Random(7)
    // Some keys are used again and again, and there are more than are remembered.
    const anyKey = (): string => `key:${random.share() < 0.6 ? random.below(30) : random.below(5000)}`
    const anyValue = (): string => random.pick(['a', 'ab', 'b', 'a\u{10ffff}', 'a\ud800', tooLong])
    const anyLife = () => (random.share() < 0.3 ? ({ ttlMs: 1 + random.below(4000) } as const) : long)
    const anyCall = (): ((store: Store) => Promise<unknown>) => {
      const [key, other, value, life, version] = [anyKey(), anyKey(), anyValue(), anyLife(), 1 + random.below(3)]
      const calls = [
        (store: Store) => store.get(key),
        (store: Store) => store.getAll?.([key, other]) ?? Promise.reject(new Error('a store that reads one by one')),
        (store: Store) => store.create(key, value, life),
        (store: Store) => store.create(key, value, life),
        (store: Store) => store.take(key),
        (store: Store) => store.takeIf(key, 'a'),
        (store: Store) => store.compareAndSet(key, version, value, life),
        (store: Store) => store.compareAndSet(key, version, value, life),
      ]
      return random.pick(calls)
    }
    for (let turn = 0; turn < 4000; turn++) {
      const calls = Array.from({ length: 15 }, anyCall)
      const [inMemory, inFile] = await Promise.all(stores.map((store) => Promise.all(calls.map((call) => call(store)))))
      expect(inMemory, `turn ${turn}`).toEqual(inFile)
      // First it stands still, because what expires is forgotten together with all else.
      if (turn > 3000 && random.share() < 0.2) vi.advanceTimersByTime(random.below(3000))
      // As when the machine's clock is corrected.
      if (turn > 3000 && random.share() < 0.02) vi.setSystemTime(Date.now() - random.below(5000))
    }
  })

  it('gives a value that was read before to one of those who take it', async () => {
    const store = await open(':memory:')
    for (const take of [store.take.bind(store), (key: string) => store.takeIf(key, 'o')]) {
      await store.create('a', 'one', long)
      await store.get('a')
      const taken = await Promise.all([take('a'), take('a'), take('a')])
      expect(taken.filter((value) => value !== undefined)).toHaveLength(1)
      expect(await take('a')).toBeUndefined()
      expect(await store.get('a')).toBeUndefined()
    }
  })

  it('has nothing in common with another one', async () => {
    const [one, other] = [await open(':memory:'), await open(':memory:')]
    await one.create('a', 'one', long)
    expect(await other.get('a')).toBeUndefined()
    expect(await other.create('a', 'two', long)).toBe(true)
    expect(await one.get('a')).toEqual({ value: 'one', version: 1 })
  })
})
