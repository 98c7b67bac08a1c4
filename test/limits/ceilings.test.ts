import { expect, test } from 'vitest'
import { ceilingsFor } from '../../src/limits/concurrency.ts'

test('the ceilings of what takes room in the heap follow from its size unless they are set', () => {
  const given = { rateLimit: true, limits: { pendingBodies: 7 } }
  const { maxConnections, maxRequests, maxStreams, maxStoreCalls, ...rest } = ceilingsFor(given)
  expect(maxConnections).toBeGreaterThan(1000)
  expect(maxRequests).toBeGreaterThan(1000)
  expect(rest).toEqual({ maxPendingBodies: 7, networkShare: 1 / 4 })
  // Watchers and a store that hangs leave each other room.
  expect(maxStreams! + maxStoreCalls!).toBeLessThanOrEqual(maxRequests! + 1)
  expect(maxStreams).toBeGreaterThan(maxRequests! * 0.7)
  expect(maxStoreCalls).toBeGreaterThan(maxRequests! * 0.2)
  const limits = { connections: 8, requests: 9, streams: 10 }
  const set = { maxConnections: 8, maxRequests: 9, maxStreams: 10 }
  expect(ceilingsFor({ rateLimit: true, limits })).toMatchObject({ ...set, maxStoreCalls: 3 })
  // More requests than the heap has room for make no room for more of what waits in them.
  expect(ceilingsFor({ rateLimit: true, limits: { requests: 1_000_000 } })).toMatchObject({ maxStreams, maxStoreCalls })
})

test('one network may hold all if what clients do is not limited', () => {
  expect(ceilingsFor({ rateLimit: false, limits: {} })).toMatchObject({ networkShare: 1 })
})
