import { describe, expect, test } from 'vitest'
import { hashToken, newId, newToken } from '../../../src/base/token.ts'
import type { OrderRecord } from '../../../src/core/order/order.ts'
import { storedOrders } from '../../../src/core/order/records.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { desktop, issuedBy, makeInstance, phone, untilApproved } from './support.ts'

/** What both kinds of tokens are derived from. */
interface Inputs {
  readonly orderId: string
  readonly claimToken: string
  readonly claimKey: string
  readonly desktopToken: string
  readonly secret: string
}

const inputs: Inputs = {
  orderId: newId(),
  claimToken: newToken('claim'),
  claimKey: 'k'.repeat(43),
  desktopToken: newToken('desktop'),
  secret: 'a secret for tests and for nothing else',
}

/** Other inputs, to be changed one at a time. */
const changes: Record<keyof Inputs, string> = {
  orderId: newId(),
  claimToken: newToken('claim'),
  claimKey: 'l'.repeat(43),
  desktopToken: newToken('desktop'),
  secret: 'another secret for tests and nothing else',
}

/** The challenge token that a claim with these inputs gets, in a store of its own. */
async function challengeTokenOf({ orderId, claimToken, claimKey, desktopToken, secret }: Inputs): Promise<string> {
  const store = await memoryStore()
  const instance = makeInstance(store, { secrets: [secret] })
  const { orderId: ownId } = await instance.orders.start({ kind: 'login' }, desktop)
  await storeCopy(store, ownId, {
    orderId,
    claimTokenHash: hashToken(claimToken),
    desktopTokenHash: hashToken(desktopToken),
  })
  return (await instance.orders.claim({ orderId, claimToken, claimKey }, phone)).challengeToken
}

/** The part of the session's token that is derived: that before the dot, which its signature is not in. */
async function sessionTokenOf({ orderId, claimToken, desktopToken, secret }: Inputs): Promise<string> {
  const store = await memoryStore()
  const instance = makeInstance(store, { secrets: [secret] })
  const { orderId: ownId } = await untilApproved(instance)
  await storeCopy(store, ownId, {
    orderId,
    claimTokenHash: hashToken(claimToken),
    desktopTokenHash: hashToken(desktopToken),
  })
  const { token } = issuedBy(await instance.orders.finalize({ orderId, desktopToken }, desktop))
  return token.split('.')[0] as string
}

/** Stores an order once more, with some fields changed. */
async function storeCopy(
  store: Awaited<ReturnType<typeof memoryStore>>,
  orderId: string,
  fields: Pick<OrderRecord, 'orderId' | 'claimTokenHash' | 'desktopTokenHash'>,
): Promise<void> {
  const records = storedOrders(store)
  const { order } = (await records.load(orderId)) as { order: OrderRecord }
  await records.create({ ...order, ...fields })
}

describe.each([
  ['a challenge token', challengeTokenOf, ['orderId', 'claimToken', 'claimKey', 'secret']],
  ['the token of an order’s session', sessionTokenOf, ['orderId', 'desktopToken', 'secret']],
] as const)('%s', (_name, tokenOf, essential) => {
  test('follows from its inputs', async () => {
    expect(await tokenOf(inputs)).toBe(await tokenOf(inputs))
  })

  test.each(essential)('is another one with another %s', async (name) => {
    expect(await tokenOf({ ...inputs, [name]: changes[name] })).not.toBe(await tokenOf(inputs))
  })
})

test('the inputs of a challenge token cannot be moved from one to the next', async () => {
  const moved = { ...inputs, claimToken: `${inputs.claimToken}${inputs.claimKey.slice(0, 1)}` }
  const claimKey = inputs.claimKey.slice(1)
  expect(await challengeTokenOf({ ...moved, claimKey })).not.toBe(await challengeTokenOf(inputs))
})

test('a challenge token and a session’s token are never the same bytes', async () => {
  const same = { ...inputs, claimKey: inputs.desktopToken, claimToken: inputs.desktopToken }
  expect((await challengeTokenOf(same)).slice(4)).not.toBe((await sessionTokenOf(same)).slice(4))
})
