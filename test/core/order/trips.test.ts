import { expect, test } from 'vitest'
import { storedOrders } from '../../../src/core/order/records.ts'
import type { WalletAdapter } from '../../../src/core/wallet/wallet.ts'
import { OpenOrders } from '../../../src/limits/concurrency.ts'
import { defaultLimits } from '../../../src/limits/limits.ts'
import { CountersignError } from '../../../src/shared/errors.ts'
import type { StartOrderOptions } from '../../../src/shared/orders.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { countTrips } from '../../support/trip-counter.ts'
import {
  Computer,
  desktop,
  type Going,
  type Instance,
  makeInstance,
  phone,
  Signer,
  untilApproved,
  untilWaiting,
} from './support.ts'

interface Parts {
  readonly instance: Instance
  /** Takes return codes. */
  readonly withCodes: Instance
  /** Another process, of which nothing is counted. */
  readonly elsewhere: Instance
  /** A wallet that has signed in before. */
  readonly signer: Signer
  readonly computer: Computer
}

const contractProof = { adapterId: 'contract', publicKeyHex: '', signatureHex: 'aa', address: 'contract-1' }

/** Says that a proof is of the wallet that `untilWaiting` signs with. */
const named = (order: Going): Going => ({ ...order, proof: { ...order.proof, adapterId: 'ed25519' } as Going['proof'] })

/** Lets the computer be remembered for the wallet. */
async function remembered({ withCodes, signer, computer }: Parts): Promise<StartOrderOptions> {
  const input = { kind: 'login', computerKey: computer.computerKey } as const
  const order = await untilApproved(withCodes, input, signer, { rememberComputer: true })
  await withCodes.orders.finalize({ ...order, computerProof: computer.prove(order) }, desktop)
  return input
}

/** A wallet that only an RPC can check, which is away for some signatures. */
const contractWallets: WalletAdapter = {
  id: 'contract',
  displayName: 'Contract',
  async verify(_message, { signatureHex }, _ed25519, remote) {
    await remote?.ask(async () => {
      if (signatureHex === 'bb') throw new CountersignError('EVM_RPC_UNAVAILABLE', 'away')
    })
    return { adapterId: 'contract', subject: 'contract-1', publicKeyHex: '', address: 'contract-1' }
  },
  readAddress: (text) => text,
}

/**
 * Tests what a call of an order asks of the store. A trip is one or more steps that begin together. The call waits for
 * the answers of a trip before it goes on to the next, but not for removeMember, by which an order that is over is
 * counted out. `prepare` does what comes before, and returns the call.
 */
function takes(
  call: string,
  trips: readonly string[],
  prepare: (parts: Parts) => Promise<() => Promise<unknown>>,
): void {
  test(`${call} takes no more trips than listed`, async () => {
    const inner = await memoryStore()
    const { store, taken } = countTrips(inner)
    const records = storedOrders(store, { open: new OpenOrders(defaultLimits, store) })
    const options = { records, blocks: true, adapter: contractWallets }
    const instance = makeInstance(store, options)
    const withCodes = makeInstance(store, { ...options, settings: { confirmationCode: 'return' } })
    const elsewhere = makeInstance(inner)
    const signer = new Signer()
    const known = await untilApproved(instance, { kind: 'login' }, signer)
    await instance.orders.finalize(known, desktop)
    const prepared = await prepare({ instance, withCodes, elsewhere, signer, computer: new Computer() })
    await taken()
    await prepared()
    expect(await taken()).toEqual(trips)
  })
}

takes(
  'StartOrder',
  ['addMember + create'],
  async ({ instance }) =>
    () =>
      instance.orders.start({ kind: 'login' }, desktop),
)

takes('PreviewOrder', ['get'], async ({ instance: { orders } }) => {
  const order = await orders.start({ kind: 'login' }, desktop)
  return () => orders.preview(order, phone)
})

takes('ClaimOrder', ['get', 'compareAndSet'], async ({ instance: { orders } }) => {
  const order = await orders.start({ kind: 'login' }, desktop)
  return () => orders.claim(order, phone)
})

takes('GetOrderChallenge', ['get', 'compareAndSet'], async ({ instance: { orders } }) => {
  const order = await orders.start({ kind: 'login' }, desktop)
  const claimed = await orders.claim(order, phone)
  return () => orders.readChallenge(claimed, phone)
})

takes('GetOrderChallenge, again', ['get'], async ({ instance }) => {
  const order = await untilWaiting(instance)
  return () => instance.orders.readChallenge(order, phone)
})

takes('HandOverOrder', ['get', 'compareAndSet'], async ({ instance }) => {
  const order = await untilWaiting(instance)
  return () => instance.orders.handOver(order, phone)
})

takes('RedeemHandOver', ['get', 'compareAndSet'], async ({ instance }) => {
  const handOver = await instance.orders.handOver(await untilWaiting(instance), phone)
  return () => instance.orders.redeem(handOver, phone)
})

takes('ApproveOrder', ['get', 'get', 'compareAndSet'], async ({ instance, signer }) => {
  const order = named(await untilWaiting(instance, { kind: 'login' }, signer))
  return () => instance.orders.approve(order, phone)
})

takes('ApproveOrder, of a computer that may be known', ['get', 'get', 'get', 'compareAndSet'], async (parts) => {
  const order = named(await untilWaiting(parts.withCodes, await remembered(parts), parts.signer))
  return () => parts.withCodes.orders.approve(order, phone)
})

takes(
  'ApproveOrder, by a contract wallet',
  ['get', 'get', 'compareAndSet', 'get', 'get', 'compareAndSet'],
  async ({ instance }) => {
    const order = await untilWaiting(instance)
    return () => instance.orders.approve({ ...order, proof: contractProof }, phone)
  },
)

takes(
  'ApproveOrder, by a contract wallet whose RPC is away',
  ['get', 'get', 'compareAndSet', 'get', 'compareAndSet'],
  async ({ instance }) => {
    const order = await untilWaiting(instance)
    const proof = { ...contractProof, signatureHex: 'bb' }
    return () => expect(instance.orders.approve({ ...order, proof }, phone)).rejects.toThrow('away')
  },
)

takes('RejectOrder', ['get', 'compareAndSet', 'removeMember'], async ({ instance }) => {
  const order = await untilWaiting(instance)
  return () => instance.orders.reject(order, phone)
})

takes(
  'RejectOrder, which takes a session back',
  ['get', 'compareAndSet', 'get', 'compareAndSet', 'removeMember', 'get', 'compareAndSet'],
  async ({ instance, signer }) => {
    const order = await untilApproved(instance, { kind: 'login' }, signer)
    await instance.orders.finalize(order, desktop)
    return () => instance.orders.reject(order, phone)
  },
)

takes(
  'RejectOrder, which takes the session of a known computer back',
  ['get', 'compareAndSet', 'get + get', 'compareAndSet + compareAndSet', 'removeMember', 'get', 'compareAndSet'],
  async (parts) => {
    const { withCodes, signer, computer } = parts
    const order = await untilApproved(withCodes, await remembered(parts), signer)
    await withCodes.orders.finalize({ ...order, computerProof: computer.prove(order) }, desktop)
    return () => withCodes.orders.reject(order, phone)
  },
)

takes('CancelOrder', ['get', 'compareAndSet', 'removeMember'], async ({ instance }) => {
  const order = await untilWaiting(instance)
  return () => instance.orders.cancel(order, desktop)
})

takes(
  'FinalizeOrder, login',
  ['get', 'get + get', 'compareAndSet', 'addMember + create + removeMember', 'get + get'],
  async ({ instance, signer }) => {
    const order = await untilApproved(instance, { kind: 'login' }, signer)
    return () => instance.orders.finalize(order, desktop)
  },
)

takes(
  'FinalizeOrder, login, again',
  ['get', 'addMember + create', 'get + get', 'get'],
  async ({ instance, signer }) => {
    const order = await untilApproved(instance, { kind: 'login' }, signer)
    await instance.orders.finalize(order, desktop)
    return () => instance.orders.finalize(order, desktop)
  },
)

takes(
  'FinalizeOrder, login, of a known computer',
  ['get', 'get + get', 'compareAndSet', 'addMember + create + removeMember', 'get + get', 'get', 'compareAndSet'],
  async (parts) => {
    const { withCodes, signer, computer } = parts
    const order = await untilApproved(withCodes, await remembered(parts), signer)
    return () => withCodes.orders.finalize({ ...order, computerProof: computer.prove(order) }, desktop)
  },
)

takes('FinalizeOrder, sign', ['get', 'get', 'compareAndSet', 'removeMember'], async ({ instance, signer }) => {
  const order = await untilApproved(instance, { kind: 'sign' }, signer)
  return () => instance.orders.finalize(order, desktop)
})

takes('FinalizeOrder, sign, again', ['get'], async ({ instance, signer }) => {
  const order = await untilApproved(instance, { kind: 'sign' }, signer)
  await instance.orders.finalize(order, desktop)
  return () => instance.orders.finalize(order, desktop)
})

takes(
  'FinalizeOrder, sign, of a known computer',
  ['get', 'get', 'compareAndSet', 'get + removeMember', 'compareAndSet'],
  async (parts) => {
    const { withCodes, signer, computer } = parts
    const order = await untilApproved(withCodes, { ...(await remembered(parts)), kind: 'sign' }, signer)
    return () => withCodes.orders.finalize({ ...order, computerProof: computer.prove(order) }, desktop)
  },
)

takes('WatchOrder, to its first event', ['get', 'watch', 'get'], async ({ instance }) => {
  const order = await untilWaiting(instance)
  return () => instance.orders.watch(order, desktop, new AbortController().signal).next()
})

takes('WatchOrder, and its next event', ['get'], async ({ instance, elsewhere }) => {
  const order = await untilWaiting(instance)
  const events = instance.orders.watch(order, desktop, new AbortController().signal)
  await events.next()
  return async () => {
    const next = events.next()
    await elsewhere.orders.cancel(order, desktop)
    expect((await next).value).toMatchObject({ status: 'cancelled' })
  }
})

takes('WatchOrder, of an order that is over', ['get'], async ({ instance }) => {
  const order = await untilWaiting(instance)
  await instance.orders.cancel(order, desktop)
  const events = instance.orders.watch(order, desktop, new AbortController().signal)
  return async () => {
    expect((await events.next()).value).toMatchObject({ status: 'cancelled' })
    expect((await events.next()).done).toBe(true)
  }
})
