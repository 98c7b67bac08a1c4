import { describe, expect, test } from 'vitest'
import { storedOrders } from '../../../src/core/order/records.ts'
import { stores } from '../../support/stores.ts'
import {
  Computer,
  desktop,
  from,
  issuedBy,
  makeInstance,
  passTime,
  phone,
  reasonOf,
  Signer,
  suiteStore,
  untilApproved,
  untilCode,
} from './support.ts'

describe.each(stores)('taking back on $name', async ({ open }) => {
  const store = await suiteStore(open)

  /** A login order with its session. */
  async function finalized(signer = new Signer()) {
    const instance = makeInstance(store)
    const order = await untilApproved(instance, { kind: 'login' }, signer)
    return { instance, order, issued: issuedBy(await instance.orders.finalize(order, desktop)) }
  }

  test('an approved order is rejected by the phone, and the desktop gets nothing', async () => {
    const instance = makeInstance(store)
    for (const kind of ['login', 'sign'] as const) {
      const order = await untilApproved(instance, { kind })
      const events = instance.orders.watch({ ...order, afterSequence: 4 }, desktop, new AbortController().signal)
      await events.next()
      expect(await instance.orders.reject(order, phone)).toEqual({ orderId: order.orderId, status: 'rejected' })
      expect((await events.next()).value).toMatchObject({ status: 'rejected', sequence: 5 })
      expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('ORDER_REJECTED')
      expect(await instance.orders.reject(order, phone)).toEqual({ orderId: order.orderId, status: 'rejected' })
      expect(await reasonOf(instance.orders.readChallenge(order, phone))).toBe('ORDER_REJECTED')
    }
  })

  test('a finalized login order stays finalized, and its session ends, on every instance', async () => {
    const { instance, order, issued } = await finalized()
    const elsewhere = makeInstance(store)
    const answer = { orderId: order.orderId, status: 'finalized', sessionEnded: true }
    expect(await elsewhere.orders.reject(order, phone)).toEqual(answer)
    expect(await instance.host.introspect(issued.token)).toBeUndefined()
    expect(await instance.host.listSessions(issued.session.userId)).toEqual([])
    expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('ORDER_REJECTED')
    expect(await instance.orders.reject(order, phone)).toEqual(answer)
    expect((await storedOrders(store).load(order.orderId))?.order.takenBack).toEqual({ sessionEnded: true })
    expect(await reasonOf(instance.orders.readChallenge(order, phone))).toBe('ORDER_FINALIZED')
  })

  test('is possible as long as the order is remembered', async () => {
    const [early, late] = [await finalized(), await finalized()]
    passTime(599_000)
    expect(await early.instance.orders.reject(early.order, phone)).toMatchObject({ sessionEnded: true })
    passTime(1000)
    expect(await reasonOf(late.instance.orders.reject(late.order, phone))).toBe('ORDER_NOT_FOUND')
    expect(await late.instance.host.introspect(late.issued.token)).toEqual(late.issued.session)
  })

  test('is not for the desktop, nor for who has another token, nor for a foreign page', async () => {
    const { instance, order, issued } = await finalized()
    const stranger = (await finalized()).order
    for (const challengeToken of [order.desktopToken, order.claimToken, stranger.challengeToken, issued.token, '']) {
      expect(await reasonOf(instance.orders.reject({ ...order, challengeToken }, phone))).toBe('ORDER_TOKEN_INVALID')
    }
    expect(await reasonOf(instance.orders.reject(order, from('https://evil.example')))).toBe('ORIGIN_MISMATCH')
    expect(await instance.host.introspect(issued.token)).toEqual(issued.session)
  })

  test('is not possible for a sign order: its artifact is out', async () => {
    const instance = makeInstance(store)
    const order = await untilApproved(instance, { kind: 'sign' })
    const artifact = await instance.orders.finalize(order, desktop)
    expect(await reasonOf(instance.orders.reject(order, phone))).toBe('ORDER_FINALIZED')
    expect(await instance.orders.finalize(order, desktop)).toEqual(artifact)
  })

  test('forgets the computer that the order made known, or that was known before', async () => {
    const instance = makeInstance(store, { settings: { confirmationCode: 'return' } })
    const computer = new Computer()
    const signer = new Signer()
    const input = { kind: 'login', computerKey: computer.computerKey } as const
    const signIn = async () => {
      const order = await untilCode(instance, input, signer, { rememberComputer: true })
      await instance.orders.finalize({ ...order, computerProof: computer.prove(order) }, desktop)
      return order
    }
    await instance.orders.reject(await signIn(), phone)
    await signIn()
    const known = await untilApproved(instance, input, signer)
    expect(known).not.toHaveProperty('returnCode')
    await instance.orders.finalize({ ...known, computerProof: computer.prove(known) }, desktop)
    await instance.orders.reject(known, phone)
    expect(await untilApproved(instance, input, signer)).toHaveProperty('returnCode')
  })
})
