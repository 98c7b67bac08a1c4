import { expect, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { Concurrency, ceilingsFor } from '../../src/limits/concurrency.ts'

test('the ceilings of what takes room in the heap follow from its size unless they are set', () => {
  const given = { rateLimit: true, limits: { pendingBodies: 7 } }
  const { connections, requests, streams, storeCalls, ...rest } = ceilingsFor(given)
  expect(connections).toBeGreaterThan(1000)
  expect(requests).toBeGreaterThan(1000)
  expect(rest).toEqual({ pendingBodies: 7, networkShare: 1 / 4 })
  // Watchers and a store that hangs leave each other room.
  expect(streams! + storeCalls!).toBeLessThanOrEqual(requests! + 1)
  expect(streams).toBeGreaterThan(requests! * 0.7)
  expect(storeCalls).toBeGreaterThan(requests! * 0.2)
  const limits = { connections: 8, requests: 9, streams: 10 }
  const set = { connections: 8, requests: 9, streams: 10 }
  expect(ceilingsFor({ rateLimit: true, limits })).toMatchObject({ ...set, storeCalls: 3 })
  // More requests than the heap has room for make no room for more of what waits in them.
  expect(ceilingsFor({ rateLimit: true, limits: { requests: 1_000_000 } })).toMatchObject({ streams, storeCalls })
})

test('one network may hold all if what clients do is not limited', () => {
  expect(ceilingsFor({ rateLimit: false, limits: {} })).toMatchObject({ networkShare: 1 })
})

test('all networks together hold no more than a ceiling, whatever the share of each', () => {
  const requests = new Concurrency('requests', { requests: 8, networkShare: 1 / 4 }, silentLogger)
  const take = (network: string) => [requests.tryTake(network), requests.tryTake(network)]
  for (const network of ['a', 'b', 'c', 'd']) expect(take(network)).toEqual([true, true])
  expect(take('e')).toEqual([false, false])
  requests.leave('a')
  expect(take('e')).toEqual([true, false])
})
