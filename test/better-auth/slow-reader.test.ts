import { Session } from 'node:inspector/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { OrderRecord } from '../../src/core/order/order.ts'
import { storedOrders } from '../../src/core/order/records.ts'
import { memoryStore } from '../support/memory-store.ts'
import { call, ownOrigin } from './calls.ts'
import { makeAuth } from './support.ts'

const eventCount = 500
/** Makes each event about 30 KB, and all of them 15 MB. An order of real life has five, and no caller such a path. */
const returnTo = `/${'x'.repeat(30_000)}`
const mebibyte = 1024 * 1024

test('a watcher that does not read costs no memory, and misses nothing when it reads on', async () => {
  const store = await memoryStore()
  const auth = await makeAuth({ orders: { store } })
  const { json } = await call(auth, '/cross-device/start', { kind: 'sign' })
  const records = storedOrders(store)
  const { order, version } = (await records.load(json.orderId)) as { order: OrderRecord; version: number }
  const history = Array.from({ length: eventCount }, (_, index) => ({
    sequence: index + 1,
    status: index + 1 === eventCount ? ('finalized' as const) : ('approved' as const),
    at: Date.now(),
  }))
  expect(await records.compareAndSet({ ...order, returnTo, status: 'finalized', history }, version)).toBe(true)

  const inspector = new Session()
  inspector.connect()
  onTestFinished(() => inspector.disconnect())
  const heldBytes = async (): Promise<number> => {
    await inspector.post('HeapProfiler.collectGarbage')
    return process.memoryUsage().arrayBuffers
  }
  const before = await heldBytes()
  const response = await auth.handler(
    new Request(`${ownOrigin}/api/auth/cross-device/events?orderId=${json.orderId}`, {
      headers: { origin: ownOrigin, authorization: `Bearer ${json.desktopToken}`, 'last-event-id': '0' },
    }),
  )
  expect(response.status).toBe(200)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const chunks: Uint8Array[] = [(await reader.read()).value ?? new Uint8Array()]
  await pause(1000)
  expect((await heldBytes()) - before).toBeLessThan(8 * mebibyte)
  for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value)
  const ids = [
    ...Buffer.concat(chunks)
      .toString()
      .matchAll(/^id: (\d+)$/gm),
  ].map(([, id]) => Number(id))
  expect(ids).toEqual(history.map(({ sequence }) => sequence))
})
