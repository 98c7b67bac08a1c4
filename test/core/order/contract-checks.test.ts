import { hash } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { storedOrders } from '../../../src/core/order/records.ts'
import type { WalletAdapter } from '../../../src/core/wallet/wallet.ts'
import { CountersignError } from '../../../src/shared/errors.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { stores } from '../../support/stores.ts'
import { desktop, type Going, type Instance, makeInstance, phone, reasonOf, untilWaiting } from './support.ts'

const address = 'contract-1'

/** What a contract says to, in the tests. */
function signed(message: string): string {
  return hash('sha256', message)
}

/** A chain's RPC: how often it was asked, and what it does meanwhile. */
class Rpc {
  asked = 0
  /** Called for each question, before it is answered. */
  meanwhile: () => unknown = () => {}

  async holds(message: string, signatureHex: string): Promise<boolean> {
    this.asked++
    await this.meanwhile()
    return signatureHex === signed(message)
  }
}

/** Wallets that are contracts: only the RPC can say whether a signature holds. */
function contractWallets(rpc: Rpc): WalletAdapter {
  return {
    id: 'contract',
    displayName: 'Contract',
    async verify(message, { signatureHex }, _ed25519, remote) {
      if (!(await remote?.ask(() => rpc.holds(message, signatureHex)))) return undefined
      return { adapterId: 'contract', subject: address, publicKeyHex: '', address }
    },
    readAddress: (text) => text,
  }
}

function proofOver(message: string) {
  return { adapterId: 'contract', publicKeyHex: '', address, signatureHex: signed(message) }
}

function outage(): never {
  throw new CountersignError('EVM_RPC_UNAVAILABLE', 'The RPC does not answer')
}

describe.each(stores)('proofs that only an RPC can check, on $name', ({ open }) => {
  async function start(): Promise<{
    readonly rpc: Rpc
    readonly store: Store
    readonly instances: [Instance, Instance]
  }> {
    const store = await openStore(String((await open()).store))
    onTestFinished(() => store.close())
    const rpc = new Rpc()
    const adapter = contractWallets(rpc)
    return { rpc, store, instances: [makeInstance(store, { adapter }), makeInstance(store, { adapter })] }
  }

  const approve = ({ orders }: Instance, order: Going, message = order.message) =>
    orders.approve({ ...order, proof: proofOver(message) }, phone)

  test('the order that the check has changed is approved after it, and the RPC is asked once', async () => {
    const { rpc, store, instances } = await start()
    const order = await untilWaiting(instances[0])
    expect((await approve(instances[0], order)).status).toBe('approved')
    expect(rpc.asked).toBe(1)
    const stored = await storedOrders(store).load(order.orderId)
    expect(stored?.order).toMatchObject({ status: 'approved', contractChecks: 1 })
  })

  test('also if others change it meanwhile', async () => {
    const { rpc, instances } = await start()
    const order = await untilWaiting(instances[0])
    rpc.meanwhile = () => instances[1].orders.handOver(order, phone)
    expect((await approve(instances[0], order)).status).toBe('approved')
    expect(rpc.asked).toBe(1)
  })

  test('an order that ends while the RPC is asked is not approved', async () => {
    const { rpc, instances } = await start()
    const order = await untilWaiting(instances[0])
    rpc.meanwhile = () => instances[1].orders.cancel(order, desktop)
    expect(await reasonOf(approve(instances[0], order))).toBe('ORDER_CANCELLED')
  })

  test('the RPC answers three times for an order, to whichever instance', async () => {
    const { rpc, instances } = await start()
    const order = await untilWaiting(instances[0])
    for (const n of [0, 1, 0]) {
      expect(await reasonOf(approve(instances[n] as Instance, order, 'another text'))).toBe('SIGNATURE_INVALID')
    }
    for (const instance of instances) expect(await reasonOf(approve(instance, order))).toBe('RATE_LIMITED')
    expect(rpc.asked).toBe(3)
    // The user has another wallet.
    expect((await instances[0].orders.approve(order, phone)).status).toBe('approved')
  })

  test('an RPC that does not answer is never a wrong signature, and does not count', async () => {
    const { rpc, instances } = await start()
    const order = await untilWaiting(instances[0])
    rpc.meanwhile = outage
    for (let n = 0; n < 5; n++) expect(await reasonOf(approve(instances[0], order))).toBe('EVM_RPC_UNAVAILABLE')
    rpc.meanwhile = () => {}
    expect((await approve(instances[1], order)).status).toBe('approved')
    expect(rpc.asked).toBe(6)
  })

  test('an RPC that did not answer another call gives this one its place back, until just before it is asked', async () => {
    const { rpc, store, instances } = await start()
    const order = await untilWaiting(instances[0])
    for (let n = 0; n < 2; n++) await reasonOf(approve(instances[0], order, 'another text'))
    const slow = Promise.withResolvers<void>()
    rpc.meanwhile = async () => {
      await slow.promise
      outage()
    }
    const away = reasonOf(approve(instances[0], order))
    await expect.poll(() => rpc.asked).toBe(3)
    rpc.meanwhile = () => {}
    const adapter = contractWallets(rpc)
    const late = makeInstance(store, {
      adapter: {
        ...adapter,
        // The order was read already, with three places taken.
        async verify(...args) {
          slow.resolve()
          expect(await away).toBe('EVM_RPC_UNAVAILABLE')
          return await adapter.verify(...args)
        },
      },
    })
    expect((await approve(late, order)).status).toBe('approved')
  })

  test('thirty calls at once get three answers', async () => {
    const { rpc, instances } = await start()
    const order = await untilWaiting(instances[0])
    const refused = Promise.withResolvers<void>()
    // The RPC is so slow that all others have come by then.
    rpc.meanwhile = () => refused.promise
    const reasons: (string | undefined)[] = []
    const calls = Array.from({ length: 30 }, async (_, n) => {
      reasons.push(await reasonOf(approve(instances[n % 2] as Instance, order, `another text ${n}`)))
      if (reasons.length === 27) refused.resolve()
    })
    await Promise.all(calls)
    expect(reasons.slice(0, 27)).toEqual(Array.from({ length: 27 }, () => 'RATE_LIMITED'))
    expect(reasons.slice(27)).toEqual(Array.from({ length: 3 }, () => 'SIGNATURE_INVALID'))
    expect(rpc.asked).toBe(3)
  })

  test('who has no token of the phone has nothing checked', async () => {
    const { rpc, instances } = await start()
    const order = await untilWaiting(instances[0])
    const call = approve(instances[0], { ...order, challengeToken: order.desktopToken })
    expect(await reasonOf(call)).toBe('ORDER_TOKEN_INVALID')
    expect(rpc.asked).toBe(0)
  })
})
