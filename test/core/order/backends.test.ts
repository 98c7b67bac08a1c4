import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../../src/store/open.ts'
import { appOrigin, desktop, from, makeInstance, reasonOf, untilApproved } from './support.ts'

/** What a backend sends: no Origin header, so the origin is read from where the request was sent to. */
const backend = from('http://countersign.internal:8080', { originSource: 'Host header' })

async function makeApproved() {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  const instance = makeInstance(store)
  return { ...instance, order: await untilApproved(instance) }
}

test('a backend finalizes and cancels with the desktop’s token under any name of the service', async () => {
  const { orders, order } = await makeApproved()
  expect((await orders.finalize(order, backend)).status).toBe('finalized')
  const started = await orders.start({ kind: 'sign' }, desktop)
  expect((await orders.cancel(started, backend)).status).toBe('cancelled')
})

test('a backend without the desktop’s token does nothing', async () => {
  const { orders, order } = await makeApproved()
  const { orderId, challengeToken, claimToken } = order
  for (const desktopToken of [challengeToken, claimToken, '', 'x']) {
    expect(await reasonOf(orders.finalize({ orderId, desktopToken }, backend))).toBe('ORDER_TOKEN_INVALID')
    expect(await reasonOf(orders.cancel({ orderId, desktopToken }, backend))).toBe('ORDER_TOKEN_INVALID')
  }
  expect((await orders.finalize(order, desktop)).status).toBe('finalized')
})

test('a browser that has the desktop’s token is still held to the order’s origin', async () => {
  const { orders, order } = await makeApproved()
  const otherPage = from('http://countersign.internal:8080')
  expect(await reasonOf(orders.finalize(order, otherPage))).toBe('ORIGIN_MISMATCH')
  expect(await reasonOf(orders.cancel(order, otherPage))).toBe('ORIGIN_MISMATCH')
  expect((await orders.finalize(order, from(appOrigin))).status).toBe('finalized')
})

test('a phone without an Origin header is held to the order’s origin', async () => {
  const { orders, order } = await makeApproved()
  expect(await reasonOf(orders.readChallenge(order, backend))).toBe('ORIGIN_MISMATCH')
  expect(await reasonOf(orders.reject(order, backend))).toBe('ORIGIN_MISMATCH')
})
