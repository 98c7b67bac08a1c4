import { describe, expect, test } from 'vitest'
import { storedOrders } from '../../../src/core/order/records.ts'
import { stores } from '../../support/stores.ts'
import { makeWallet } from '../../support/wallet.ts'
import { makeInstance, outcomeOf, phone, reasonOf, Signer, suiteStore, untilWaiting } from './support.ts'

describe.each(stores)('approving orders on $name', async ({ open }) => {
  const store = await suiteStore(open)

  describe('approving', () => {
    test('a wrong proof changes nothing', async () => {
      const instance = makeInstance(store)
      const order = await untilWaiting(instance, { kind: 'login' })
      const before = await storedOrders(store).load(order.orderId)
      const signer = new Signer()
      const stranger = makeWallet()
      const wrong = [
        [signer.prove(`${order.message} `), 'SIGNATURE_INVALID'],
        [{ ...order.proof, publicKeyHex: signer.publicKeyHex }, 'SIGNATURE_INVALID'],
        [{ ...order.proof, adapterId: 'nimiq' }, 'SIGNATURE_INVALID'],
        [{ ...order.proof, adapterId: 'other' }, 'ADAPTER_UNKNOWN'],
        [{ ...order.proof, address: stranger.address }, 'ADDRESS_MISMATCH'],
        [{ ...order.proof, signatureHex: 'zz' }, 'INVALID_REQUEST'],
        [{ publicKeyHex: `01${'00'.repeat(31)}`, signatureHex: `01${'00'.repeat(63)}` }, 'SIGNATURE_INVALID'],
      ] as const
      for (const [proof, reason] of wrong) {
        expect(await reasonOf(instance.orders.approve({ ...order, proof }, phone))).toBe(reason)
      }
      expect(await storedOrders(store).load(order.orderId)).toEqual(before)
      expect((await instance.orders.approve(order, phone)).status).toBe('approved')
    })

    test('verifies the stored message, never one that comes with the proof', async () => {
      const instance = makeInstance(store)
      const signer = new Signer()
      const order = await untilWaiting(instance)
      const proof = { ...signer.prove('a text of my own'), message: 'a text of my own' }
      expect(await reasonOf(instance.orders.approve({ ...order, proof }, phone))).toBe('SIGNATURE_INVALID')
    })

    test('holds to the adapter that the order asks for', async () => {
      const instance = makeInstance(store)
      const signer = new Signer()
      const order = await untilWaiting(instance, { kind: 'login', adapterId: 'nimiq' }, signer)
      expect(await reasonOf(instance.orders.approve(order, phone))).toBe('SIGNATURE_INVALID')
      const named = { ...order, proof: { ...order.proof, adapterId: 'ed25519' } }
      expect(await outcomeOf(instance.orders.approve(named, phone))).toEqual({
        reason: 'INVALID_REQUEST',
        message: expect.stringContaining('adapter_id must be nimiq'),
      })
    })

    test('where the message is stored as it is, changed settings do not change it', async () => {
      const order = await untilWaiting(makeInstance(store))
      const changed = makeInstance(store, { settings: { orderTtlSeconds: 60, confirmationCode: 'return' } })
      expect((await changed.orders.readChallenge(order, phone)).message).toBe(order.message)
      expect((await changed.orders.approve(order, phone)).status).toBe('approved')
    })
  })
})
