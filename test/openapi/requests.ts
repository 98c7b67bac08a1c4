import { expect } from 'vitest'
import { makeComputer } from '../support/computer.ts'
import type { OpenApiContract, ReceivedAnswer } from '../support/openapi.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

/** What of a request is not in its operation. */
export interface Sending {
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Readonly<Record<string, unknown>>
}

/** Makes a call, by the name of its operation. */
export type Call = (
  operationId: string,
  sending?: Sending,
  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
) => Promise<ReceivedAnswer & { readonly body: any }>

/** Fetches, and expects every answer, and every request that succeeds, to be as the document has it. */
export function checkedFetch(contract: OpenApiContract): (request: Request) => Promise<Response> {
  return async (request) => {
    const { pathname, search } = new URL(request.url)
    const operation = contract.find(request.method, pathname)
    if (operation === undefined) throw new Error(`the document has no operation ${request.method} ${pathname}`)
    const sent = await request.clone().text()
    const response = await fetch(request)
    const { status, headers } = response
    // A stream may not end before its reader leaves.
    const isStream = headers.get('content-type') === 'text/event-stream'
    const received = isStream ? 'a stream' : await response.clone().text()
    const answer = { status, headers, body: isStream ? received : parsed(received) }
    expect(contract.problemsOfAnswer(operation, answer), `${operation.operationId}: ${received}`).toEqual([])
    if (response.ok) {
      const asked = { query: search.slice(1), headers: request.headers, body: parsed(sent) }
      expect(contract.problemsOfRequest(operation, asked), `${operation.operationId}: ${sent}`).toEqual([])
    }
    return response
  }
}

function parsed(text: string): unknown {
  return text === '' ? undefined : JSON.parse(text)
}

/** Makes the calls of a service through {@link checkedFetch}. */
export function checkedCalls(contract: OpenApiContract, url: string): Call {
  const send = checkedFetch(contract)
  return async (operationId, { query = {}, headers = {}, body } = {}) => {
    const operation = contract.operations.find((one) => one.operationId === operationId)
    if (operation === undefined) throw new Error(`the document has no operation ${operationId}`)
    const text = new URLSearchParams(query).toString()
    const request = new Request(`${url}${operation.path}${text === '' ? '' : `?${text}`}`, {
      method: operation.httpMethod,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const response = await send(request)
    return { status: response.status, headers: response.headers, body: parsed(await response.text()) }
  }
}

/** The settings of services that take each of {@link goodRequests}. */
export const settings = { confirmationCode: 'return', accessTokens: { audiences: ['api'] } } as const

const startKey = 'a-start-key-for-tests-and-for-nothing-else'

/** Settings that only this operation needs: with start keys, no order starts without one. */
export function settingsOf(operationId: string): { readonly orderStartKeys?: readonly string[] } {
  return operationId === 'claimFromInbox' ? { orderStartKeys: [startKey] } : {}
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Makes a call that has to succeed, and resolves with what it answers. */
async function done(call: Call, ...[operationId, sending]: Parameters<Call>) {
  const { status, body } = await call(operationId, sending)
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}

/** Signs in with a new wallet, and resolves with the session's token as a header. */
export async function signedIn(call: Call, wallet = makeWallet()): Promise<{ authorization: string }> {
  const { token } = await done(call, 'verifySignIn', {
    body: proofOf(wallet, await done(call, 'issueNonce', { body: {} })),
  })
  return bearer(token)
}

/** An order, with what either side holds of it. */
export interface Order {
  readonly orderId: string
  readonly claimToken: string
  readonly desktopToken: string
}

/** Starts an order. */
export async function started(call: Call, details: object = {}): Promise<Order> {
  const { orderId, claimToken, desktopToken } = await done(call, 'startOrder', { body: { kind: 'login', ...details } })
  return { orderId, claimToken, desktopToken }
}

/** Starts an order, and claims it. */
export async function claimed(call: Call, details?: object): Promise<Order & { readonly challengeToken: string }> {
  const order = await started(call, details)
  const { orderId, claimToken } = order
  const { challengeToken } = await done(call, 'claimOrder', { body: { orderId, claimToken } })
  return { ...order, challengeToken }
}

/** Starts an order, and signs its challenge. */
export async function signed(call: Call, details?: object, wallet: TestWallet = makeWallet()) {
  const order = await claimed(call, details)
  const { orderId, challengeToken } = order
  const challenge = await done(call, 'getOrderChallenge', { query: { orderId }, headers: bearer(challengeToken) })
  const { nonceId: _, ...proof } = proofOf(wallet, { nonceId: '', message: challenge.message })
  return { ...order, challenge, approval: { orderId, challengeToken, proof: { ...proof, address: wallet.address } } }
}

/** Starts an order, and approves it. */
export async function approved(call: Call, details?: object) {
  const { approval, challengeToken, orderId, desktopToken } = await signed(call, details)
  const body = { ...approval, rememberComputer: true }
  const { returnCode } = await done(call, 'approveOrder', { body })
  return { orderId, desktopToken, challengeToken, returnCode }
}

/** Signs in by an order from a computer that is known from then on. */
async function remembered(call: Call): Promise<{ authorization: string }> {
  const computer = await makeComputer()
  const { challengeToken: _, ...order } = await approved(call, { computerKey: computer.key })
  const body = { ...order, computerProof: await computer.prove(order) }
  const { token } = await done(call, 'finalizeOrder', { body })
  return bearer(token)
}

/** Makes what links a new wallet to the user of a session. */
async function linking(call: Call, headers: { authorization: string }) {
  const { nonceId, ...proof } = proofOf(
    makeWallet(),
    await done(call, 'issueNonce', { headers, body: { purpose: 'link' } }),
  )
  return { nonceId, proof }
}

/** What a sign order can say. */
export const signOrder = {
  kind: 'sign',
  adapterId: 'nimiq',
  returnTo: '/orders/7?paid=no',
  displayTitle: 'Order 7',
  displaySummary: 'Two boxes of Döner, 12 €',
  payload: '{"b":[1,2.5],"a":"x"}',
}

/** A request that succeeds, for each operation; made anew each time. */
export const goodRequests: Readonly<Record<string, (call: Call) => Promise<Sending>>> = {
  issueNonce: async () => ({ body: { appName: 'Countersign', purpose: 'sign_in', adapterId: 'ed25519' } }),
  async verifySignIn(call) {
    const wallet = makeWallet()
    const proof = proofOf(wallet, await done(call, 'issueNonce', { body: {} }))
    return { body: { ...proof, address: wallet.address, adapterId: 'nimiq' } }
  },
  listWallets: async (call) => ({ headers: await signedIn(call) }),
  async linkWallet(call) {
    const headers = await signedIn(call)
    return { headers, body: await linking(call, headers) }
  },
  async unlinkWallet(call) {
    const headers = await signedIn(call)
    const { wallet } = await done(call, 'linkWallet', { headers, body: await linking(call, headers) })
    return { headers, body: { adapterId: wallet.adapterId, address: wallet.address } }
  },
  startOrder: async () => ({ body: signOrder }),
  async previewOrder(call) {
    const { orderId, claimToken } = await started(call, signOrder)
    return { query: { orderId }, headers: bearer(claimToken) }
  },
  async claimOrder(call) {
    const { orderId, claimToken } = await started(call)
    return { body: { orderId, claimToken, claimKey: 'k'.repeat(43) } }
  },
  async getOrderChallenge(call) {
    const { orderId, challengeToken } = await claimed(call, signOrder)
    return { query: { orderId, adapterId: 'nimiq' }, headers: bearer(challengeToken) }
  },
  async approveOrder(call) {
    const { approval } = await signed(call)
    return { body: { ...approval, rememberComputer: false } }
  },
  async rejectOrder(call) {
    const { orderId, challengeToken } = await claimed(call)
    return { body: { orderId, challengeToken } }
  },
  async cancelOrder(call) {
    const { orderId, desktopToken } = await started(call)
    return { body: { orderId, desktopToken } }
  },
  async finalizeOrder(call) {
    const { orderId, desktopToken, returnCode } = await approved(call)
    return { body: { orderId, desktopToken, returnCode } }
  },
  async watchOrder(call) {
    const { orderId, desktopToken } = await approved(call)
    const headers = { ...bearer(desktopToken), accept: 'application/json' }
    return { query: { orderId, after: '2', wait: '0' }, headers }
  },
  async handOverOrder(call) {
    const { orderId, challengeToken } = await claimed(call)
    return { body: { orderId, challengeToken } }
  },
  async redeemHandOver(call) {
    const { orderId, challengeToken } = await claimed(call)
    const { ticket } = await done(call, 'handOverOrder', { body: { orderId, challengeToken } })
    return { body: { ticket, claimKey: 'k'.repeat(43) } }
  },
  listInbox: async (call) => ({ headers: await signedIn(call) }),
  async claimFromInbox(call) {
    const { origin } = await done(call, 'issueNonce', { body: {} })
    const headers = await signedIn(call)
    const { session } = await done(call, 'getCurrentSession', { headers })
    const { adapterId: _, ...order } = signOrder
    const body = { ...order, inboxUserId: session.userId, ttlSeconds: 600, requester: { origin } }
    const { orderId } = await done(call, 'startOrder', { headers: bearer(startKey), body })
    return { headers, body: { orderId, claimKey: 'k'.repeat(43) } }
  },
  getCurrentSession: async (call) => ({ headers: await signedIn(call) }),
  signOut: async (call) => ({ headers: await signedIn(call) }),
  listSessions: async (call) => ({ headers: await remembered(call) }),
  async revokeSession(call) {
    const wallet = makeWallet()
    await signedIn(call, wallet)
    const headers = await signedIn(call, wallet)
    const { sessions } = await done(call, 'listSessions', { headers })
    return { headers, body: { sessionId: sessions.find(({ current }: { current: boolean }) => !current).id } }
  },
  revokeOtherSessions: async (call) => ({ headers: await signedIn(call), body: {} }),
  listKnownComputers: async (call) => ({ headers: await remembered(call) }),
  async forgetKnownComputer(call) {
    const headers = await remembered(call)
    const { computers } = await done(call, 'listKnownComputers', { headers })
    return { headers, body: { id: computers[0].id } }
  },
  listConnectedApps: async (call) => ({ headers: await signedIn(call) }),
  disconnectApp: async (call) => ({ headers: await signedIn(call), body: { clientId: 'shop' } }),
  issueAccessToken: async (call) => ({ headers: await signedIn(call), body: { audience: 'api' } }),
  getOptions: async () => ({}),
  getHealth: async () => ({}),
  getReadiness: async () => ({}),
  getKeySet: async () => ({}),
}
