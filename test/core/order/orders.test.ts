import { describe, expect, test, vi } from 'vitest'
import { newToken } from '../../../src/base/token.ts'
import { newestTransition } from '../../../src/core/order/order.ts'
import { storedOrders } from '../../../src/core/order/records.ts'
import { CountersignError } from '../../../src/shared/errors.ts'
import { stores } from '../../support/stores.ts'
import {
  appOrigin,
  desktop,
  from,
  issuedBy,
  makeInstance,
  outcomeOf,
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

describe.each(stores)('orders on $name', async ({ open }) => {
  const store = await suiteStore(open)

  describe('tokens', () => {
    /** Every call but start, each with its own kind of token replaced by `token`. */
    const calls = (instance: ReturnType<typeof makeInstance>, orderId: string, token: string) => {
      const { orders } = instance
      // A caller that is not a browser sends no Origin header.
      const backend = from('https://internal.example', { originSource: 'Host header' })
      const proof = new Signer().prove('anything')
      const own = new AbortController()
      return {
        preview: () => orders.preview({ orderId, claimToken: token }, phone),
        claim: () => orders.claim({ orderId, claimToken: token }, phone),
        'claim with a key': () => orders.claim({ orderId, claimToken: token, claimKey }, phone),
        challenge: () => orders.readChallenge({ orderId, challengeToken: token }, phone),
        approve: () => orders.approve({ orderId, challengeToken: token, proof }, phone),
        reject: () => orders.reject({ orderId, challengeToken: token }, phone),
        cancel: () => orders.cancel({ orderId, desktopToken: token }, desktop),
        'cancel by a backend': () => orders.cancel({ orderId, desktopToken: token }, backend),
        finalize: () => orders.finalize({ orderId, desktopToken: token }, desktop),
        'finalize by a backend': () => orders.finalize({ orderId, desktopToken: token }, backend),
        watch: async () => await orders.watch({ orderId, desktopToken: token }, desktop, own.signal).next(),
        'watch by a backend': async () =>
          await orders.watch({ orderId, desktopToken: token }, backend, own.signal).next(),
      }
    }
    /** The token that a call takes. */
    const holderFor = (call: string) =>
      /^(preview|claim)/.test(call)
        ? 'claimToken'
        : /^(cancel|finalize|watch)/.test(call)
          ? 'desktopToken'
          : 'challengeToken'

    test('each good for its own calls only, with one answer for all that can be wrong and every state of the order', async () => {
      const instance = makeInstance(store)
      const { orders } = instance
      const stranger = await untilWaiting(instance)
      const created = { ...(await orders.start({ kind: 'login' }, desktop)), challengeToken: newToken('challenge') }
      const rejected = await untilWaiting(instance)
      await orders.reject(rejected, phone)
      const finalized = await untilApproved(instance)
      const { token: sessionToken } = issuedBy(await orders.finalize(finalized, desktop))
      const answers = new Set<string>()
      for (const order of [created, await untilWaiting(instance), await untilApproved(instance), rejected, finalized]) {
        const tokens = {
          claimToken: order.claimToken,
          challengeToken: order.challengeToken,
          desktopToken: order.desktopToken,
          sessionToken,
          strangerClaim: stranger.claimToken,
          strangerChallenge: stranger.challengeToken,
          strangerDesktop: stranger.desktopToken,
          random: newToken('desktop'),
          empty: '',
          truncated: order.desktopToken.slice(0, -1),
        }
        for (const [holder, token] of Object.entries(tokens)) {
          for (const [name, call] of Object.entries(calls(instance, order.orderId, token))) {
            if (holder === holderFor(name) && (order !== created || holder !== 'challengeToken')) continue
            const { reason, message } = await outcomeOf(call())
            expect({ name, holder, reason }).toEqual({ name, holder, reason: 'ORDER_TOKEN_INVALID' })
            answers.add(String(message))
          }
        }
      }
      expect(answers.size).toBe(1)
    })

    test('of no order there is', async () => {
      const instance = makeInstance(store)
      for (const call of Object.values(calls(instance, 'unknown', newToken('claim')))) {
        expect(await reasonOf(call())).toBe('ORDER_NOT_FOUND')
      }
    })

    test('of an order that is forgotten, though the store still has it', async () => {
      const instance = makeInstance(store)
      const order = await untilWaiting(instance)
      const kept = await storedOrders(store).load(order.orderId)
      expect(kept).toBeDefined()
      const late = makeInstance(store, { records: { ...storedOrders(store), load: async () => kept } })
      passTime(120_000 + 600_000)
      for (const token of [order.desktopToken, order.challengeToken, order.claimToken, 'wrong']) {
        for (const call of Object.values(calls(late, order.orderId, token))) {
          expect(await reasonOf(call())).toBe('ORDER_NOT_FOUND')
        }
      }
    })

    test('of an order that has just expired: who has none does not learn that', async () => {
      const instance = makeInstance(store)
      const order = await untilWaiting(instance)
      passTime(120_001)
      for (const call of Object.values(calls(instance, order.orderId, 'wrong'))) {
        expect(await reasonOf(call())).toBe('ORDER_TOKEN_INVALID')
      }
      expect((await storedOrders(store).load(order.orderId))?.order.status).toBe('waiting_user')
    })

    test('before the origin: who has none does not learn whose the order is', async () => {
      const { orders } = makeInstance(store)
      const { orderId } = await orders.start({ kind: 'login' }, desktop)
      const call = orders.claim({ orderId, claimToken: 'wrong' }, from('https://evil.example'))
      expect(await reasonOf(call)).toBe('ORDER_TOKEN_INVALID')
    })
  })

  test('calls come from the order’s origin or the service’s own', async () => {
    const instance = makeInstance(store)
    const { orders } = instance
    const order = await untilWaiting(instance)
    const { signal } = new AbortController()
    for (const elsewhere of [from('https://evil.example'), from(undefined)]) {
      const refusals = [
        () => orders.preview(order, elsewhere),
        () => orders.claim(order, elsewhere),
        () => orders.readChallenge(order, elsewhere),
        () => orders.approve(order, elsewhere),
        () => orders.reject(order, elsewhere),
        () => orders.cancel(order, elsewhere),
        () => orders.finalize(order, elsewhere),
        () => orders.watch(order, elsewhere, signal).next(),
      ]
      for (const call of refusals) expect(await reasonOf(call())).toBe('ORIGIN_MISMATCH')
    }
    expect(await reasonOf(orders.readChallenge(order, from(appOrigin)))).toBeUndefined()
    expect(await reasonOf(orders.approve(order, from(ownOrigin)))).toBeUndefined()
    expect(await reasonOf(orders.finalize(order, from(ownOrigin)))).toBeUndefined()
  })

  test('a preview says who asks as often as it is asked, without a claim, an address or the desktop’s texts', async () => {
    const { orders } = makeInstance(store)
    const order = await orders.start({ kind: 'login', displayTitle: 'Sign in' }, desktop)
    const { kind, expiresAt, confirmationCode } = order
    const seen = {
      kind,
      origin: appOrigin,
      userAgent: desktop.userAgent,
      expiresAt,
      sameNetwork: true,
      startedWithKey: false,
    }
    for (let times = 0; times < 2; times++) {
      expect(await orders.preview(order, phone)).toEqual({ ...seen, confirmationCode })
    }
    await orders.claim(order, phone)
    expect(await reasonOf(orders.preview(order, phone))).toBe('ORDER_ALREADY_CLAIMED')
  })

  test('a payload is signed in its canonical form, and shown in the order in which it was written', async () => {
    const instance = makeInstance(store)
    const shown = async (payload: string) => {
      const order = await untilWaiting(instance, { kind: 'sign', payload })
      return await instance.orders.readChallenge(order, phone)
    }
    const written = await shown('{ "payee": "B", "amount": 1.0 }')
    expect(written).toMatchObject({ payload: '{"amount":1,"payee":"B"}', payloadAsWritten: '{"payee":"B","amount":1}' })
    expect(await shown('{"amount": 1, "payee": "B"}')).not.toHaveProperty('payloadAsWritten')
  })

  test('with return codes, a preview has no digits', async () => {
    const { orders } = makeInstance(store, { settings: { confirmationCode: 'return' } })
    expect(await orders.preview(await orders.start({ kind: 'login' }, desktop), phone)).not.toHaveProperty(
      'confirmationCode',
    )
  })

  test('an expiry is stored before it is answered, also for an instance whose clock is behind', async () => {
    const instance = makeInstance(store)
    const order = await untilWaiting(instance)
    const now = Date.now()
    passTime(120_001)
    expect(await reasonOf(instance.orders.readChallenge(order, phone))).toBe('ORDER_EXPIRED')
    vi.setSystemTime(now)
    expect(await reasonOf(instance.orders.approve(order, phone))).toBe('ORDER_EXPIRED')
    const stored = await storedOrders(store).load(order.orderId)
    expect(stored && newestTransition(stored.order)).toMatchObject({ status: 'expired', at: order.expiresAt })
  })

  test('a store that never lets a change through is an outage, not a hang', async () => {
    let attempts = 0
    const records = {
      ...storedOrders(store),
      compareAndSet: async () => {
        attempts++
        return false
      },
    }
    const { orders } = makeInstance(store, { records })
    const started = await orders.start({ kind: 'login' }, desktop)
    expect(await reasonOf(orders.claim(started, phone))).toBe('STORE_UNAVAILABLE')
    expect(attempts).toBe(32)
  })

  test('an outage of the store is answered as an outage', async () => {
    const outage = () => Promise.reject(new CountersignError('STORE_UNAVAILABLE', 'away'))
    const { orders } = makeInstance(store, { records: { ...storedOrders(store), load: outage } })
    expect(await reasonOf(orders.claim({ orderId: 'any', claimToken: 'any' }, phone))).toBe('STORE_UNAVAILABLE')
  })

  test('an order that a newer release stored is refused in words that say what to do', async () => {
    const { orders } = makeInstance(store)
    const order = await orders.start({ kind: 'login' }, desktop)
    const key = `order:{${order.orderId}}`
    const stored = await store.get(key)
    await store.compareAndSet(key, 1, String(stored?.value).replace('"v":1', '"v":3'), { ttlMs: 1000 })
    await expect(orders.claim(order, phone)).rejects.toThrow(
      /version 3, and this release reads version 1: upgrade this instance/,
    )
  })
})
