import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../support/memory-store.ts'
import { appOrigin, desktop, from, makeInstance, phone, reasonOf, untilApproved } from './support.ts'

/** What a backend sends: no Origin header, so the origin is read from where the request was sent to. */
const backend = from('http://countersign.internal:8080', { originSource: 'Host header' })

async function makeApproved() {
  const store = await memoryStore()
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

describe('a start key', () => {
  const key = 'k'.repeat(32)
  const base64 = `${'a'.repeat(43)}=`
  const early = `short=${'b'.repeat(31)}`
  const withSigns = `a.b_c-D=${key}`
  const plain = 'p'.repeat(32)
  const tooLong = `${'n'.repeat(33)}=${'c'.repeat(40)}`

  async function startedWith(entries: readonly string[], shown: string) {
    const store = await memoryStore()
    const { orders } = makeInstance(store, { settings: { orderStartKeys: entries } })
    const call = from(undefined, { headers: new Headers({ authorization: `Bearer ${shown}` }) })
    const { orderId, claimToken } = await orders.start({ kind: 'login', requester: { origin: appOrigin } }, call)
    const { challengeToken } = await orders.claim({ orderId, claimToken }, phone)
    return (await orders.readChallenge({ orderId, challengeToken }, phone)).requester.startedBy
  }

  test('has a name before the first equals sign, which the approver sees', async () => {
    expect(await startedWith([withSigns], key)).toBe('a.b_c-D')
    expect(await startedWith([`bot==${key}`], `=${key}`)).toBe('bot')
  })

  test.each([base64, early, tooLong, plain])('%s is a key as a whole, without a name', async (entry) => {
    expect(await startedWith([withSigns, entry], entry)).toBe(undefined)
    const rest = entry.slice(entry.indexOf('=') + 1)
    if (rest !== entry) expect(await reasonOf(startedWith([entry], rest))).toBe('START_KEY_REQUIRED')
  })

  test('is not its entry, nor its name', async () => {
    for (const shown of [withSigns, 'a.b_c-D', `a.b_c-D${key}`, '']) {
      expect(await reasonOf(startedWith([withSigns], shown))).toBe('START_KEY_REQUIRED')
    }
  })

  test('has its name in a preview too', async () => {
    const store = await memoryStore()
    const { orders } = makeInstance(store, { settings: { orderStartKeys: [withSigns] } })
    const call = from(undefined, { headers: new Headers({ authorization: `Bearer ${key}` }) })
    const order = await orders.start({ kind: 'login', requester: { origin: appOrigin } }, call)
    expect(await orders.preview(order, phone)).toMatchObject({ startedWithKey: true, startedBy: 'a.b_c-D' })
  })
})
