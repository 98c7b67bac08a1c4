import { describe, expect, test } from 'vitest'
import { hashToken, newToken } from '../../../src/base/token.ts'
import { storedOrders } from '../../../src/core/order/records.ts'
import { openStore } from '../../../src/store/open.ts'
import { stores } from '../../support/stores.ts'
import { places } from './places.ts'
import {
  desktop,
  from,
  type Going,
  makeInstance,
  ownOrigin,
  passTime,
  phone,
  reasonOf,
  Signer,
  suiteStore,
  untilApproved,
  untilWaiting,
} from './support.ts'

const claimKey = 'k'.repeat(22)

describe.each(stores)('handing orders over on $name', async ({ open }) => {
  const store = await suiteStore(open)

  test('continues an order in another browser, which approves it', async () => {
    const [here, there] = [makeInstance(store), makeInstance(store)]
    const order = await untilWaiting(here)
    const now = Date.now()
    const { ticket, handoverUrl, expiresAt } = await here.orders.handOver(order, phone)
    expect(ticket).toMatch(/^csh_[\w-]{43}/)
    expect(ticket.slice(47)).toBe(order.orderId)
    expect(handoverUrl).toBe(`${ownOrigin}/cross-device/continue/${ticket}`)
    expect(expiresAt).toBeGreaterThanOrEqual(now + 60_000)
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + 60_000)
    const redeemed = await there.orders.redeem({ ticket }, phone)
    expect(redeemed).toEqual({
      orderId: order.orderId,
      status: 'waiting_user',
      challengeToken: expect.stringMatching(/^csp_[\w-]{43}$/),
    })
    const { challengeToken } = redeemed
    expect((await here.orders.readChallenge({ ...order, challengeToken }, phone)).message).toBe(order.message)
    expect((await there.orders.approve({ ...order, challengeToken }, phone)).status).toBe('approved')
  })

  test('works before the challenge is read, too', async () => {
    const { orders } = makeInstance(store)
    const started = await orders.start({ kind: 'login' }, desktop)
    const { challengeToken } = await orders.claim(started, phone)
    const { ticket } = await orders.handOver({ ...started, challengeToken }, phone)
    expect((await orders.redeem({ ticket }, phone)).status).toBe('claimed')
  })

  test('is refused in every status but claimed and waiting_user', async () => {
    const instance = makeInstance(store)
    const { orders } = instance
    const approved = await untilApproved(instance)
    expect(await reasonOf(orders.handOver(approved, phone))).toBe('ORDER_ALREADY_APPROVED')
    await orders.finalize(approved, desktop)
    expect(await reasonOf(orders.handOver(approved, phone))).toBe('ORDER_FINALIZED')
    const rejected = await untilWaiting(instance)
    const { ticket } = await orders.handOver(rejected, phone)
    await orders.reject(rejected, phone)
    expect(await reasonOf(orders.handOver(rejected, phone))).toBe('ORDER_REJECTED')
    expect(await reasonOf(orders.redeem({ ticket }, phone))).toBe('ORDER_REJECTED')
  })

  describe('a ticket', () => {
    test('is good for 60 seconds', async () => {
      const instance = makeInstance(store)
      const tickets = []
      for (let n = 0; n < 2; n++)
        tickets.push((await instance.orders.handOver(await untilWaiting(instance), phone)).ticket)
      passTime(59_000)
      expect(await reasonOf(instance.orders.redeem({ ticket: String(tickets[0]) }, phone))).toBeUndefined()
      passTime(1000)
      expect(await reasonOf(instance.orders.redeem({ ticket: String(tickets[1]) }, phone))).toBe('HANDOVER_INVALID')
    })

    test('is good for one use, and for 60 seconds for the same browser’s retries', async () => {
      const [here, there] = [makeInstance(store), makeInstance(store)]
      const { ticket } = await here.orders.handOver(await untilWaiting(here), phone)
      const first = await here.orders.redeem({ ticket, claimKey }, phone)
      expect(await there.orders.redeem({ ticket, claimKey }, phone)).toEqual(first)
      const rotated = makeInstance(store, { secrets: ['second secret', 'first secret'] })
      expect(await rotated.orders.redeem({ ticket, claimKey }, phone)).toEqual(first)
      expect(await reasonOf(there.orders.redeem({ ticket }, phone))).toBe('HANDOVER_INVALID')
      const other = { ticket, claimKey: 'l'.repeat(22) }
      expect(await reasonOf(there.orders.redeem(other, phone))).toBe('HANDOVER_INVALID')
      passTime(59_000)
      expect(await there.orders.redeem({ ticket, claimKey }, phone)).toEqual(first)
      passTime(1000)
      expect(await reasonOf(there.orders.redeem({ ticket, claimKey }, phone))).toBe('HANDOVER_INVALID')
    })

    test('voids the one before it', async () => {
      const instance = makeInstance(store)
      const order = await untilWaiting(instance)
      const first = await instance.orders.handOver(order, phone)
      const second = await instance.orders.handOver(order, phone)
      expect(await reasonOf(instance.orders.redeem(first, phone))).toBe('HANDOVER_INVALID')
      expect(await reasonOf(instance.orders.redeem(second, phone))).toBeUndefined()
    })

    test('a ticket that is unknown, or of another order, is invalid, and tells nothing of any order', async () => {
      const instance = makeInstance(store)
      const order = await untilWaiting(instance)
      const { ticket } = await instance.orders.handOver(order, phone)
      const other = await untilWaiting(instance)
      const secret = ticket.slice(0, 47)
      const wrong = [
        '',
        'csh_',
        secret,
        secret + other.orderId,
        newToken('hand-over') + order.orderId,
        `${newToken('hand-over')}none`,
        `${newToken('hand-over')}${'x'.repeat(65)}`,
        `${ticket}x`,
        ` ${ticket}`,
        `${ticket}\n`,
        order.challengeToken,
        order.challengeToken + order.orderId,
        order.claimToken,
      ]
      for (const each of wrong) {
        expect(await reasonOf(instance.orders.redeem({ ticket: each }, phone))).toBe('HANDOVER_INVALID')
      }
      passTime(120_000 + 600_000)
      expect(await reasonOf(instance.orders.redeem({ ticket }, phone))).toBe('HANDOVER_INVALID')
    })

    test('of another service that shares the store, is invalid', async () => {
      const instance = makeInstance(store)
      const { ticket } = await instance.orders.handOver(await untilWaiting(instance), phone)
      const bank = makeInstance(store, { settings: { appName: 'Bank' } })
      expect(await reasonOf(bank.orders.redeem({ ticket }, phone))).toBe('HANDOVER_INVALID')
    })

    test('is redeemed from the order’s origin or the service’s own', async () => {
      const instance = makeInstance(store)
      const { ticket } = await instance.orders.handOver(await untilWaiting(instance), phone)
      expect(await reasonOf(instance.orders.redeem({ ticket }, from('https://evil.example')))).toBe('ORIGIN_MISMATCH')
      expect(await reasonOf(instance.orders.redeem({ ticket }, desktop))).toBeUndefined()
    })
  })

  describe('the browser that handed the order over', () => {
    /** An order that was handed over, with both tokens. */
    async function handedOver(instance = makeInstance(store)): Promise<Going & { readonly newToken: string }> {
      const order = await untilWaiting(instance)
      const { ticket } = await instance.orders.handOver(order, phone)
      return { ...order, newToken: (await instance.orders.redeem({ ticket }, phone)).challengeToken }
    }

    test('can only reject', async () => {
      const { orders } = makeInstance(store)
      const order = await handedOver()
      const calls = [
        () => orders.readChallenge(order, phone),
        () => orders.approve(order, phone),
        () => orders.handOver(order, phone),
      ]
      for (const call of calls) expect(await reasonOf(call())).toBe('ORDER_TOKEN_INVALID')
      expect((await orders.reject(order, phone)).status).toBe('rejected')
      const taken = { ...order, challengeToken: order.newToken }
      expect(await reasonOf(orders.approve(taken, phone))).toBe('ORDER_REJECTED')
    })

    test('can take back what the other one approved', async () => {
      const { orders } = makeInstance(store)
      for (const finalizes of [false, true]) {
        const order = await handedOver()
        await orders.approve({ ...order, challengeToken: order.newToken }, phone)
        if (finalizes) await orders.finalize(order, desktop)
        const answer = await orders.reject(order, phone)
        if (finalizes) expect(answer).toMatchObject({ status: 'finalized', sessionEnded: true })
        else expect(answer.status).toBe('rejected')
        expect(await reasonOf(orders.finalize(order, desktop))).toBe('ORDER_REJECTED')
      }
    })

    test('gets its own token again when it retries its claim', async () => {
      const { orders } = makeInstance(store)
      const started = await orders.start({ kind: 'login' }, desktop)
      const claim = { ...started, claimKey }
      const { challengeToken } = await orders.claim(claim, phone)
      let current = challengeToken
      for (let n = 0; n < 12; n++) {
        const { ticket } = await orders.handOver({ ...started, challengeToken: current }, phone)
        current = (await orders.redeem({ ticket, claimKey }, phone)).challengeToken
        expect(await orders.claim(claim, phone)).toEqual({
          orderId: started.orderId,
          status: 'claimed',
          challengeToken,
        })
      }
      const { message } = await orders.readChallenge({ ...started, challengeToken: current }, phone)
      const proof = new Signer().prove(message)
      const old = { ...started, challengeToken, proof }
      expect(await reasonOf(orders.approve(old, phone))).toBe('ORDER_TOKEN_INVALID')
      expect((await orders.reject(old, phone)).status).toBe('rejected')
    })
  })

  test('many times leaves the order of a bounded size', async () => {
    const instance = makeInstance(store)
    const order = await untilWaiting(instance)
    const sizes = []
    let current = order.challengeToken
    for (let n = 0; n < 20; n++) {
      const { ticket } = await instance.orders.handOver({ ...order, challengeToken: current }, phone)
      current = (await instance.orders.redeem({ ticket }, phone)).challengeToken
      sizes.push(JSON.stringify((await storedOrders(store).load(order.orderId))?.order).length)
    }
    expect(new Set(sizes.slice(11)).size).toBe(1)
    expect(sizes[19]).toBeLessThan(2048)
    expect((await instance.orders.approve({ ...order, challengeToken: current }, phone)).status).toBe('approved')
  })
})

describe.each(places)('tickets in $name', ({ open, dump }) => {
  test('are stored hashed, and the tokens that they bring, too', async () => {
    const store = await openStore(await open())
    const instance = makeInstance(store)
    const order = await untilWaiting(instance)
    const { ticket } = await instance.orders.handOver(order, phone)
    const { challengeToken } = await instance.orders.redeem({ ticket, claimKey }, phone)
    const dumped = await dump()
    expect(dumped).toContain(hashToken(ticket))
    for (const secret of [
      ticket,
      ticket.slice(4, 47),
      challengeToken.slice(4),
      order.challengeToken.slice(4),
      claimKey,
    ]) {
      expect(dumped).not.toContain(secret)
    }
    await store.close()
  })
})
