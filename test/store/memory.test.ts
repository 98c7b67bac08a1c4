import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { makeMemoryStore } from '../../src/store/memory.ts'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import type { Life, Store } from '../../src/store/store.ts'
import { Random } from '../http/generated/random.ts'
import { describeStoreContract } from './contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'countersign-memory-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const long = { ttlMs: 3_600_000 }

function closedLater<Opened extends Store>(store: Opened): Opened {
  onTestFinished(() => store.close())
  return store
}

const open = (capacityBytes?: number): Store =>
  closedLater(makeMemoryStore(capacityBytes === undefined ? {} : { capacityBytes }))

describeStoreContract('memory', async () => {
  const store = makeMemoryStore()
  return [store, store]
})

/** Some keys are used again and again. */
const keys = 5000

function anyCall(random: Random): (store: Store) => Promise<unknown> {
  const anyKey = (): string => `key:${random.share() < 0.6 ? random.below(30) : random.below(keys)}`
  const key = anyKey()
  const [set, member] = [`set:${random.below(4)}`, `member:${random.below(30)}`]
  const value = random.pick(['a', 'ab', 'b', 'a\u{10ffff}', '', 'a'.repeat(50_000)])
  const life = random.share() < 0.3 ? { ttlMs: 1 + random.below(4000) } : long
  const version = 1 + random.below(3)
  return random.pick([
    (store: Store) => store.get(key),
    (store: Store) => store.create(key, value, life),
    (store: Store) => store.create(key, value, life),
    (store: Store) => store.take(key),
    (store: Store) => store.compareAndSet(key, version, value, life),
    (store: Store) => store.compareAndSet(key, version, value, life),
    (store: Store) => store.addMember(set, member, long),
    (store: Store) => store.addMember(set, member, life).then((surplus) => surplus.length),
    // How many, because of members that expire at once either may go first.
    (store: Store) => store.addMember(set, member, long, 20).then((surplus) => surplus.length),
    (store: Store) => store.removeMember(set, member),
    (store: Store) => store.members(set).then((members) => members.sort()),
  ])
}

describe('a store in memory', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('answers 60,000 calls as a SQLite file does, whatever expires', async () => {
    const stores = [open(), closedLater(await openSqliteStore(join(folder, `${randomUUID()}.db`)))]
    const random = new Random(7)
    for (let turn = 0; turn < 4000; turn++) {
      const calls = Array.from({ length: 15 }, () => anyCall(random))
      const [inMemory, inFile] = await Promise.all(stores.map((store) => Promise.all(calls.map((call) => call(store)))))
      expect(inMemory, `turn ${turn}`).toEqual(inFile)
      if (random.share() < 0.1) vi.advanceTimersByTime(random.below(3000))
    }
  })

  it('returns half of a surrogate pair as it was given', async () => {
    const store = open()
    await store.create('a', 'a\ud800', long)
    expect((await store.get('a'))?.value).toBe('a\ud800')
  })

  it('has nothing in common with another one', async () => {
    const [one, other] = [open(), open()]
    await one.create('a', 'one', long)
    expect(await other.get('a')).toBeUndefined()
    expect(await other.create('a', 'two', long)).toBe(true)
    expect(await one.get('a')).toEqual({ value: 'one', version: 1 })
  })

  it('shows a value up to the last millisecond of its life, and not in the next', async () => {
    const store = open()
    await store.create('a', 'one', { ttlMs: 1000 })
    await store.addMember('set', 'm', { ttlMs: 1000 })
    vi.setSystemTime(Date.now() + 999)
    expect(await store.get('a')).toEqual({ value: 'one', version: 1 })
    expect(await store.create('a', 'two', 'forever')).toBe(false)
    expect(await store.members('set')).toEqual(['m'])
    vi.setSystemTime(Date.now() + 1)
    expect(await store.get('a')).toBeUndefined()
    expect(await store.compareAndSet('a', 1, 'two', 'forever')).toBe(false)
    expect(await store.take('a')).toBeUndefined()
    expect(await store.members('set')).toEqual([])
    expect(await store.create('a', 'two', 'forever')).toBe(true)
  })

  it('removes what expired, some at a time, and nothing else', async () => {
    const store = makeMemoryStore()
    const start = Date.now()
    const fill = async (beginning: string, life: Life, count: number) => {
      for (let i = 0; i < count; i++) {
        await store.create(`${beginning}:${i}`, 'a', life)
        await store.addMember(i % 2 ? 'odd' : 'even', `${beginning}:${i}`, life)
      }
    }
    // What has expired, and is not removed, is there again if the clock is set back.
    const kept = async () => {
      const now = Date.now()
      vi.setSystemTime(start)
      let values = 0
      for await (const _ of store.scan?.('') ?? []) values++
      const members = [...(await store.members('odd')), ...(await store.members('even'))]
      vi.setSystemTime(now)
      return [values, members.length]
    }
    await fill('lasting', long, 3000)
    await fill('over', { ttlMs: 10 }, 2000)
    await fill('forever', 'forever', 100)
    expect(await kept()).toEqual([5100, 5100])
    // The first step looks at 2,000 that last, and the second at 1,000 of those that do not.
    vi.advanceTimersByTime(5050)
    expect(await kept()).toEqual([4100, 5100])
    vi.advanceTimersByTime(1000)
    expect(await kept()).toEqual([3100, 3100])
    // And it goes on.
    await fill('again', { ttlMs: 10 }, 300)
    expect(await kept()).toEqual([3400, 3400])
    vi.advanceTimersByTime(60_000)
    expect(await kept()).toEqual([3100, 3100])
    await store.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('that is full says so, can be read and taken from, and has room again once values have expired', async () => {
    const store = open(1_000_000)
    const value = 'a'.repeat(1000)
    const life = { ttlMs: 60_000 }
    const full = { reason: 'STORE_UNAVAILABLE', cause: { message: 'the store in memory is full' } }
    let count = 0
    const fill = async (): Promise<void> => {
      for (; count < 2000; count++) await store.create(`key:${count}`, value, life)
    }
    await expect(fill()).rejects.toMatchObject(full)
    expect(count).toBeGreaterThan(400)
    const fillTheRest = async (): Promise<void> => {
      for (let i = 0; i < 2000; i++) await store.create(`rest:${i}`, '', life)
    }
    await expect(fillTheRest()).rejects.toMatchObject(full)
    await expect(store.create('one more', value, life)).rejects.toMatchObject(full)
    await expect(store.addMember('s'.repeat(200), 'm'.repeat(200), life)).rejects.toMatchObject(full)
    await expect(store.compareAndSet('key:1', 1, `${value}${value}`, life)).rejects.toMatchObject(full)
    await expect(store.ping()).rejects.toMatchObject(full)
    expect(await store.get('key:1')).toEqual({ value, version: 1 })
    expect(await store.members('s'.repeat(200))).toEqual([])

    expect(await store.compareAndSet('key:1', 1, 'short', life)).toBe(true)
    expect(await store.take('key:0')).toBe(value)
    expect(await store.create('one more', value, life)).toBe(true)
    await expect(store.create('and another', value, life)).rejects.toMatchObject(full)

    vi.advanceTimersByTime(life.ttlMs + 10_000)
    await store.ping()
    for (let i = 0; i < 400; i++) expect(await store.create(`later:${i}`, value, life)).toBe(true)
  })

  it('has as much room as at first once all that was stored is gone, in whatever way it goes', async () => {
    const store = open(2_000_000)
    const random = new Random(9)
    for (let i = 0; i < 30_000; i++) {
      await anyCall(random)(store).catch(() => {})
      if (i % 100 === 0) vi.advanceTimersByTime(random.below(2000))
    }
    vi.advanceTimersByTime(long.ttlMs + 20_000)
    // The largest value that fits, to the byte, and none that is a character longer.
    const room = (2_000_000 - 250) / 2 - 'a'.length
    await expect(store.create('a', 'a'.repeat(room + 1), long)).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' })
    expect(await store.create('a', 'a'.repeat(room), long)).toBe(true)
  })

  it('scans what is there from the first step to the last, while values come and go', async () => {
    const store = open()
    for (let i = 0; i < 10_000; i++) await store.create(`key:${i}`, 'a', long)
    const found = new Set<string>()
    for await (const { key } of store.scan?.('key:') ?? []) {
      found.add(key)
      const number = Number(key.slice(4))
      if (number % 2 === 0 && number < 10_000)
        await Promise.all([store.take(key), store.create(`other${key}`, 'a', long)])
    }
    for (let i = 1; i < 10_000; i += 2) expect(found).toContain(`key:${i}`)
    for await (const { key } of store.scan?.('key:') ?? []) expect(Number(key.slice(4)) % 2).toBe(1)
  })
})

test.each(['long values', 'wide values', 'short values', 'short sets', 'a long set'])(
  'a process with a heap of 64 MiB lives on when its store in memory is filled with %s',
  async (filling) => {
    const child = fileURLToPath(new URL('./memory-fill.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, ['--max-old-space-size=64', child, filling])
    const { count, message } = JSON.parse(stdout)
    expect(message).toBe('The store is full')
    expect(count).toBeGreaterThan(100)
  },
  60_000,
)
