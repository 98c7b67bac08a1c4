import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { RecentValues } from '../../src/store/sqlite-recent.ts'
import type { Store } from '../../src/store/store.ts'
import { Random } from '../http/generated/random.ts'

const folder = mkdtempSync(join(tmpdir(), 'countersign-sqlite-recent-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const long = { ttlMs: 3_600_000 }
/** A hundred of them are more than is remembered. */
const longValue = 'a'.repeat(50_000)

async function open(location: string): Promise<Store> {
  const store = await openSqliteStore(location)
  onTestFinished(() => store.close())
  return store
}

/** Some keys are used again and again. */
const keys = 5000

function anyCall(random: Random): (store: Store) => Promise<unknown> {
  const anyKey = (): string => `key:${random.share() < 0.6 ? random.below(30) : random.below(keys)}`
  const [key, other] = [anyKey(), anyKey()]
  const value = random.pick(['a', 'ab', 'b', 'a\u{10ffff}', 'a\ud800', longValue])
  const life = random.share() < 0.3 ? { ttlMs: 1 + random.below(4000) } : long
  const version = 1 + random.below(3)
  return random.pick([
    (store: Store) => store.get(key),
    (store: Store) => store.getAll?.([key, other]) ?? Promise.reject(new Error('a store that reads one by one')),
    (store: Store) => store.create(key, value, life),
    (store: Store) => store.create(key, value, life),
    (store: Store) => store.take(key),
    (store: Store) => store.takeIf(key, 'a'),
    (store: Store) => store.compareAndSet(key, version, value, life),
    (store: Store) => store.compareAndSet(key, version, value, life),
  ])
}

describe('a store in memory, which remembers what was used lately', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('answers 60,000 calls as a file does, whatever expires', async () => {
    const stores = [await open(':memory:'), await open(join(folder, `${randomUUID()}.db`))]
    const random = new Random(7)
    for (let turn = 0; turn < 4000; turn++) {
      const calls = Array.from({ length: 15 }, () => anyCall(random))
      const [inMemory, inFile] = await Promise.all(stores.map((store) => Promise.all(calls.map((call) => call(store)))))
      expect(inMemory, `turn ${turn}`).toEqual(inFile)
      // First it stands still, because what expires is forgotten.
      if (turn > 3000 && random.share() < 0.2) vi.advanceTimersByTime(random.below(3000))
    }
  })

  it('reads what a scan finds, which nothing is remembered for, however the clock is set', async () => {
    const store = await open(':memory:')
    const random = new Random(8)
    let compared = 0
    for (let turn = 0; turn < 2000; turn++) {
      await Promise.all(Array.from({ length: 15 }, () => anyCall(random)(store)))
      if (random.share() < 0.2) vi.advanceTimersByTime(random.below(3000))
      if (random.share() > 0.02) continue
      // As when the machine's clock is corrected: what was removed is not there again, and the rest is.
      vi.setSystemTime(Date.now() - random.below(5000))
      const scanned = new Map<string, string>()
      for await (const { key, value } of store.scan?.('key:') ?? []) scanned.set(key, value)
      for (let key = 0; key < keys; key++) {
        const found = await store.get(`key:${key}`)
        if (found) compared++
        expect(found?.value, `turn ${turn}, key ${key}`).toBe(scanned.get(`key:${key}`))
      }
    }
    expect(compared).toBeGreaterThan(10_000)
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

  it('remembers up to 8 MiB, and what is used before what is not', () => {
    const values = new RecentValues()
    const value = 'a'.repeat(1000)
    for (let i = 0; i < 50_000; i++) {
      values.set(`key:${i}`, { found: { value, version: 1 }, expiresAt: 0 })
      // Used now and then.
      if (i % 1000 === 0) values.get('key:0')
    }
    const remembered = Array.from({ length: 50_000 }, (_, i) => i).filter((i) => values.get(`key:${i}`) !== undefined)
    expect(remembered.length).toBeGreaterThan(3000)
    expect(remembered.length).toBeLessThan(8200)
    expect(remembered).toContain(0)
    expect(remembered).toContain(49_999)
  })
})
