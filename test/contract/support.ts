import { vi } from 'vitest'
import { Signer } from '../core/order/support.ts'
import type { ContractDriver, Credential, Outcome } from './driver.ts'

/** Moves the clock of the services, which run in this process. Timers go on as they are. */
export function advance(ms: number): void {
  if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: ['Date'] })
  vi.setSystemTime(Date.now() + ms)
}

/** The outcome of a call that has to succeed. */
export async function ok(call: Promise<Outcome>): Promise<Outcome> {
  const outcome = await call
  if (outcome.reason !== undefined) throw new Error(`${outcome.reason}: ${JSON.stringify(outcome.json)}`)
  return outcome
}

/** The reason of a call that has to fail. */
export async function refusal(call: Promise<Outcome>): Promise<string | undefined> {
  return (await call).reason
}

/** Signs in with a key. */
export async function signIn(driver: ContractDriver, signer: Signer = new Signer()): Promise<Outcome> {
  const { json: challenge } = await ok(driver.call('issueNonce', {}))
  const { nonceId, message } = challenge
  return await ok(driver.call('verifySignIn', { nonceId, ...signer.prove(message) }))
}

/** The session cookie that an answer sets, as a browser sends it back. */
export function cookieOf({ headers }: Outcome): Credential {
  const [cookie] = headers.getSetCookie()
  return { cookie: cookie?.split(';')[0] ?? '' }
}

/** The token that an answer hands out. */
export function bearerOf({ json }: Outcome): Credential {
  return { bearer: json.token }
}

/** An order on its way, with all that desktop and phone know of it. */
export interface Going {
  readonly desktop: { readonly orderId: string; readonly desktopToken: string }
  readonly phone: { readonly orderId: string; readonly challengeToken: string }
  readonly claim: { readonly orderId: string; readonly claimToken: string }
  readonly proof: { readonly publicKeyHex: string; readonly signatureHex: string }
  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
  readonly started: any
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly challenge: any
}

/** Starts and claims an order and reads its challenge: it waits for its user. */
export async function untilWaiting(
  driver: ContractDriver,
  input: object = { kind: 'login' },
  signer: Signer = new Signer(),
): Promise<Going> {
  const { json: started } = await ok(driver.call('startOrder', input))
  const { orderId, claimToken, desktopToken } = started
  const claim = { orderId, claimToken }
  const { json: claimed } = await ok(driver.call('claimOrder', claim))
  const phone = { orderId, challengeToken: claimed.challengeToken }
  const { json: challenge } = await ok(driver.call('getOrderChallenge', phone))
  const proof = signer.prove(challenge.message)
  return { desktop: { orderId, desktopToken }, phone, claim, proof, started, challenge }
}

/** As {@link untilWaiting}, and approves it. */
export async function untilApproved(driver: ContractDriver, input?: object, signer?: Signer): Promise<Going> {
  const order = await untilWaiting(driver, input, signer)
  await ok(driver.call('approveOrder', { ...order.phone, proof: order.proof }))
  return order
}
