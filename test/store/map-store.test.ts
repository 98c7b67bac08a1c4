import { expect, test } from 'vitest'
import { observedStore, type StoreReport, storeOperations } from '../../src/store/map-store.ts'
import { openStore } from '../../src/store/open.ts'
import { memoryStore } from '../support/memory-store.ts'
import { describeStoreContract } from './contract.ts'

describeStoreContract('an observed store', async () => {
  const store = observedStore(await openStore('sqlite::memory:'), () => {})
  return [store, store]
})

test('each step is reported once, when it is over, with its duration and its failure', async () => {
  const reports: StoreReport[] = []
  const inner = await memoryStore()
  const store = observedStore(inner, (report) => reports.push(report))
  expect([store.description, store.kind, store.shared]).toEqual([inner.description, 'sqlite', inner.shared])
  await store.create('a', '1', 'forever')
  await store.get('a')
  await store.compareAndSet('a', 1, '2', 'forever')
  await store.take('a')
  ;(await store.watch('a', () => {}))()
  await store.addMember('s', 'm', 'forever')
  await store.members('s')
  await store.removeMember('s', 'm')
  await store.ping()
  expect(reports.map(({ operation }) => operation).toSorted()).toEqual([...storeOperations].toSorted())
  for (const { durationMs, ...report } of reports) {
    expect(durationMs).toBeGreaterThan(0)
    expect(report).not.toHaveProperty('failure')
  }
  await expect(store.create('a', '1', { ttlMs: 0 })).rejects.toThrow(TypeError)
  expect(reports.at(-1)).toMatchObject({ operation: 'create', failure: expect.any(TypeError) })
})
