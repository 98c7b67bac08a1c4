import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OrderRecord, orderVersion } from '../../src/order/order.ts'
import { storedOrders } from '../../src/order/records.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { hashToken } from '../../src/token.ts'
import { stores } from '../support/stores.ts'
import { desktop, issuedBy, makeInstance, phone, reasonOf, Signer, untilWaiting } from './support.ts'

const claimToken = 'csc_older'
const desktopToken = 'csd_older'

/** Orders that the release before return codes stored, and releases before that. */
const records = {
  '0.2': (orderId: string, now: number): object => ({
    v: 1,
    orderId,
    kind: 'login',
    status: 'created',
    history: [{ sequence: 1, status: 'created', at: now }],
    origin: 'https://app.example',
    appName: 'Example',
    requester: { ip: '192.0.2.1', userAgent: 'Test/1.0' },
    returnTo: '/welcome',
    displayTitle: 'Two  spaces',
    challengeId: 'challenge',
    nonce: 'nonce',
    issuedAt: now,
    expiresAt: now + 120_000,
    message: `Example requests approval\nOrder ID: ${orderId}\nTitle: Two  spaces\nCode: 42`,
    confirmationCode: '42',
    codeRequired: false,
    wrongCodes: 0,
    claimTokenHash: hashToken(claimToken),
    desktopTokenHash: hashToken(desktopToken),
  }),
}

describe.each(stores)('orders that older releases stored on $name', ({ open }) => {
  let store: Store

  beforeAll(async () => {
    store = await openStore(String((await open()).store))
  })
  afterAll(() => store.close())

  let count = 0

  async function older(fields: Partial<OrderRecord> = {}): Promise<string> {
    const orderId = `older-${count++}`
    const record = { ...records['0.2'](orderId, Date.now()), ...fields }
    await store.create(`order:{${orderId}}`, JSON.stringify(record), { ttlMs: 600_000 })
    return orderId
  }

  test.each([{}, { v: undefined }])('go on to their end, whatever the settings have become: %j', async (fields) => {
    for (const confirmationCode of ['compare', 'return'] as const) {
      const { orders, host } = makeInstance(store, { settings: { confirmationCode } })
      const orderId = await older(fields as Partial<OrderRecord>)
      const { challengeToken } = await orders.claim({ orderId, claimToken }, phone)
      const { ticket } = await orders.handOver({ orderId, challengeToken }, phone)
      const order = { orderId, challengeToken: (await orders.redeem({ ticket }, phone)).challengeToken }
      const challenge = await orders.readChallenge(order, phone)
      expect(challenge).toMatchObject({
        confirmationCode: '42',
        displayTitle: 'Two  spaces',
        canRememberComputer: false,
      })
      expect(challenge.requester).toMatchObject({ startedWithKey: false })
      expect(challenge.requester).not.toHaveProperty('sameNetwork')
      const proof = new Signer().prove(challenge.message)
      expect(await orders.approve({ ...order, proof }, phone)).toMatchObject({ orderId, status: 'approved' })
      const { token } = issuedBy(await orders.finalize({ orderId, desktopToken }, desktop))
      expect(await orders.reject(order, phone)).toMatchObject({ status: 'finalized', sessionEnded: true })
      expect(await host.introspect(token)).toBeUndefined()
    }
  })

  test('and finalized are found again, and cannot be taken back: nobody knows their session', async () => {
    const instance = makeInstance(store)
    const order = await untilWaiting(instance)
    await instance.orders.approve(order, phone)
    const first = issuedBy(await instance.orders.finalize(order, desktop))
    const key = `order:{${order.orderId}}`
    const stored = await store.get(key)
    const { login, ...record } = JSON.parse(String(stored?.value))
    const { sessionId, ...olderLogin } = login
    expect(sessionId).toBe(first.session.id)
    const text = JSON.stringify({ ...record, login: olderLogin })
    await store.compareAndSet(key, Number(stored?.version), text, { ttlMs: 600_000 })
    expect(await reasonOf(instance.orders.reject(order, phone))).toBe('ORDER_FINALIZED')
    expect(issuedBy(await instance.orders.finalize(order, desktop)).token).toBe(first.token)
  })

  test('are what an order without return codes still is: of version 1, with no field that an older release lacks', async () => {
    const { orders } = makeInstance(store)
    const { orderId } = await orders.start({ kind: 'login', displayTitle: 'Title' }, desktop)
    const order = (await storedOrders(store).load(orderId))?.order as OrderRecord
    expect(order.v).toBeLessThan(orderVersion)
    expect(Object.keys(order).sort()).toEqual(Object.keys(records['0.2'](orderId, 0)).sort())
  })
})
