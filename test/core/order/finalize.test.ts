import { describe, expect, test } from 'vitest'
import { storedOrders } from '../../../src/core/order/records.ts'
import { stores } from '../../support/stores.ts'
import {
  desktop,
  issuedBy,
  makeInstance,
  passTime,
  phone,
  reasonOf,
  Signer,
  suiteStore,
  untilApproved,
} from './support.ts'

const claimKey = 'k'.repeat(22)

describe.each(stores)('finalizing orders on $name', async ({ open }) => {
  const store = await suiteStore(open)

  describe('retries', () => {
    test('of a claim with its key get the same token, on any instance, with any newest secret', async () => {
      const { orders } = makeInstance(store)
      const { orderId, claimToken } = await orders.start({ kind: 'login' }, desktop)
      const claim = { orderId, claimToken, claimKey }
      const first = await orders.claim(claim, phone)
      expect(await orders.claim(claim, phone)).toEqual(first)
      const rotated = makeInstance(store, { secrets: ['second secret', 'first secret'] })
      expect(await rotated.orders.claim(claim, phone)).toEqual(first)
      await orders.readChallenge({ orderId, challengeToken: first.challengeToken }, phone)
      expect(await orders.claim(claim, phone)).toEqual({ ...first, status: 'waiting_user' })
      for (const other of [
        { ...claim, claimKey: 'l'.repeat(22) },
        { orderId, claimToken },
      ]) {
        expect(await reasonOf(orders.claim(other, phone))).toBe('ORDER_ALREADY_CLAIMED')
      }
      const stranger = makeInstance(store, { secrets: ['third secret'] })
      expect(await reasonOf(stranger.orders.claim(claim, phone))).toBe('ORDER_ALREADY_CLAIMED')
    })

    test('of an approval with the same proof, in either case of hex, also once it is finalized', async () => {
      const instance = makeInstance(store)
      const order = await untilApproved(instance)
      const proof = {
        publicKeyHex: order.proof.publicKeyHex.toUpperCase(),
        signatureHex: order.proof.signatureHex.toUpperCase(),
      }
      const retry = { ...order, proof }
      expect((await instance.orders.approve(retry, phone)).status).toBe('approved')
      const other = { ...order, proof: new Signer().prove(order.message) }
      expect(await reasonOf(instance.orders.approve(other, phone))).toBe('ORDER_ALREADY_APPROVED')
      await instance.orders.finalize(order, desktop)
      expect((await instance.orders.approve(retry, phone)).status).toBe('finalized')
      expect(await reasonOf(instance.orders.approve(other, phone))).toBe('ORDER_FINALIZED')
    })

    test('of a finalize get the same session for 60 seconds', async () => {
      const instance = makeInstance(store)
      const order = await untilApproved(instance)
      const first = issuedBy(await instance.orders.finalize(order, desktop))
      passTime(59_000)
      const again = issuedBy(await instance.orders.finalize(order, desktop))
      expect([again.token, again.session]).toEqual([first.token, first.session])
      passTime(2000)
      expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('ORDER_FINALIZED')
    })
  })

  describe('finalizing', () => {
    test('finds the same session after the server’s secret was changed, and none when the old one is gone', async () => {
      const order = await untilApproved(makeInstance(store))
      const { session } = issuedBy(await makeInstance(store).orders.finalize(order, desktop))
      const rotated = makeInstance(store, { secrets: ['second secret', 'first secret'] })
      const again = issuedBy(await rotated.orders.finalize(order, desktop))
      expect(again.session).toEqual(session)
      expect(await rotated.host.introspect(again.token)).toEqual(session)
      expect(await rotated.host.listSessions(session.userId)).toEqual([session])
      const forgetful = makeInstance(store, { secrets: ['second secret'] })
      expect(await reasonOf(forgetful.orders.finalize(order, desktop))).toBe('ORDER_FINALIZED')
      expect(await rotated.host.listSessions(session.userId)).toEqual([session])
    })

    test('does not bring an ended session back', async () => {
      const instance = makeInstance(store)
      const order = await untilApproved(instance)
      const { session } = issuedBy(await instance.orders.finalize(order, desktop))
      await instance.host.revokeSession(session.userId, session.id)
      expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('ORDER_FINALIZED')
      expect(await instance.host.listSessions(session.userId)).toEqual([])
    })

    test('a login that the application refuses creates nothing and leaves the order approved', async () => {
      const allowed = new Set<string>()
      const seen: object[] = []
      const instance = makeInstance(store, {
        host: {
          resolveLogin: (identity) => {
            seen.push(identity)
            return allowed.has(identity.publicKeyHex) ? { id: `of ${identity.publicKeyHex}` } : null
          },
        },
      })
      const order = await untilApproved(instance)
      expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('LOGIN_REFUSED')
      expect(await instance.host.listSessions(`of ${order.proof.publicKeyHex}`)).toEqual([])
      const stored = await storedOrders(store).load(order.orderId)
      expect(stored?.order.status).toBe('approved')
      expect(stored?.order).not.toHaveProperty('login')
      allowed.add(order.proof.publicKeyHex)
      const { session } = issuedBy(await instance.orders.finalize(order, desktop))
      expect(session.userId).toBe(`of ${order.proof.publicKeyHex}`)
      expect(Object.keys(seen[0] as object).sort()).toEqual(['adapterId', 'address', 'publicKeyHex', 'subject'])
      // A retry is for the user that was found first, and does not ask again.
      allowed.clear()
      expect(issuedBy(await instance.orders.finalize(order, desktop)).session).toEqual(session)
      expect(seen).toHaveLength(2)
    })

    test('a sign order asks the application nothing', async () => {
      const instance = makeInstance(store, {
        host: { resolveLogin: () => Promise.reject(new Error('asked')) },
      })
      const order = await untilApproved(instance, { kind: 'sign' })
      expect((await instance.orders.finalize(order, desktop)).kind).toBe('sign')
    })
  })
})
