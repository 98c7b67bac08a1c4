import { createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, test } from 'vitest'
import { OrderKind, OrderService, OrderStatus } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { createCountersignClient, type OrderEvent } from '../../src/browser/client/index.ts'
import type { Host } from '../../src/index.ts'
import { startAuth } from '../better-auth/support.ts'
import { makeInstance } from '../core/order/support.ts'
import { approveOrder, signIn } from '../support/flows.ts'
import { memoryStore } from '../support/memory-store.ts'
import { bearer, okay, refusal, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'

test('over REST, a wallet of another device is added, and taken back there', async () => {
  const { url } = await startService()
  const [own, added] = [makeWallet(), makeWallet()]
  const { token, session } = await signIn(url, own)
  const started = okay(await rest(url, '/cross-device/start', { kind: 'link' }, bearer(token)))
  expect(started).toMatchObject({ kind: 'link', confirmationCode: '' })
  const { returnCode, challengeToken, challenge } = await approveOrder(url, started, { wallet: added })
  expect(challenge).toMatchObject({ kind: 'link', action: 'auth.link', sessionAccount: own.address })
  const { orderId, desktopToken } = started
  const events = await rest(url, `/cross-device/events?orderId=${orderId}&wait=1`, undefined, {
    ...bearer(desktopToken),
    accept: 'application/json',
  })
  expect(okay(events).events).toMatchObject([
    { status: 'approved', kind: 'link', adapterId: 'nimiq', address: added.address, returnCodeRequired: true },
  ])
  const finalize = (headers: Record<string, string>) =>
    rest(url, '/cross-device/finalize', { orderId, desktopToken, returnCode }, headers)
  expect(refusal(await finalize({}))).toEqual([401, 'SESSION_REQUIRED'])
  expect(okay(await finalize(bearer(token)))).toEqual({
    ok: true,
    orderId,
    status: 'finalized',
    kind: 'link',
    redirectTo: '/',
    wallet: {
      adapterId: 'nimiq',
      address: added.address,
      publicKeyHex: added.publicKeyHex,
      linkedAt: expect.any(Number),
      current: false,
    },
  })
  expect((await signIn(url, added)).session.userId).toBe(session.userId)
  const takenBack = okay(await rest(url, '/cross-device/reject', { orderId, challengeToken }))
  expect(takenBack).toEqual({ ok: true, orderId, status: 'finalized', walletUnlinked: true })
  expect((await signIn(url, added)).session.userId).not.toBe(session.userId)
})

test.each([
  ['Connect', (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
  ['gRPC', (baseUrl: string) => createGrpcTransport({ baseUrl })],
] as const)('over %s, by a cookie', async (_, transportTo: (baseUrl: string) => Transport) => {
  const { url } = await startService()
  const [own, added] = [makeWallet(), makeWallet()]
  const { cookie } = await signIn(url, own)
  const orders = createClient(OrderService, transportTo(url))
  const headers = { origin: url, cookie }
  const started = await orders.startOrder({ kind: OrderKind.LINK }, { headers })
  const { returnCode } = await approveOrder(url, started, { wallet: added })
  const { orderId, desktopToken } = started
  for await (const event of orders.watchOrder({ orderId, desktopToken }, { headers })) {
    expect(event).toMatchObject({ status: OrderStatus.APPROVED, adapterId: 'nimiq', address: added.address })
    break
  }
  const request = { orderId, desktopToken, returnCode }
  const { wallet, kind } = await orders.finalizeOrder(request, { headers })
  expect(kind).toBe(OrderKind.LINK)
  expect(wallet).toMatchObject({ address: added.address, current: false })
  const foreign = { headers: { origin: 'https://evil.example', cookie } }
  await expect(orders.startOrder({ kind: OrderKind.LINK }, foreign)).rejects.toThrow(/not trusted/)
})

test('the client sends the session that it has, and its computer’s key is no part of the order', async () => {
  const { url } = await startService()
  const [own, added] = [makeWallet(), makeWallet()]
  const items = new Map<string, string>()
  const storage = {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  }
  const client = createCountersignClient({ baseUrl: url, storage })
  await expect(client.startOrder({ kind: 'link' })).rejects.toMatchObject({ code: 'SESSION_REQUIRED' })
  await client.signInWallet({ wallet: { sign: async (text) => ({ ...own, signatureHex: own.sign(text) }) } })
  const order = await client.startOrder({ kind: 'link' })
  const { returnCode } = await approveOrder(url, order, { wallet: added })
  let approved: OrderEvent | undefined
  for await (const event of client.watchOrder(order)) {
    approved = event
    break
  }
  expect(approved).toMatchObject({ status: 'approved', adapterId: 'nimiq', address: added.address })
  const finalized = await client.finalizeOrder(order, { returnCode })
  expect(finalized).toMatchObject({ kind: 'link', wallet: { address: added.address } })
  expect(await client.listWallets()).toHaveLength(2)
})

describe('NOT_ENABLED', () => {
  test('with resolveLogin, and with a session host', async () => {
    const store = await memoryStore()
    const sessionHost: Host = makeInstance(store).host
    for (const options of [{ resolveLogin: () => ({ id: 'user' }) }, { store, sessionHost }]) {
      const { url } = await startService(options)
      const { token } = await signIn(url, makeWallet())
      const start = await rest(url, '/cross-device/start', { kind: 'link' }, bearer(token))
      expect(refusal(start)).toEqual([404, 'NOT_ENABLED'])
    }
  })

  test('in Better Auth', async () => {
    const { url } = await startAuth()
    const start = await rest(url, '/cross-device/start', { kind: 'link' }, { origin: url })
    expect(refusal(start)).toEqual([404, 'NOT_ENABLED'])
  })
})

test('calls without a session that may add a wallet take nothing from the users of their network', async () => {
  const orderStartKeys = ['k'.repeat(32)]
  const rates = { 'start-link': 3, session: 60 }
  const { url } = await startService({ orderStartKeys, rateLimit: true, limits: { rates } })
  const { token } = await signIn(url, makeWallet())
  const link = (headers: Record<string, string>) => rest(url, '/cross-device/start', { kind: 'link' }, headers)
  for (let n = 0; n < 40; n++) expect(refusal(await link({ origin: url }))).toEqual([401, 'SESSION_REQUIRED'])
  expect(refusal(await link({ origin: 'https://evil.example' }))).toEqual([403, 'ORIGIN_NOT_TRUSTED'])
  for (let n = 0; n < 3; n++) okay(await link(bearer(token)))
  const refused = await link(bearer(token))
  expect([refused.status, refused.json.metadata]).toEqual([429, { limit: 'start-link' }])
  // The orders of the backend have none.
  const order = { kind: 'sign', requester: { origin: url } }
  okay(await rest(url, '/cross-device/start', order, bearer(orderStartKeys[0] as string)))
  // Such calls are not free either.
  const answers = []
  for (let n = 0; n < 30; n++) answers.push((await link({ origin: url })).json)
  expect(answers.at(-1)).toMatchObject({ code: 'RATE_LIMITED', metadata: { limit: 'session' } })
  // Nor are those that a foreign page sends.
  for (let n = 0; n < 60; n++) answers.push((await link({ origin: 'https://evil.example' })).json)
  expect(answers.at(-1)).toMatchObject({ code: 'RATE_LIMITED', metadata: { limit: 'session' } })
})

test('calls for them take nothing from the other orders of their network, without start keys', async () => {
  const { url } = await startService({ rateLimit: true, limits: { rates: { 'start-order': 2 } } })
  const { token } = await signIn(url, makeWallet())
  const start = (kind: string, headers: Record<string, string> = {}) =>
    rest(url, '/cross-device/start', { kind }, headers)
  for (let n = 0; n < 4; n++) expect(refusal(await start('link'))).toEqual([401, 'SESSION_REQUIRED'])
  for (let n = 0; n < 4; n++) okay(await start('link', bearer(token)))
  for (let n = 0; n < 2; n++) okay(await start('login'))
  expect((await start('sign')).json.metadata).toEqual({ limit: 'start-order' })
  okay(await start('link', bearer(token)))
})
