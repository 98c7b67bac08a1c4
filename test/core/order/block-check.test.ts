import { describe, expect, onTestFinished, test } from 'vitest'
import { storedOrders } from '../../../src/core/order/records.ts'
import type { ProvenIdentity, WalletAdapter, WalletIdentity } from '../../../src/core/wallet/wallet.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { stores } from '../../support/stores.ts'
import { administrationOn } from '../users/support.ts'
import { desktop, makeInstance, phone, reasonOf, Signer, untilApproved, untilWaiting } from './support.ts'

/** A wallet of the `named` adapter, which goes by another text than its address. */
const identity: ProvenIdentity = { adapterId: 'named', subject: 'wallet-1', publicKeyHex: '', address: 'address-1' }
const proof = { adapterId: 'named', publicKeyHex: '', signatureHex: 'aa', address: 'address-1' }

/** Takes every proof for that of {@link identity}; `meanwhile` is what an RPC does while it is asked. */
function adapterOf(identity: ProvenIdentity, meanwhile?: () => Promise<void>): WalletAdapter {
  return {
    id: identity.adapterId,
    displayName: 'Named',
    async verify(_message, _proof, _ed25519, remote) {
      if (meanwhile !== undefined) await remote?.ask(meanwhile)
      return identity
    },
    readAddress: (text) => text,
  }
}

describe.each(stores)('approving by a wallet that is blocked, on $name', ({ open }) => {
  async function opened(): Promise<Store> {
    const store = await openStore(String((await open()).store))
    onTestFinished(() => store.close())
    return store
  }

  const statusAfter = async (store: Store, order: { orderId: string; challengeToken: string }): Promise<string> =>
    (await makeInstance(store).orders.readChallenge(order, phone)).status

  async function blocked(store: Store, wallet: WalletIdentity): Promise<void> {
    await administrationOn(store).block({ publicKeyHex: '', address: '', ...wallet })
    onTestFinished(async () => void (await administrationOn(store).unblock(wallet)))
  }

  test('is refused, whether or not the proof names its adapter', async () => {
    const store = await opened()
    const instance = makeInstance(store, { blocks: true })
    for (const kind of ['login', 'sign'] as const) {
      const signer = new Signer()
      await blocked(store, { adapterId: 'ed25519', subject: signer.publicKeyHex })
      for (const adapterId of ['ed25519', undefined]) {
        const order = await untilWaiting(instance, { kind, adapterId: 'ed25519' }, signer)
        const call = instance.orders.approve({ ...order, proof: { ...order.proof, adapterId } }, phone)
        expect(await reasonOf(call)).toBe('LOGIN_REFUSED')
        expect(await statusAfter(store, order)).toBe('waiting_user')
      }
    }
  })

  test('is refused if the proof names it by another text than the adapter goes by', async () => {
    const store = await opened()
    const instance = makeInstance(store, { blocks: true, adapter: adapterOf(identity) })
    const order = await untilWaiting(instance)
    await blocked(store, identity)
    expect(await reasonOf(instance.orders.approve({ ...order, proof }, phone))).toBe('LOGIN_REFUSED')
    expect(await statusAfter(store, order)).toBe('waiting_user')
  })

  test('is refused for that wallet only: what a proof names and does not prove does not count', async () => {
    const store = await opened()
    const instance = makeInstance(store, { blocks: true, adapter: adapterOf(identity) })
    const order = await untilWaiting(instance)
    await blocked(store, { adapterId: 'named', subject: proof.address })
    expect((await instance.orders.approve({ ...order, proof }, phone)).status).toBe('approved')
  })

  test('is refused if it is blocked while an RPC is asked about its proof', async () => {
    const store = await opened()
    const wallet = { ...identity, subject: identity.address }
    const adapter = adapterOf(wallet, () => blocked(store, wallet))
    const instance = makeInstance(store, { blocks: true, adapter })
    const order = await untilWaiting(instance)
    expect(await reasonOf(instance.orders.approve({ ...order, proof }, phone))).toBe('LOGIN_REFUSED')
    expect(await statusAfter(store, order)).toBe('waiting_user')
  })

  test('is refused if it is blocked before the approval is tried again after a lost race', async () => {
    const store = await opened()
    const signer = new Signer()
    const records = storedOrders(store)
    let raced = false
    const instance = makeInstance(store, {
      blocks: true,
      records: {
        ...records,
        async compareAndSet(order, version) {
          if (order.status === 'approved' && !raced) {
            raced = true
            await makeInstance(store).orders.handOver(waiting, phone)
            await blocked(store, { adapterId: 'ed25519', subject: signer.publicKeyHex })
          }
          return await records.compareAndSet(order, version)
        },
      },
    })
    const waiting = await untilWaiting(instance, { kind: 'login' }, signer)
    const named = { ...waiting.proof, adapterId: 'ed25519' }
    expect(await reasonOf(instance.orders.approve({ ...waiting, proof: named }, phone))).toBe('LOGIN_REFUSED')
    expect(await statusAfter(store, waiting)).toBe('waiting_user')
  })

  test('if it was blocked just after the question, gets nothing out of the approval', async () => {
    const store = await opened()
    const instance = makeInstance(store, { blocks: true })
    for (const kind of ['login', 'sign'] as const) {
      const signer = new Signer()
      const order = await untilApproved(instance, { kind }, signer)
      const { adapterId } = await adapterOfApproved(store, order.orderId)
      await blocked(store, { adapterId, subject: signer.publicKeyHex })
      expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('LOGIN_REFUSED')
      expect(await statusAfter(store, order)).toBe('approved')
    }
  })

  test('a question that fails says nothing to a caller whose proof, or order, is refused', async () => {
    const store = await opened()
    const unhandled: unknown[] = []
    const note = (reason: unknown): number => unhandled.push(reason)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const instance = makeInstance(store, {
      blocks: { requireNotBlocked: () => Promise.reject(new Error('away')) },
    })
    const order = await untilWaiting(makeInstance(store))
    const named = { ...order, proof: { ...order.proof, adapterId: 'ed25519' } }
    const wrong = { ...named, proof: { ...named.proof, signatureHex: '00'.repeat(64) } }
    expect(await reasonOf(instance.orders.approve(wrong, phone))).toBe('SIGNATURE_INVALID')
    expect(await reasonOf(instance.orders.approve({ ...named, orderId: 'none' }, phone))).toBe('ORDER_NOT_FOUND')
    await expect(instance.orders.approve(named, phone)).rejects.toThrow('away')
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
  })
})

async function adapterOfApproved(store: Store, orderId: string): Promise<{ adapterId: string }> {
  const proof = (await storedOrders(store).load(orderId))?.order.proof
  if (proof === undefined) throw new Error('the order is not approved')
  return proof
}
