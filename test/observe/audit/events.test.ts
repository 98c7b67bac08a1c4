import { describe, expect, test, vi } from 'vitest'
import { createLogger } from '../../../src/base/log.ts'
import type { AuditEvent, AuditEventType } from '../../../src/index.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { makeComputer } from '../../support/computer.ts'
import { type RestAnswer, rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { makeWallet, type TestWallet } from '../../support/wallet.ts'
import { allTypes } from './types.ts'

const app = { origin: 'https://app.example', 'user-agent': 'a browser of the tests' }
const caller = { ip: '127.0.0.1', origin: app.origin, userAgent: app['user-agent'] }
const bearer = (token: string) => ({ ...app, authorization: `Bearer ${token}` })

/** The types that a test has seen. */
const seen = new Set<AuditEventType>()

/** A service, and what it tells. */
interface Told {
  readonly url: string
  readonly events: AuditEvent[]
  /** The lines of its log. */
  readonly log: string[]
  /** Forgets what was told so far. */
  clear(): void
  types(): AuditEventType[]
  call(path: string, body?: unknown, headers?: Record<string, string>): Promise<RestAnswer['json']>
}

async function tellingService(options: CountersignOptions = {}): Promise<Told> {
  const events: AuditEvent[] = []
  const log: string[] = []
  const onAuditEvent = (event: AuditEvent): void => {
    seen.add(event.type)
    events.push(event)
  }
  const logger = createLogger({ write: (line) => log.push(line) }, 'debug')
  const { url } = await startService({ trustedOrigins: [app.origin], logger, onAuditEvent, ...options })
  const call: Told['call'] = async (path, body, headers = app) => (await rest(url, path, body, headers)).json
  return { url, events, log, clear: () => void events.splice(0), types: () => events.map(({ type }) => type), call }
}

interface SignedIn {
  readonly token: string
  readonly session: { readonly id: string; readonly userId: string }
}

async function signIn({ call }: Told, wallet: TestWallet = makeWallet()): Promise<SignedIn> {
  const { nonceId, message } = await call('/wallet/nonce', {})
  const { publicKeyHex, address } = wallet
  return await call('/wallet/verify', { nonceId, publicKeyHex, signatureHex: wallet.sign(message), address })
}

interface Order {
  readonly orderId: string
  readonly desktopToken: string
  readonly claimToken: string
  readonly challengeToken: string
  readonly confirmationCode: string
  readonly message: string
}

/** Starts an order, and reads its challenge on the phone. */
async function readOrder({ call }: Told, start: Record<string, unknown> = {}): Promise<Order> {
  const order = await call('/cross-device/start', { kind: 'login', ...start })
  const { orderId, claimToken } = order
  const { challengeToken } = await call('/cross-device/claim', { orderId, claimToken })
  const { message } = await call(`/cross-device/challenge?orderId=${orderId}`, undefined, bearer(challengeToken))
  return { ...order, challengeToken, message }
}

async function approve(
  { call }: Told,
  { orderId, challengeToken, message }: Order,
  wallet: TestWallet,
  more: Record<string, unknown> = {},
): Promise<RestAnswer['json']> {
  const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message), address: wallet.address }
  return await call('/cross-device/approve', { orderId, challengeToken, proof, ...more })
}

describe('audit events', () => {
  test('a sign-in is told once, with user, session, wallet and caller', async () => {
    const told = await tellingService()
    const wallet = makeWallet()
    const { session } = await signIn(told, wallet)
    expect(told.events).toEqual([
      {
        ...caller,
        type: 'sign_in.succeeded',
        id: expect.stringMatching(/^[\da-f-]{36}$/),
        time: expect.any(Number),
        userId: session.userId,
        sessionId: session.id,
        adapterId: 'nimiq',
        address: wallet.address,
        publicKeyHex: wallet.publicKeyHex,
      },
    ])
    expect(Math.abs(Date.now() - told.events[0]!.time)).toBeLessThan(60_000)
  })

  test('each step of an order is told once, also after retries', async () => {
    const told = await tellingService({ confirmationCode: 'return' })
    const [wallet, computer] = [makeWallet(), await makeComputer()]
    const claimKey = 'a-key-that-the-phone-made-and-that-nobody-else-knows'
    const order = await told.call('/cross-device/start', { kind: 'login', computerKey: computer.key })
    const { orderId, claimToken, desktopToken } = order
    const claim = async () => await told.call('/cross-device/claim', { orderId, claimToken, claimKey })
    const { challengeToken } = await claim()
    await claim()
    const challenge = `/cross-device/challenge?orderId=${orderId}`
    const { message } = await told.call(challenge, undefined, bearer(challengeToken))
    await told.call(challenge, undefined, bearer(challengeToken))
    const approval = { ...order, challengeToken, message }
    const { returnCode } = await approve(told, approval, wallet, { rememberComputer: true })
    await approve(told, approval, wallet, { rememberComputer: true })
    const computerProof = await computer.prove({ orderId, desktopToken })
    const finalize = async () =>
      await told.call('/cross-device/finalize', { orderId, desktopToken, returnCode, computerProof })
    const { session } = await finalize()
    await finalize()

    expect(told.types()).toEqual([
      'order.started',
      'order.claimed',
      'order.challenge_read',
      'order.approved',
      'order.finalized',
      'sign_in.succeeded',
      'computer.remembered',
      'sign_in.succeeded',
    ])
    const identity = { adapterId: 'nimiq', address: wallet.address, publicKeyHex: wallet.publicKeyHex }
    const login = { userId: session.userId, sessionId: session.id }
    expect(told.events).toMatchObject([
      { ...caller, orderId, kind: 'login' },
      { ...caller, orderId, kind: 'login' },
      { ...caller, orderId, kind: 'login' },
      { ...caller, orderId, kind: 'login', ...identity },
      { ...caller, orderId, kind: 'login', ...identity, ...login },
      { ...caller, orderId, ...identity, ...login, repeated: false },
      { ...caller, orderId, ...identity, computerId: expect.any(String) },
      { ...caller, orderId, ...identity, ...login, repeated: true },
    ])
    expect(new Set(told.events.map(({ id }) => id)).size).toBe(told.events.length)
  })

  test('wrong codes are told with the tries left, and the third ends the order', async () => {
    const told = await tellingService({ confirmationCode: 'return' })
    const order = await readOrder(told)
    const { returnCode } = await approve(told, order, makeWallet())
    told.clear()
    const { orderId, desktopToken } = order
    const wrong = { orderId, desktopToken, returnCode: returnCode === '000000' ? '000001' : '000000' }
    for (let tries = 0; tries < 3; tries++) await told.call('/cross-device/finalize', wrong)
    const code = { type: 'order.code_refused', orderId, kind: 'login' }
    expect(told.events).toMatchObject([
      { ...code, triesLeft: 2 },
      { ...code, triesLeft: 1 },
      { ...code, triesLeft: 0 },
      { type: 'order.rejected', orderId: order.orderId, by: 'wrong codes' },
    ])
  })

  test('who rejects an order, and who cancels one, is told', async () => {
    const told = await tellingService()
    const [rejected, cancelled] = [await readOrder(told), await readOrder(told)]
    told.clear()
    const { orderId, challengeToken } = rejected
    await told.call('/cross-device/reject', { orderId, challengeToken })
    const { orderId: other, desktopToken } = cancelled
    await told.call('/cross-device/cancel', { orderId: other, desktopToken })
    expect(told.events).toMatchObject([
      { type: 'order.rejected', orderId, by: 'phone' },
      { type: 'order.cancelled', orderId: other },
    ])
  })

  test('handing an order over is told, and that another browser goes on with it', async () => {
    const told = await tellingService()
    const { orderId, challengeToken } = await readOrder(told)
    told.clear()
    const { ticket } = await told.call('/cross-device/hand-over', { orderId, challengeToken })
    await told.call('/cross-device/redeem', { ticket })
    await told.call('/cross-device/redeem', { ticket })
    expect(told.types()).toEqual(['order.handed_over', 'order.continued', 'call.refused'])
    expect(told.events[2]).toMatchObject({ reason: 'HANDOVER_INVALID' })
  })

  test('taking an order back is told, with the session that it ends', async () => {
    const told = await tellingService()
    const order = await readOrder(told)
    await approve(told, order, makeWallet())
    const { orderId, desktopToken, challengeToken } = order
    const { session } = await told.call('/cross-device/finalize', { orderId, desktopToken })
    told.clear()
    await told.call('/cross-device/reject', { orderId, challengeToken })
    await told.call('/cross-device/reject', { orderId, challengeToken })
    const login = { orderId, userId: session.userId, sessionId: session.id }
    expect(told.events).toMatchObject([
      { type: 'order.taken_back', ...login },
      { type: 'session.ended', by: 'take-back', ...login },
    ])
    expect(told.events).toHaveLength(2)
  })

  test('who started an order with a start key is the requester that the backend names', async () => {
    const key = 'start-key-of-the-tests-which-is-long-enough'
    const told = await tellingService({ orderStartKeys: [key] })
    const requester = { origin: app.origin, ip: '203.0.113.7', userAgent: 'a desktop' }
    await told.call('/cross-device/start', { kind: 'login', requester }, bearer(key))
    await told.call('/cross-device/start', { kind: 'login', requester }, app)
    expect(told.events).toMatchObject([
      { type: 'order.started', startedWithKey: true, ip: '203.0.113.7', userAgent: 'a desktop' },
      { type: 'call.refused', reason: 'START_KEY_REQUIRED', method: 'countersign.v1.OrderService/StartOrder' },
    ])
  })

  test('an order for an inbox is addressed to its user, by the name of the start key', async () => {
    const key = 'start-key-of-the-tests-which-is-long-enough'
    const told = await tellingService({ orderStartKeys: [`bot=${key}`] })
    const { userId } = (await signIn(told)).session
    told.clear()
    const order = { kind: 'sign', payload: '{}', inboxUserId: userId, requester: { origin: app.origin } }
    const { orderId } = await told.call('/cross-device/start', { ...order, displayTitle: 'Pay 3 €' }, bearer(key))
    const approvalUrl = `${told.url}/api/auth/inbox?order=${orderId}`
    expect(told.events).toMatchObject([
      { type: 'order.started', orderId, kind: 'sign', startedWithKey: true, startedBy: 'bot' },
      { type: 'order.addressed', orderId, userId, title: 'Pay 3 €', approvalUrl },
    ])
  })

  test('the end of a session is told with how it ended', async () => {
    const told = await tellingService()
    const wallet = makeWallet()
    const [first, second, third] = [await signIn(told, wallet), await signIn(told, wallet), await signIn(told, wallet)]
    told.clear()
    await told.call('/sign-out', {}, bearer(third.token))
    await told.call('/sign-out', {}, bearer(third.token))
    await revokeOthers(told.url, first.token)
    const { userId } = first.session
    expect(told.events).toMatchObject([
      { type: 'session.ended', by: 'sign-out', userId, sessionId: third.session.id },
      { type: 'session.ended', by: 'user', userId, sessionId: second.session.id, bySessionId: first.session.id },
      { type: 'computer.forgotten', userId, sessionId: first.session.id },
    ])
  })

  test('linking and unlinking a wallet is told, with the sessions that end', async () => {
    const told = await tellingService()
    const [wallet, added] = [makeWallet(), makeWallet()]
    const { token, session } = await signIn(told, wallet)
    told.clear()
    const { nonceId, message } = await told.call('/wallet/nonce', { purpose: 'link' }, bearer(token))
    const proof = { publicKeyHex: added.publicKeyHex, signatureHex: added.sign(message), address: added.address }
    await told.call('/wallet/link', { nonceId, proof }, bearer(token))
    const other = await signIn(told, added)
    await told.call('/wallet/unlink', { adapterId: 'nimiq', address: added.address }, bearer(token))
    const { userId, id: sessionId } = session
    expect(told.events).toMatchObject([
      { type: 'wallet.linked', ...caller, userId, sessionId, adapterId: 'nimiq', address: added.address },
      { type: 'sign_in.succeeded', userId, address: added.address },
      { type: 'session.ended', by: 'unlink', userId, sessionId: other.session.id },
      { type: 'wallet.unlinked', ...caller, userId, sessionId, adapterId: 'nimiq', address: added.address },
    ])
  })

  test('a refused signature is told with the wallet that was claimed', async () => {
    const told = await tellingService()
    const [wallet, victim] = [makeWallet(), makeWallet()]
    const { nonceId, message } = await told.call('/wallet/nonce', {})
    const { publicKeyHex, address } = victim
    await told.call('/wallet/verify', { nonceId, publicKeyHex, signatureHex: wallet.sign(message), address })
    expect(told.events).toMatchObject([{ ...caller, type: 'challenge.refused', reason: 'SIGNATURE_INVALID', address }])
    // The second of the same address and reason is told a second later.
    const order = await readOrder(told)
    told.clear()
    await approve(told, order, { ...victim, sign: () => wallet.sign(order.message) })
    await vi.waitFor(() => expect(told.events).not.toEqual([]), { timeout: 20_000 })
    expect(told.events).toMatchObject([
      {
        ...caller,
        type: 'challenge.refused',
        reason: 'SIGNATURE_INVALID',
        method: 'countersign.v1.OrderService/ApproveOrder',
        orderId: order.orderId,
        address,
      },
    ])
  })

  test('of refusals that an address repeats, one a second is told, with their number', async () => {
    const told = await tellingService()
    const guess = async () => {
      const body = { orderId: 'no order', claimToken: 'wrong' }
      return await told.call('/cross-device/claim', body, { origin: 'https://elsewhere.example' })
    }
    const { orderId } = await readOrder(told)
    told.clear()
    const wrong = async () => await told.call('/cross-device/claim', { orderId, claimToken: `csc_${'x'.repeat(43)}` })
    for (let count = 0; count < 10; count++) await wrong()
    await guess()
    expect(told.events).toMatchObject([{ type: 'call.refused', reason: 'ORDER_TOKEN_INVALID', orderId }])
    await vi.waitFor(() => expect(told.events).toHaveLength(2), { timeout: 20_000 })
    expect(told.events[1]).toMatchObject({ reason: 'ORDER_TOKEN_INVALID', orderId, repeated: 9 })
  })

  test('a client that goes beyond its allowance is told', async () => {
    const told = await tellingService({ rateLimit: true })
    for (let count = 0; count <= 300; count++) await told.call('/wallet/nonce', {})
    expect(told.events.slice(0, 1)).toMatchObject([
      { ...caller, type: 'limit.hit', reason: 'RATE_LIMITED', method: 'countersign.v1.SignInService/IssueNonce' },
    ])
  })

  test('the log has each event in one line, refusals in the line of the call', async () => {
    const told = await tellingService()
    const order = await readOrder(told)
    await approve(told, order, { ...makeWallet(), sign: () => '00'.repeat(64) })
    const lines = told.log.map((line) => JSON.parse(line))
    expect(lines.filter(({ text }) => text === 'audit')).toMatchObject(
      told.events.filter(({ type }) => type.startsWith('order.')).map(({ type, id }) => ({ level: 'info', type, id })),
    )
    expect(lines.filter(({ reason }) => reason === 'SIGNATURE_INVALID')).toMatchObject([
      { text: 'request refused', orderId: order.orderId, ip: caller.ip },
    ])
  })

  test('a function that throws, rejects or never answers fails no sign-in, and the log says so', async () => {
    const answers = [() => Promise.reject(new Error('rejected on purpose')), () => new Promise(() => {})]
    for (const answer of [
      () => {
        throw new Error('thrown on purpose')
      },
      ...answers,
    ]) {
      const told = await tellingService({ onAuditEvent: answer })
      expect(await signIn(told)).toMatchObject({ token: expect.any(String) })
      const failures = told.log.filter((line) => line.includes('onAuditEvent failed'))
      expect(failures).toHaveLength(answer === answers[1] ? 0 : 1)
    }
  })
})

async function revokeOthers(url: string, token: string): Promise<void> {
  const path = '/countersign.v1.SessionService/RevokeOtherSessions'
  const headers = { 'content-type': 'application/json', ...bearer(token) }
  const { status } = await fetch(url + path, { method: 'POST', headers, body: '{}' })
  expect(status).toBe(200)
}

/** Of operators, who act outside the service, and of the issuer: test/oidc/offline.test.ts. */
const elsewhere = ['operator.acted', 'app.connected', 'app.disconnected', 'app.token_replayed']

test('the tests above have seen every type of event but those of operators and of the issuer', () => {
  expect([...seen, ...elsewhere].sort()).toEqual(Object.keys(allTypes).sort())
})
