import { Signer } from '../core/order/support.ts'
import type { Auth } from './support.ts'

/** An answer of a Better Auth server. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
  readonly json: any
}

export function codeOf({ status, json }: Answer): [status: number, code: string | undefined] {
  return [status, json.code]
}

/** The server's own origin in tests without a port. */
export const ownOrigin = 'http://localhost:3000'

/** Calls an endpoint as a browser on the server's own origin does. */
export async function call(
  auth: Pick<Auth, 'handler'>,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await auth.handler(
    new Request(`${ownOrigin}/api/auth${path}`, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { origin: ownOrigin, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    }),
  )
  const text = await response.text()
  return { status: response.status, headers: response.headers, json: text === '' ? undefined : JSON.parse(text) }
}

/** A fresh challenge, proved by a key. */
export async function proofOf(
  auth: Pick<Auth, 'handler'>,
  signer: Signer,
): Promise<{ nonceId: string; publicKeyHex: string; signatureHex: string }> {
  const { json } = await call(auth, '/wallet/nonce', {})
  return { nonceId: json.nonceId, ...signer.prove(json.message) }
}

/** A fresh challenge for adding a wallet to the user of these headers, proved by that wallet's key. */
export async function linkProofOf(
  auth: Pick<Auth, 'handler'>,
  signer: Signer,
  headers: Record<string, string>,
): Promise<{ nonceId: string; publicKeyHex: string; signatureHex: string }> {
  const { status, json } = await call(auth, '/wallet/nonce', { purpose: 'link' }, headers)
  if (status !== 200) throw new Error(JSON.stringify(json))
  return { nonceId: json.nonceId, ...signer.prove(json.message) }
}

/** Signs in; a refusal is an answer, too. */
export async function signIn(
  auth: Pick<Auth, 'handler'>,
  signer: Signer = new Signer(),
  headers: Record<string, string> = {},
): Promise<Answer> {
  return await call(auth, '/wallet/verify', await proofOf(auth, signer), headers)
}

/** The session cookie that an answer sets, as a browser sends it back. */
export function cookieOf({ headers }: Answer): string {
  return headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

/** The header of the token that an answer hands out. */
export function bearerOf({ json }: Answer): { authorization: string } {
  return { authorization: `Bearer ${json.token}` }
}

/** An order whose challenge the phone has read. */
export interface ReadOrder {
  readonly desktop: { readonly orderId: string; readonly desktopToken: string }
  readonly phone: { readonly orderId: string; readonly challengeToken: string }
  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
  readonly challenge: any
}

/** Starts an order, claims it and reads its challenge. */
export async function readOrder(auth: Pick<Auth, 'handler'>, start: object = {}): Promise<ReadOrder> {
  const started = await answered(call(auth, '/cross-device/start', { kind: 'login', ...start }))
  const { orderId, claimToken, desktopToken } = started
  const { challengeToken } = await answered(call(auth, '/cross-device/claim', { orderId, claimToken }))
  const phone = { orderId, challengeToken }
  const challenge = await answered(challengeOf(auth, phone))
  return { desktop: { orderId, desktopToken }, phone, challenge }
}

/** Reads an order's challenge; a refusal is an answer, too. */
export async function challengeOf(
  auth: Pick<Auth, 'handler'>,
  { orderId, challengeToken }: ReadOrder['phone'],
): Promise<Answer> {
  const headers = { authorization: `Bearer ${challengeToken}` }
  return await call(auth, `/cross-device/challenge?orderId=${orderId}`, undefined, headers)
}

/** The JSON of a call that has to succeed. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
export async function answered(pending: Promise<Answer>): Promise<any> {
  const { status, json } = await pending
  if (status !== 200) throw new Error(JSON.stringify(json))
  return json
}

/** An approved login order, for the desktop to finalize. */
export async function approvedOrder(
  auth: Pick<Auth, 'handler'>,
  signer: Signer = new Signer(),
): Promise<{ orderId: string; desktopToken: string }> {
  const { desktop, phone, challenge } = await readOrder(auth)
  await answered(call(auth, '/cross-device/approve', { ...phone, proof: signer.prove(challenge.message) }))
  return desktop
}

/** How many rows each of the models has. */
export async function countRows(auth: Pick<Auth, '$context'>, models: readonly string[]): Promise<number[]> {
  const { adapter } = await auth.$context
  return await Promise.all(models.map((model) => adapter.count({ model })))
}
