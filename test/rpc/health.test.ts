import { getEventListeners } from 'node:events'
import { createClient, createRouterTransport } from '@connectrpc/connect'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../gen/server/grpc/health/v1/health_pb.ts'
import { registerMethods } from '../../src/rpc/connect.ts'
import { healthMethods } from '../../src/rpc/health.ts'
import { Invoker } from '../../src/rpc/invoke.ts'
import { memoryStore } from '../support/memory-store.ts'

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = ServingStatus

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/**
 * Lets time pass, a second at a time, and what is due happen: the store answers, and watchers are woken, in later turns
 * of the event loop.
 */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1000) {
    await vi.advanceTimersByTimeAsync(Math.min(left, 1000))
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The health service over a store, with a count of how often the store was asked. */
async function startHealth() {
  const store = await memoryStore()
  /** The store has one of its own. */
  const idleTimers = vi.getTimerCount()
  const stop = new AbortController()
  const counts = { probes: 0 }
  const ready = (): Promise<void> => {
    counts.probes++
    return store.ping()
  }
  const methods = healthMethods({ services: ['a.Service'], ready, shutdown: stop.signal })
  const invoker = new Invoker(undefined, () => {})
  const transport = createRouterTransport((router) => registerMethods(router, methods, invoker))
  const client = createClient(Health, transport)
  /** Watches until `leave`; `statuses` grows with what comes. */
  const watch = (service: string) => {
    const leaving = new AbortController()
    const statuses: ServingStatus[] = []
    const ended = (async () => {
      for await (const { status } of client.watch({ service }, { signal: leaving.signal })) statuses.push(status)
    })().catch(() => undefined)
    return { statuses, ended, leave: () => leaving.abort() }
  }
  return { store, idleTimers, stop, counts, client, watch }
}

test('all watchers share one probe of the store every two seconds, and without watchers there is none', async () => {
  const { counts, idleTimers, stop, watch } = await startHealth()
  await pass(60_000)
  expect(counts.probes).toBe(0)
  const watches = Array.from({ length: 100 }, () => watch('a.Service'))
  await pass(1)
  for (const { statuses } of watches) expect(statuses).toEqual([SERVING])
  await pass(20_000)
  const late = watch('')
  await pass(1)
  expect(late.statuses).toEqual([SERVING])
  expect(counts.probes).toBe(11)
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1)
  watches.push(late)
  for (const { leave } of watches) leave()
  await Promise.all(watches.map(({ ended }) => ended))
  await pass(60_000)
  expect(counts.probes).toBe(11)
  expect(vi.getTimerCount()).toBe(idleTimers)
})

test('watchers that come and go one after the other get a fresh status, from one poll at a time', async () => {
  const { counts, store, watch } = await startHealth()
  for (let i = 0; i < 20; i++) {
    const { statuses, ended, leave } = watch('')
    await pass(1)
    expect(statuses).toEqual([SERVING])
    leave()
    await ended
  }
  expect(counts.probes).toBe(20)
  await store.close()
  const { statuses } = watch('')
  await pass(10_000)
  expect(statuses).toEqual([NOT_SERVING])
  expect(counts.probes).toBe(26)
})

test('an unchanged status is repeated every thirty seconds, so that no proxy cuts the stream as idle', async () => {
  const { watch } = await startHealth()
  const known = watch('')
  const unknown = watch('another.Service')
  await pass(1)
  await pass(91_000)
  expect(known.statuses).toEqual([SERVING, SERVING, SERVING, SERVING])
  expect(unknown.statuses).toEqual([SERVICE_UNKNOWN, SERVICE_UNKNOWN, SERVICE_UNKNOWN, SERVICE_UNKNOWN])
})

test('a watch that begins while the server stops is told so at once and ends a second later', async () => {
  const { counts, idleTimers, stop, watch } = await startHealth()
  const before = watch('a.Service')
  await pass(1)
  stop.abort()
  await before.ended
  expect(before.statuses).toEqual([SERVING, NOT_SERVING])
  const after = watch('a.Service')
  let ended = false
  void after.ended.then(() => {
    ended = true
  })
  await pass(900)
  expect(after.statuses).toEqual([NOT_SERVING])
  expect(ended).toBe(false)
  await pass(200)
  expect(ended).toBe(true)
  expect(after.statuses).toEqual([NOT_SERVING])
  expect(counts.probes).toBe(1)
  expect(vi.getTimerCount()).toBe(idleTimers)
})

test('of many watchers that are told of a stop, not all are told in one turn of the event loop', async () => {
  const { stop, watch } = await startHealth()
  const watches = Array.from({ length: 500 }, () => watch(''))
  await pass(100)
  await vi.waitFor(() => expect(watches.every(({ statuses }) => statuses.length === 1)).toBe(true), 20_000)
  const told = (): number => watches.filter(({ statuses }) => statuses.length > 1).length
  stop.abort()
  const steps: number[] = []
  while (steps.at(-1) !== 500) {
    steps.push(told())
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(steps.some((count) => count > 0 && count < 500)).toBe(true)
  await Promise.all(watches.map(({ ended }) => ended))
})
