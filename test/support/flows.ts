import { expect } from 'vitest'
import type { Challenge, Result, SignInClient } from './clients.ts'
import type { OrderClient, Transition } from './orders.ts'
import { makeWallet } from './wallet.ts'

/** Signs in with a new wallet. */
export async function signInWith(client: SignInClient): Promise<Result> {
  const wallet = makeWallet()
  const { nonceId, message }: Challenge = await client.issueNonce()
  const result = await client.verify({
    nonceId,
    publicKeyHex: wallet.publicKeyHex,
    signatureHex: wallet.sign(message),
    address: wallet.address,
  })
  expect(result).toMatchObject({ ok: true, address: wallet.address, token: expect.any(String) })
  return result
}

/** Goes through a login order with both devices, and expects the desktop to see every step while it happens. */
export async function completeOrder({ start, claim, challenge, approve, finalize, watch }: OrderClient): Promise<void> {
  const order = await start('login')
  const { orderId, claimToken } = order
  const events = watch(order)[Symbol.asyncIterator]()
  const next = async (): Promise<Transition | undefined> => {
    const { value, done } = await events.next()
    return done ? undefined : value
  }
  expect(await next()).toMatchObject({ sequence: 1, status: 'created' })
  const { challengeToken } = await claim({ orderId, claimToken })
  expect(await next()).toMatchObject({ sequence: 2, status: 'claimed' })
  const { message } = await challenge({ orderId, challengeToken })
  expect(await next()).toMatchObject({ sequence: 3, status: 'waiting_user' })
  const { publicKeyHex, sign } = makeWallet()
  await approve({ orderId, challengeToken, proof: { publicKeyHex, signatureHex: sign(message) } })
  expect(await next()).toMatchObject({ sequence: 4, status: 'approved' })
  const { token } = await finalize(order)
  expect(token).toEqual(expect.any(String))
  expect(await next()).toMatchObject({ sequence: 5, status: 'finalized' })
  expect(await next()).toBeUndefined()
}
