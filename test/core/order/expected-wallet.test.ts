import { describe, expect, test } from 'vitest'
import { storedOrders } from '../../../src/core/order/records.ts'
import type { StartOrderOptions } from '../../../src/shared/orders.ts'
import { stores } from '../../support/stores.ts'
import { makeWallet, type TestWallet } from '../../support/wallet.ts'
import { desktop, makeInstance, outcomeOf, phone, reasonOf, suiteStore, untilWaiting } from './support.ts'

describe.each(stores)('orders for one wallet on $name', async ({ open }) => {
  const store = await suiteStore(open)

  const sign = { kind: 'sign', adapterId: 'nimiq' } as const

  /** What an approval of an order by a wallet comes to. */
  async function approve(input: StartOrderOptions, wallet: TestWallet): Promise<string | undefined> {
    const instance = makeInstance(store)
    const order = await untilWaiting(instance, input)
    const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(order.message) }
    return await reasonOf(instance.orders.approve({ ...order, proof }, phone))
  }

  const owner = makeWallet()
  const stranger = makeWallet()
  const { publicKeyHex: expectedPublicKeyHex, address: expectedAddress } = owner

  test.each([
    ['its key', { expectedPublicKeyHex }],
    ['its key in upper case', { expectedPublicKeyHex: expectedPublicKeyHex.toUpperCase() }],
    ['its address', { expectedAddress }],
    ['its address without spaces', { expectedAddress: expectedAddress.replaceAll(' ', '') }],
    ['both', { expectedPublicKeyHex, expectedAddress }],
  ])('by %s are approved by it and by no other', async (_, expected) => {
    expect(await approve({ ...sign, ...expected }, owner)).toBeUndefined()
    expect(await approve({ ...sign, ...expected }, stranger)).toBe('WRONG_WALLET')
  })

  test('whose key and address are of two wallets are approved by neither', async () => {
    const mixed = { ...sign, expectedPublicKeyHex, expectedAddress: stranger.address }
    expect(await approve(mixed, owner)).toBe('WRONG_WALLET')
    expect(await approve(mixed, stranger)).toBe('WRONG_WALLET')
  })

  test('stay as they are when another wallet signs, and say which one they are for', async () => {
    const instance = makeInstance(store)
    const order = await untilWaiting(instance, { ...sign, expectedPublicKeyHex, expectedAddress })
    const before = await storedOrders(store).load(order.orderId)
    const prove = (wallet: TestWallet, message = order.message) => ({
      ...order,
      proof: { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) },
    })
    expect(await reasonOf(instance.orders.approve(prove(stranger), phone))).toBe('WRONG_WALLET')
    expect(await reasonOf(instance.orders.approve(prove(owner, 'another text'), phone))).toBe('SIGNATURE_INVALID')
    expect(await storedOrders(store).load(order.orderId)).toEqual(before)
    expect(await instance.orders.readChallenge(order, phone)).toMatchObject({ expectedPublicKeyHex, expectedAddress })
    expect((await instance.orders.approve(prove(owner), phone)).status).toBe('approved')
  })

  test('are sign orders that name their adapter, with an address of it', async () => {
    const { orders } = makeInstance(store)
    const refused = [
      [{ kind: 'login', adapterId: 'nimiq', expectedPublicKeyHex }, 'expected_public_key_hex'],
      [{ kind: 'login', adapterId: 'nimiq', expectedAddress }, 'expected_address'],
      [{ kind: 'sign', expectedPublicKeyHex }, 'adapter_id'],
      [{ kind: 'sign', expectedAddress }, 'adapter_id'],
      [{ ...sign, expectedAddress: `${expectedAddress}0` }, 'expected_address'],
      [{ ...sign, expectedAddress: 'NQ' }, 'expected_address'],
      [{ ...sign, expectedAddress: '' }, 'expected_address'],
    ] as const
    for (const [input, field] of refused) {
      expect(await outcomeOf(orders.start(input, desktop))).toEqual({
        reason: 'INVALID_REQUEST',
        message: expect.stringContaining(field),
      })
    }
    const unknown = { kind: 'sign', adapterId: 'other', expectedAddress } as const
    expect(await reasonOf(orders.start(unknown, desktop))).toBe('ADAPTER_UNKNOWN')
  })
})
