import { describe, expect, test } from 'vitest'
import { OriginPolicy } from '../../../src/core/origin-policy.ts'
import { memoryStore } from '../../support/memory-store.ts'
import {
  appOrigin,
  desktop,
  makeInstance,
  outcomeOf,
  ownOrigin,
  phone,
  reasonOf,
  untilApproved,
  untilWaiting,
} from './support.ts'

const rules = { enforce: true, own: ownOrigin, trusted: [appOrigin, ownOrigin] }

describe('an order whose origin is no longer trusted', () => {
  test('is not found by any call with any token, and is found again once it is trusted', async () => {
    const store = await memoryStore()
    const origins = new OriginPolicy(rules)
    const instance = makeInstance(store, { origins })
    const { orders } = instance
    const order = await untilApproved(instance)
    origins.replaceRules({ ...rules, trusted: [ownOrigin] })
    const { signal } = new AbortController()
    const calls = (tokens: typeof order, request = phone) => [
      orders.preview(tokens, request),
      orders.claim(tokens, request),
      orders.readChallenge(tokens, request),
      orders.approve(tokens, request),
      orders.reject(tokens, request),
      orders.cancel(tokens, request),
      orders.finalize(tokens, request),
      orders.watch(tokens, request, signal).next(),
    ]
    const [unknown] = await Promise.all(calls({ ...order, orderId: 'none' }).map(outcomeOf))
    expect(unknown?.reason).toBe('ORDER_NOT_FOUND')
    const wrong = { ...order, claimToken: 'x', challengeToken: 'x', desktopToken: 'x' }
    for (const call of [...calls(order), ...calls(order, desktop), ...calls(wrong)]) {
      expect(await outcomeOf(call)).toEqual(unknown)
    }
    origins.replaceRules(rules)
    expect((await orders.finalize(order, desktop)).status).toBe('finalized')
  })

  test('is not found by a watch that has begun, at its next read', async () => {
    const store = await memoryStore()
    const origins = new OriginPolicy(rules)
    const instance = makeInstance(store, { origins })
    const order = await untilWaiting(instance)
    const events = instance.orders.watch(order, desktop, new AbortController().signal)
    expect((await events.next()).value).toMatchObject({ status: 'waiting_user' })
    const next = events.next()
    origins.replaceRules({ ...rules, trusted: [ownOrigin] })
    // Another instance still trusts it, and its change wakes the watch.
    await makeInstance(store).orders.approve(order, phone)
    expect(await reasonOf(next)).toBe('ORDER_NOT_FOUND')
  })
})
