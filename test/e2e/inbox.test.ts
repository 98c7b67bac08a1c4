import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, test } from 'vitest'
import { InboxService } from '../../gen/server/countersign/v1/inbox_service_pb.ts'
import { OrderKind, OrderService, OrderStatus } from '../../gen/server/countersign/v1/order_service_pb.ts'
import type { AuditEvent, CountersignOptions, Host } from '../../src/index.ts'
import { startAuth } from '../better-auth/support.ts'
import { makeInstance } from '../core/order/support.ts'
import { signIn } from '../support/flows.ts'
import { memoryStore } from '../support/memory-store.ts'
import { bearer, okay, refusal, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'

const startKey = 'a-start-key-of-thirty-two-characters-or-more'
const orderStartKeys = [`deploy-bot=${startKey}`]
const claimKey = 'a-claim-key-of-a-phone-0001'
const finalizeKey = 'a-finalize-key-of-a-backend'

const started = (options: CountersignOptions = {}) => startService({ orderStartKeys, ...options })

/** Signs a wallet in on its own device. */
async function signedIn(url: string, wallet: TestWallet) {
  const { token, cookie, session } = await signIn(url, wallet)
  return { cookie, userId: session.userId as string, own: bearer(token) }
}

/** What a backend asks a user for. */
function asked(url: string, inboxUserId: string, more: object = {}) {
  const payload = '{"action":{"delete":"repository"}}'
  return { kind: 'sign', inboxUserId, payload, displayTitle: 'Delete it', requester: { origin: url }, ...more }
}

const start = (url: string, body: object) => rest(url, '/cross-device/start', body, bearer(startKey))

test('over REST, an order shows in its user’s inbox, is claimed there, approved, and finalized once', async () => {
  const events: AuditEvent[] = []
  const { url } = await started({ onAuditEvent: (event) => events.push(event) })
  const wallet = makeWallet()
  const { own, userId } = await signedIn(url, wallet)
  const order = okay(await start(url, asked(url, userId, { displaySummary: 'For ever' })))
  const { orderId, desktopToken, expiresAt } = order
  const approvalUrl = `${url}/api/auth/inbox?order=${orderId}`
  expect(order).toMatchObject({ kind: 'sign', status: 'created', approvalUrl })
  expect(order).toMatchObject({ claimUrl: '', claimToken: '', confirmationCode: '' })
  const { orders } = okay(await rest(url, '/inbox/orders', undefined, own))
  expect(orders).toEqual([
    {
      orderId,
      displayTitle: 'Delete it',
      displaySummary: 'For ever',
      startedBy: 'deploy-bot',
      createdAt: expiresAt - 3_600_000,
      expiresAt,
    },
  ])
  const claimed = okay(await rest(url, '/inbox/claim', { orderId, claimKey }, own))
  expect(claimed).toEqual({ ok: true, orderId, status: 'claimed', challengeToken: expect.any(String) })
  const { challengeToken } = claimed
  const challengePath = `/cross-device/challenge?orderId=${orderId}`
  const challenge = okay(await rest(url, challengePath, undefined, bearer(challengeToken)))
  expect(challenge).toMatchObject({ payload: '{"action":{"delete":"repository"}}', displayTitle: 'Delete it' })
  expect(challenge.requester).toEqual({
    origin: url,
    ip: '',
    userAgent: '',
    startedWithKey: true,
    startedBy: 'deploy-bot',
  })
  expect(challenge).not.toHaveProperty('confirmationCode')
  expect(challenge.message).not.toContain('\nCode: ')
  const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(challenge.message) }
  const approved = okay(await rest(url, '/cross-device/approve', { orderId, challengeToken, proof }))
  expect(approved).toEqual({ ok: true, orderId, status: 'approved', finishBy: expiresAt })
  expect(okay(await rest(url, '/inbox/orders', undefined, own)).orders).toEqual([])
  const finalize = (key?: string) =>
    rest(url, '/cross-device/finalize', { orderId, desktopToken, ...(key === undefined ? {} : { finalizeKey: key }) })
  expect(await finalize()).toMatchObject({
    status: 400,
    json: { code: 'INVALID_REQUEST', metadata: { field: 'finalizeKey' } },
  })
  const finalized = okay(await finalize(finalizeKey))
  expect(finalized).toMatchObject({ status: 'finalized', kind: 'sign', proofArtifact: { address: wallet.address } })
  expect(okay(await finalize(finalizeKey))).toEqual(finalized)
  expect(refusal(await finalize('the-key-of-another-process'))).toEqual([409, 'ORDER_FINALIZED'])

  const addressed = events.find(({ type }) => type === 'order.addressed')
  expect(addressed).toMatchObject({ orderId, userId, title: 'Delete it', approvalUrl })
  expect(events.find(({ type }) => type === 'order.started')).toMatchObject({ startedBy: 'deploy-bot' })
  for (const secret of [startKey, desktopToken, challengeToken, claimKey, finalizeKey]) {
    expect(JSON.stringify(events)).not.toContain(secret)
  }
})

test.each([
  ['Connect', (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
  ['gRPC', (baseUrl: string) => createGrpcTransport({ baseUrl })],
] as const)('over %s, by a cookie', async (_, transportTo: (baseUrl: string) => Transport) => {
  const { url } = await started()
  const wallet = makeWallet()
  const { cookie, userId } = await signedIn(url, wallet)
  const [orders, inbox] = [createClient(OrderService, transportTo(url)), createClient(InboxService, transportTo(url))]
  const { orderId, desktopToken } = await orders.startOrder(
    { kind: OrderKind.SIGN, inboxUserId: userId, payload: '{}', requester: { origin: url } },
    { headers: bearer(startKey) },
  )
  const headers = { origin: url, cookie }
  expect((await inbox.listInbox({}, { headers })).orders).toMatchObject([{ orderId, startedBy: 'deploy-bot' }])
  const { challengeToken, status } = await inbox.claimFromInbox({ orderId, claimKey }, { headers })
  expect(status).toBe(OrderStatus.CLAIMED)
  const { message } = await orders.getOrderChallenge({ orderId, challengeToken }, { headers })
  const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
  await orders.approveOrder({ orderId, challengeToken, proof }, { headers })
  const { proofArtifact } = await orders.finalizeOrder({ orderId, desktopToken, finalizeKey })
  expect(proofArtifact).toMatchObject({ address: wallet.address, payload: '{}' })
})

test('with a cookie, the inbox answers to the service’s own origin only, also to a trusted one', async () => {
  const trusted = 'https://app.example'
  const { url } = await started({ trustedOrigins: ['http://localhost', trusted], enforceOrigin: false })
  const { cookie, own, userId } = await signedIn(url, makeWallet())
  const { orderId } = okay(await start(url, asked(url, userId)))
  const look = (headers: Record<string, string>) => rest(url, '/inbox/orders', undefined, headers)
  const claim = (headers: Record<string, string>) => rest(url, '/inbox/claim', { orderId, claimKey }, headers)
  for (const call of [look, claim]) {
    expect(refusal(await call({ cookie, origin: trusted }))).toEqual([403, 'ORIGIN_NOT_TRUSTED'])
    expect(refusal(await call({ cookie, origin: 'https://evil.example' }))).toEqual([403, 'ORIGIN_NOT_TRUSTED'])
    expect((await call({ cookie, origin: url })).status).toBe(200)
    expect((await call({ ...own, origin: trusted })).status).toBe(200)
    expect(refusal(await call({}))).toEqual([401, 'SESSION_REQUIRED'])
  }
})

test('only people of the file approve and finalize: the user, or the wallet itself, is on it', async () => {
  const folder = temporaryFolder()
  const people = join(folder, 'people.json')
  const list = (...entries: readonly string[]) =>
    writeFileSync(people, JSON.stringify(Object.fromEntries(entries.map((entry) => [entry, {}]))))
  const [wallet, other] = [makeWallet(), makeWallet()]
  const [listed, nobody] = [`nimiq:${wallet.address}`, `nimiq:${other.address}`]
  list(listed)
  const { url, service } = await started({ people, admit: 'people' })
  const { own, userId } = await signedIn(url, wallet)
  const { orderId, desktopToken } = okay(await start(url, asked(url, userId)))
  const { challengeToken } = okay(await rest(url, '/inbox/claim', { orderId, claimKey }, own))
  const path = `/cross-device/challenge?orderId=${orderId}`
  const { message } = okay(await rest(url, path, undefined, bearer(challengeToken)))
  const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
  const approve = () => rest(url, '/cross-device/approve', { orderId, challengeToken, proof })
  const finalize = () => rest(url, '/cross-device/finalize', { orderId, desktopToken, finalizeKey })
  list(nobody)
  await service.reload()
  expect(await approve()).toMatchObject({
    status: 403,
    json: { code: 'LOGIN_REFUSED', metadata: { adapterId: 'nimiq', address: wallet.address } },
  })
  expect(refusal(await rest(url, '/inbox/orders', undefined, own))).toEqual([401, 'SESSION_INVALID'])
  // Nor does the claim read the order or decline it.
  expect(refusal(await rest(url, path, undefined, bearer(challengeToken)))).toEqual([401, 'SESSION_INVALID'])
  const declined = await rest(url, '/cross-device/reject', { orderId, challengeToken })
  expect(refusal(declined)).toEqual([401, 'SESSION_INVALID'])
  list(userId)
  await service.reload()
  okay(await approve())
  list(nobody)
  await service.reload()
  expect(refusal(await finalize())).toEqual([403, 'LOGIN_REFUSED'])
  list(listed)
  await service.reload()
  expect(okay(await finalize())).toMatchObject({ status: 'finalized' })
})

describe('a claim counts as long as the session that made it:', () => {
  /** An order that its user's browser has claimed and read, and what its token does then. */
  async function claimed(options: CountersignOptions = {}) {
    const service = await started(options)
    const { url } = service
    const wallet = makeWallet()
    const { own, userId } = await signedIn(url, wallet)
    const { orderId, desktopToken } = okay(await start(url, asked(url, userId)))
    const claim = async (headers: Record<string, string>, key = claimKey) =>
      okay(await rest(url, '/inbox/claim', { orderId, claimKey: key }, headers)).challengeToken as string
    const challengeToken = await claim(own)
    const path = `/cross-device/challenge?orderId=${orderId}`
    const read = (token = challengeToken) => rest(url, path, undefined, bearer(token))
    const { message } = okay(await read())
    const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
    const calls = (token = challengeToken) => ({
      read: () => read(token),
      'hand over': () => rest(url, '/cross-device/hand-over', { orderId, challengeToken: token }),
      approve: () => rest(url, '/cross-device/approve', { orderId, challengeToken: token, proof }),
      reject: () => rest(url, '/cross-device/reject', { orderId, challengeToken: token }),
    })
    const expectOver = async (token = challengeToken) => {
      for (const [name, call] of Object.entries(calls(token))) {
        expect([name, ...refusal(await call())]).toEqual([name, 401, 'SESSION_INVALID'])
      }
    }
    return { ...service, wallet, own, userId, orderId, desktopToken, claim, calls, expectOver }
  }

  test('after its sign-out its token reads, approves and declines nothing, and the user’s next claim does', async () => {
    // It is no wrong token: of these, the limits would let one through.
    const rates = { 'wrong-token': 1, 'order-wrong-token': 1 }
    const { url, wallet, own, claim, calls, expectOver } = await claimed({ rateLimit: true, limits: { rates } })
    okay(await rest(url, '/sign-out', {}, own))
    await expectOver()
    const next = await claim((await signedIn(url, wallet)).own, 'a-claim-key-of-a-phone-0002')
    // The older token is of a session that has ended, and declines nothing any more.
    expect(refusal(await calls().reject())).toEqual([401, 'SESSION_INVALID'])
    okay(await calls(next).read())
    expect(okay(await calls(next).reject()).status).toBe('rejected')
  })

  test('a claim of another live session leaves the older one to decline', async () => {
    const { url, wallet, claim, calls } = await claimed()
    await claim((await signedIn(url, wallet)).own, 'a-claim-key-of-a-phone-0002')
    expect(refusal(await calls().read())).toEqual([401, 'ORDER_TOKEN_INVALID'])
    expect(okay(await calls().reject()).status).toBe('rejected')
  })

  test('what it has handed over ends with it, too', async () => {
    const { url, own, calls, expectOver } = await claimed()
    const { ticket } = okay(await calls()['hand over']())
    const { challengeToken } = okay(await rest(url, '/cross-device/redeem', { ticket }))
    okay(await calls(challengeToken).read())
    okay(await rest(url, '/sign-out', {}, own))
    await expectOver(challengeToken)
  })
})

test('a life of 30 seconds to a day is taken, and no other', async () => {
  const { url } = await started()
  const { userId } = await signedIn(url, makeWallet())
  for (const ttlSeconds of [29, 86_401, 0, -1, 1.5]) {
    const refused = await start(url, asked(url, userId, { ttlSeconds }))
    expect([refused.status, refused.json.code]).toEqual([400, 'INVALID_REQUEST'])
    expect(refused.json.metadata.field).toMatch(/^ttl_?[sS]econds$/)
  }
  for (const ttlSeconds of [30, 86_400]) okay(await start(url, asked(url, userId, { ttlSeconds })))
})

test('a look counts on no limit with a live session, and on that of sessions without one', async () => {
  const { url } = await started({ rateLimit: true, limits: { rates: { session: 2, 'wrong-token': 100 } } })
  const { own } = await signedIn(url, makeWallet())
  const look = (headers: Record<string, string>) => rest(url, '/inbox/orders', undefined, headers)
  for (let n = 0; n < 6; n++) expect((await look(own)).status).toBe(200)
  const refusals = []
  for (let n = 0; n < 4; n++) refusals.push((await look(bearer('css_wrong'))).json.code)
  expect(refusals.slice(0, 2)).toEqual(['SESSION_INVALID', 'SESSION_INVALID'])
  expect(refusals[3]).toBe('RATE_LIMITED')
  expect((await look(own)).status).toBe(200)
})

test('the routes of scanned orders claim nothing of an inbox', async () => {
  const { url } = await started()
  const { userId } = await signedIn(url, makeWallet())
  const { orderId, desktopToken } = okay(await start(url, asked(url, userId)))
  for (const claimToken of ['', desktopToken, startKey, 'undefined']) {
    const claim = await rest(url, '/cross-device/claim', { orderId, claimToken })
    expect(refusal(claim)).toEqual([401, 'ORDER_TOKEN_INVALID'])
    const preview = await rest(url, `/cross-device/preview?orderId=${orderId}`, undefined, bearer(claimToken))
    expect(refusal(preview)).toEqual([401, 'ORDER_TOKEN_INVALID'])
  }
})

test('another user finds no order, and none of its texts', async () => {
  const { url } = await started()
  const [{ userId }, other] = [await signedIn(url, makeWallet()), await signedIn(url, makeWallet())]
  const { orderId } = okay(await start(url, asked(url, userId)))
  expect(okay(await rest(url, '/inbox/orders', undefined, other.own)).orders).toEqual([])
  const claim = await rest(url, '/inbox/claim', { orderId, claimKey }, other.own)
  expect(refusal(claim)).toEqual([404, 'ORDER_NOT_FOUND'])
})

describe('NOT_ENABLED', () => {
  test('with resolveLogin, and with a session host', async () => {
    const store = await memoryStore()
    const sessionHost: Host = makeInstance(store).host
    for (const options of [{ resolveLogin: () => ({ id: 'user' }) }, { store, sessionHost }]) {
      const { url } = await started(options)
      const { own } = await signedIn(url, makeWallet())
      expect(refusal(await start(url, asked(url, 'user')))).toEqual([404, 'NOT_ENABLED'])
      expect(refusal(await rest(url, '/inbox/orders', undefined, own))).toEqual([404, 'NOT_ENABLED'])
      const claim = await rest(url, '/inbox/claim', { orderId: 'o', claimKey }, own)
      expect(refusal(claim)).toEqual([404, 'NOT_ENABLED'])
    }
  })

  test('in Better Auth, which has no route of the inbox', async () => {
    const { url } = await startAuth({ orders: { orderStartKeys } })
    expect(refusal(await start(url, asked(url, 'user')))).toEqual([404, 'NOT_ENABLED'])
    expect((await fetch(`${url}/api/auth/inbox/orders`)).status).toBe(404)
  })
})
