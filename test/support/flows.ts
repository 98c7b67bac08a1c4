import { expect } from 'vitest'
import type { Challenge, Result, SignInClient } from './clients.ts'
import type { OrderClient, Transition } from './orders.ts'
import { bearer, okay, rest } from './rest.ts'
import { makeWallet, proofOf, type TestWallet } from './wallet.ts'

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

/** Headers by name, as a caller sends them. */
type CallHeaders = Readonly<Record<string, string>>

/** Signs a wallet in over REST. `cookie` is that of the session, as a browser sends it. */
export async function signIn(url: string, wallet: TestWallet = makeWallet(), headers: CallHeaders = {}) {
  const challenge = okay(await rest(url, '/wallet/nonce', {}, headers))
  const answer = await rest(url, '/wallet/verify', proofOf(wallet, challenge), headers)
  const { token, session } = okay(answer)
  const cookie = answer.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
  return { wallet, token: token as string, session, cookie }
}

interface Approving {
  readonly wallet?: TestWallet
  readonly headers?: CallHeaders
  readonly rememberComputer?: boolean | undefined
}

/** What a phone does with an order over REST: claims it, reads its challenge, and approves it with a wallet. */
export async function approveOrder(
  url: string,
  { orderId, claimToken }: { readonly orderId: string; readonly claimToken: string },
  { wallet = makeWallet(), headers = {}, rememberComputer }: Approving = {},
) {
  const { challengeToken } = okay(await rest(url, '/cross-device/claim', { orderId, claimToken }, headers))
  const path = `/cross-device/challenge?orderId=${orderId}`
  const challenge = okay(await rest(url, path, undefined, { ...headers, ...bearer(challengeToken) }))
  const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(challenge.message) }
  const approval = { orderId, challengeToken, proof, rememberComputer }
  const { returnCode } = okay(await rest(url, '/cross-device/approve', approval, headers))
  return { challengeToken: challengeToken as string, challenge, returnCode: returnCode as string }
}
