import { expect, onTestFinished, test } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import type { Store } from '../../src/store/store.ts'
import { describeStoreContract } from './contract.ts'

const life = { ttlMs: 60_000 }
const unavailable = { reason: 'STORE_UNAVAILABLE', cause: { message: 'database or disk is full' } }

async function open(memoryBytes?: number): Promise<Store> {
  const store = await openSqliteStore(':memory:', memoryBytes === undefined ? {} : { memoryBytes })
  onTestFinished(() => store.close())
  return store
}

describeStoreContract('SQLite in memory', async () => {
  const store = await openSqliteStore(':memory:')
  return [store, store]
})

test('a store in memory has nothing in common with another one, in values or in wake-ups', async () => {
  const [one, other] = [await open(), await open()]
  let wakes = 0
  await other.watch('a', () => wakes++)
  await one.create('a', 'one', life)
  expect(await one.compareAndSet('a', 1, 'two', life, { wake: true })).toBe(true)
  expect(await other.get('a')).toBeUndefined()
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(wakes).toBe(0)
})

test('a store in memory says what it is', async () => {
  const store = await open()
  expect([store.description, store.kind, store.shared]).toEqual(['SQLite in memory', 'sqlite', false])
})

/** More than any of these fills in the 8 MiB that the store has here. */
const most = 200_000

const fillings: Readonly<Record<string, (store: Store, i: number) => Promise<unknown>>> = {
  'long values': (store, i) => store.create(`key:${i}`, `${i}${'a'.repeat(60_000)}`, life),
  'wide values': (store, i) => store.create(`key:${i}`, `${i}${'\u4e00'.repeat(600)}`, life),
  'short values': (store, i) => store.create(`key:${i}`, '', life),
  'short sets': (store, i) => store.addMember(`set:${i}`, 'm', life),
  'a long set': (store, i) => store.addMember('set', `member:${i}`, life),
}

test.each(Object.keys(fillings))(
  'a flood of %s ends in STORE_UNAVAILABLE when its share of memory is full, and a deletion makes room',
  async (filling) => {
    const store = await open(8 * 2 ** 20)
    await store.create('kept', 'a'.repeat(60_000), life)
    const fill = async (i: number): Promise<unknown> => await fillings[filling]?.(store, i)
    const flood = async (): Promise<void> => {
      for (let i = 0; i < most; i += 100) await Promise.all(Array.from({ length: 100 }, (_, n) => fill(i + n)))
    }
    await expect(flood()).rejects.toMatchObject(unavailable)
    await expect(store.create('one more', 'a'.repeat(60_000), life)).rejects.toMatchObject(unavailable)

    expect(await store.get('kept')).toMatchObject({ version: 1 })
    expect(await store.take('kept')).toHaveLength(60_000)
    await store.ping()
    expect(await store.create('one more', 'a'.repeat(50_000), life)).toBe(true)
  },
  60_000,
)
