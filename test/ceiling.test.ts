import { expect, test } from 'vitest'
import { ceilingsFor } from '../src/ceiling.ts'

test('the ceilings of what takes room in the heap follow from its size unless they are set', () => {
  const { maxConnections, maxRequests, maxStreams, maxStoreCalls, ...rest } = ceilingsFor({ maxPendingBodies: 7 })
  expect(maxConnections).toBeGreaterThan(1000)
  expect(maxRequests).toBeGreaterThan(1000)
  expect(rest).toEqual({ maxPendingBodies: 7 })
  // Watchers and a store that hangs leave each other room.
  expect(maxStreams! + maxStoreCalls!).toBeLessThanOrEqual(maxRequests!)
  expect(maxStreams).toBeGreaterThan(maxRequests! * 0.7)
  expect(maxStoreCalls).toBeGreaterThan(maxRequests! * 0.2)
  const set = { maxConnections: 8, maxRequests: 9, maxStreams: 10, maxStoreCalls: 11 }
  expect(ceilingsFor(set)).toEqual(set)
})
