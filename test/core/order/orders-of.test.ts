import { expect, test } from 'vitest'
import { ordersOf } from '../../../src/core/order/records.ts'
import { walletAdapters } from '../../../src/core/wallet/adapters.ts'
import { openStore } from '../../../src/store/open.ts'
import { desktop, makeInstance } from './support.ts'

test('an order for a wallet is found for the owner of that wallet, and of no contract wallet with the same digits', async () => {
  await using store = Object.assign(await openStore('sqlite::memory:'), {
    async [Symbol.asyncDispose](this: { close(): Promise<void> }) {
      await this.close()
    },
  })
  const { orders } = makeInstance(store, { adapter: walletAdapters(['ethereum'])[0]! })
  const address = `0x${'ab'.repeat(20)}`
  const { orderId } = await orders.start({ kind: 'sign', adapterId: 'ethereum', expectedAddress: address }, desktop)
  const found = async (own: string) => {
    const wallet = { adapterId: 'ethereum', subject: 'subject', address: own, publicKeyHex: '' }
    const party = { userId: 'someone', wallets: [wallet] }
    return (await ordersOf(store.scan!.bind(store), party)).map((order) => order.orderId)
  }
  expect(await found(address.toUpperCase())).toEqual([orderId])
  expect(await found(`eip155:1:${address}`)).toEqual([])
})
