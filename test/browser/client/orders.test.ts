import { generateKeyPairSync, hash, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  type CountersignClientError,
  createCountersignClient,
  newClaimKey,
  type OrderEvent,
  type Wallet,
} from '../../../src/browser/client/index.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { CuttableProxy } from './proxy.ts'
import { codeOf, fetchFrom, MapStorage, pageWallet } from './support.ts'

const wallet = makeWallet()

function device(baseUrl: string, origin = baseUrl) {
  const storage = new MapStorage()
  const fetch = fetchFrom(origin)
  return { storage, ...createCountersignClient({ baseUrl, storage, fetch, wallet: pageWallet(wallet) }) }
}

/** A service, and two devices with its client. */
async function setUp(settings?: CountersignOptions) {
  const { url } = await startService(settings)
  return { url, desktop: device(url), phone: device(url) }
}

/** Claims, reads and approves an order, as a phone does. */
async function approve(phone: ReturnType<typeof device>, claimUrl: string): Promise<void> {
  const claim = await phone.claimOrder(claimUrl)
  await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
}

describe('an order from start to finish', () => {
  test('login: the desktop gets a session and keeps its token', async () => {
    const { url, desktop, phone } = await setUp()
    const order = await desktop.startOrder({ kind: 'login', returnTo: '/welcome', displayTitle: 'Sign in to Tally' })
    expect(order).toMatchObject({ kind: 'login', status: 'created', confirmationCode: expect.stringMatching(/^\d\d$/) })
    const seen: OrderEvent[] = []
    for await (const event of desktop.watchOrder(order)) {
      seen.push(event)
      if (event.status === 'created') {
        const claim = await phone.claimOrder(order.claimUrl)
        expect(claim).toMatchObject({ ok: true, status: 'claimed' })
        const challenge = await phone.getOrderChallenge(claim)
        expect(challenge).toMatchObject({
          action: 'auth.login',
          kind: 'login',
          status: 'waiting_user',
          displayTitle: 'Sign in to Tally',
          confirmationCode: order.confirmationCode,
          requester: { origin: url },
        })
        expect(await phone.approveOrder(claim, { challenge })).toMatchObject({ ok: true, status: 'approved' })
      }
      if (event.status === 'approved') {
        const finalized = await desktop.finalizeOrder(order)
        expect(finalized).toMatchObject({ kind: 'login', status: 'finalized', redirectTo: '/welcome' })
      }
    }
    expect(seen.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
    expect(seen.map(({ status }) => status)).toEqual(['created', 'claimed', 'waiting_user', 'approved', 'finalized'])
    const approved = {
      sequence: 4,
      status: 'approved',
      kind: 'login',
      redirectTo: '/welcome',
      returnCodeRequired: false,
    }
    expect(seen[3]).toEqual({ ...approved, at: seen[3]?.at, finishBy: expect.any(Number) })
    expect(await desktop.getCurrentSession()).toMatchObject({ address: wallet.address, orderId: order.orderId })
    expect(phone.readStoredToken()).toBeUndefined()
  })

  test('sign: the desktop gets a proof and no session', async () => {
    const { desktop, phone } = await setUp()
    const order = await desktop.startOrder({ kind: 'sign', payloadHash: 'sha256:abc', adapterId: 'nimiq' })
    await approve(phone, order.claimUrl)
    expect(await desktop.finalizeOrder(order)).toMatchObject({
      kind: 'sign',
      proofArtifact: { publicKeyHex: wallet.publicKeyHex, payloadHash: 'sha256:abc', adapterId: 'nimiq' },
    })
    expect(desktop.readStoredToken()).toBeUndefined()
  })

  test('login with autoPersistToken false: the token is handed out and not kept', async () => {
    const { desktop, phone } = await setUp()
    const order = await desktop.startOrder({ kind: 'login' })
    await approve(phone, order.claimUrl)
    const finalized = await desktop.finalizeOrder(order, { autoPersistToken: false })
    expect(finalized).toMatchObject({ token: expect.stringMatching(/^css_/) })
    expect(desktop.readStoredToken()).toBeUndefined()
  })

  test('reject and cancel', async () => {
    const { desktop, phone } = await setUp()
    const rejected = await desktop.startOrder({ kind: 'login' })
    expect(await phone.rejectOrder(await phone.claimOrder(rejected.claimUrl))).toMatchObject({ status: 'rejected' })
    expect(await codeOf(desktop.finalizeOrder(rejected))).toBe('ORDER_REJECTED')

    const cancelled = await desktop.startOrder({ kind: 'login' })
    expect(await desktop.cancelOrder(cancelled)).toMatchObject({ status: 'cancelled' })
    expect(await codeOf(phone.claimOrder(cancelled.claimUrl))).toBe('ORDER_CANCELLED')
  })

  test('the wallet is asked before anything is waited for', async () => {
    const { desktop, phone } = await setUp()
    const order = await desktop.startOrder({ kind: 'login' })
    const claim = await phone.claimOrder(order.claimUrl)
    const challenge = await phone.getOrderChallenge(claim)
    let asked = ''
    const recording: Wallet = {
      sign: (message) => {
        asked = message
        return pageWallet(wallet).sign(message)
      },
    }
    const approved = phone.approveOrder(claim, { challenge, wallet: recording })
    expect(asked).toBe(challenge.message)
    await approved
  })
})

describe('a return code', () => {
  /** Approves an order on the phone, which shows its return code. */
  async function approveForCode(phone: ReturnType<typeof device>, claimUrl: string): Promise<string> {
    const claim = await phone.claimOrder(claimUrl)
    const { returnCode } = await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
    return returnCode!
  }
  const wrong = (code: string): string => (code === '000000' ? '000001' : '000000')
  /** Code and tries that are left of the error that a promise rejects with. */
  async function refusal(promise: Promise<unknown>): Promise<unknown> {
    const error = await promise.then(
      () => undefined,
      (thrown: CountersignClientError) => thrown,
    )
    return [error?.code, error?.triesLeft]
  }

  test('is taken from the phone: the event asks for it, a wrong one says what is left', async () => {
    const { desktop, phone } = await setUp({ confirmationCode: 'return' })
    const order = await desktop.startOrder({ kind: 'login' })
    expect(order.confirmationCode).toBe('')
    const returnCode = await approveForCode(phone, order.claimUrl)
    expect(returnCode).toMatch(/^\d{6}$/)
    for await (const event of desktop.watchOrder(order)) {
      expect(event).toMatchObject({ status: 'approved', returnCodeRequired: true })
      break
    }
    expect(await refusal(desktop.finalizeOrder(order))).toEqual(['RETURN_CODE_REQUIRED', undefined])
    const tryWrong = () => refusal(desktop.finalizeOrder(order, { returnCode: wrong(returnCode) }))
    expect(await tryWrong()).toEqual(['RETURN_CODE_WRONG', 2])
    expect(await tryWrong()).toEqual(['RETURN_CODE_WRONG', 1])
    expect(await desktop.finalizeOrder(order, { returnCode })).toMatchObject({ kind: 'login', status: 'finalized' })
    expect(desktop.readStoredToken()).toBeDefined()
  })

  test('a return code that is wrong three times ends the order', async () => {
    const { desktop, phone } = await setUp({ confirmationCode: 'return' })
    const order = await desktop.startOrder({ kind: 'login' })
    const returnCode = await approveForCode(phone, order.claimUrl)
    const tried = [2, 1, 0].map((left) => [left, wrong(returnCode)] as const)
    for (const [left, code] of tried) {
      expect(await refusal(desktop.finalizeOrder(order, { returnCode: code }))).toEqual(['RETURN_CODE_WRONG', left])
    }
    expect(await refusal(desktop.finalizeOrder(order, { returnCode }))).toEqual(['ORDER_REJECTED', undefined])
  })

  test('is sent again if the answer is lost, and the session is the same', async () => {
    const { url, desktop, phone } = await setUp({ confirmationCode: 'return' })
    const proxy = await CuttableProxy.start(url)
    const far = device(proxy.url, url)
    const order = await desktop.startOrder({ kind: 'login' })
    const returnCode = await approveForCode(phone, order.claimUrl)
    proxy.swallowAnswers()
    const finalizing = far.finalizeOrder(order, { returnCode })
    for await (const { status } of desktop.watchOrder(order)) if (status === 'finalized') break
    proxy.forward()
    expect(await desktop.finalizeOrder(order, { returnCode })).toEqual(await finalizing)
  })

  test('is not needed by a computer that has become known, which the user can forget', async () => {
    const { desktop, phone } = await setUp({ confirmationCode: 'return' })
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const computerKey = publicKey.export({ format: 'der', type: 'spki' }).toString('base64url')
    const prove = ({ orderId, desktopToken }: { orderId: string; desktopToken: string }): string => {
      const text = `countersign.v1 finalize\n${orderId}\n${hash('sha256', desktopToken, 'base64url')}`
      return sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')
    }

    const first = await desktop.startOrder({ kind: 'login', computerKey })
    const claim = await phone.claimOrder(first.claimUrl)
    const challenge = await phone.getOrderChallenge(claim)
    expect(challenge.canRememberComputer).toBe(true)
    const { returnCode } = await phone.approveOrder(claim, { challenge, rememberComputer: true })
    expect(await codeOf(desktop.finalizeOrder(first, { returnCode }))).toBe('COMPUTER_PROOF_INVALID')
    await desktop.finalizeOrder(first, { returnCode, computerProof: prove(first) })

    const second = await desktop.startOrder({ kind: 'login', computerKey })
    await approve(phone, second.claimUrl)
    for await (const event of desktop.watchOrder(second)) {
      expect(event).toMatchObject({ status: 'approved', returnCodeRequired: false })
      break
    }
    await desktop.finalizeOrder(second, { computerProof: prove(second) })

    const [computer, ...others] = await desktop.listKnownComputers()
    expect(others).toEqual([])
    expect(computer).toMatchObject({ current: true, createdAt: expect.any(Number), lastUsedAt: expect.any(Number) })
    await desktop.forgetKnownComputer(computer!.id)
    expect(await desktop.listKnownComputers()).toEqual([])
    expect(await codeOf(desktop.forgetKnownComputer(computer!.id))).toBe('COMPUTER_NOT_FOUND')
    const third = await desktop.startOrder({ kind: 'login', computerKey })
    expect(await approveForCode(phone, third.claimUrl)).toMatch(/^\d{6}$/)
  })
})

test('a backend with a start key starts orders for the desktop that it describes', async () => {
  const startKey = 'a-start-key-for-tests-and-for-nothing-else'
  const { url } = await startService({ orderStartKeys: [startKey] })
  const [backend, desktop, phone] = [createCountersignClient({ baseUrl: url }), device(url), device(url)]
  const requester = { origin: url, ip: '198.51.100.7', userAgent: 'Firefox on the desk' }
  expect(await codeOf(desktop.startOrder({ kind: 'login', displayTitle: 'Sign in' }))).toBe('START_KEY_REQUIRED')
  const order = await backend.startOrder({ kind: 'login', requester, startKey })
  const claim = await phone.claimOrder(order.claimUrl)
  const challenge = await phone.getOrderChallenge(claim)
  expect(challenge.requester).toMatchObject({ ...requester, startedWithKey: true })
  await phone.approveOrder(claim, { challenge })
  expect(await desktop.finalizeOrder(order)).toMatchObject({ session: { address: wallet.address } })
})

describe('an answer that is lost', () => {
  test('claim: made again with the same key, it is the same phone', async () => {
    const { url } = await startService()
    const [desktop, proxy] = [device(url), await CuttableProxy.start(url)]
    const phone = device(proxy.url, url)
    const order = await desktop.startOrder({ kind: 'login' })
    proxy.swallowAnswers()
    const claiming = phone.claimOrder(order.claimUrl)
    for await (const { status } of desktop.watchOrder(order)) if (status === 'claimed') break
    proxy.forward()
    expect(await claiming).toMatchObject({ status: 'claimed' })
  })

  test('claim after a reload: the page keeps the key', async () => {
    const { desktop, phone } = await setUp()
    const { claimUrl } = await desktop.startOrder({ kind: 'login' })
    const claimKey = newClaimKey()
    expect(await phone.claimOrder(claimUrl, { claimKey })).toEqual(await phone.claimOrder(claimUrl, { claimKey }))
    expect(await codeOf(phone.claimOrder(claimUrl))).toBe('ORDER_ALREADY_CLAIMED')
    expect(newClaimKey()).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  test('finalize: made again, it is the same session', async () => {
    const { url, desktop, phone } = await setUp()
    const proxy = await CuttableProxy.start(url)
    const far = device(proxy.url, url)
    const order = await desktop.startOrder({ kind: 'login' })
    await approve(phone, order.claimUrl)
    proxy.swallowAnswers()
    const finalizing = far.finalizeOrder(order)
    for await (const { status } of desktop.watchOrder(order)) if (status === 'finalized') break
    proxy.forward()
    const finalized = await finalizing
    expect(far.readStoredToken()).toBe((finalized as { token: string }).token)
    expect(await desktop.finalizeOrder(order)).toEqual(finalized)
    expect(await desktop.listSessions()).toHaveLength(1)
  })

  test('aborting ends the tries', async () => {
    const { url } = await startService()
    const [desktop, proxy] = [device(url), await CuttableProxy.start(url)]
    const order = await desktop.startOrder({ kind: 'login' })
    const controller = new AbortController()
    const refused = proxy.refuse()
    const cancelling = device(proxy.url, url).cancelOrder(order, { signal: controller.signal })
    await refused
    controller.abort()
    expect(await codeOf(cancelling)).toBe('ABORTED')
  })
})

test('the client and REST say the same in the same words', async () => {
  const { url } = await startService()
  const client = device(url)
  const viaClient = await client.startOrder({ kind: 'login' })
  const { json } = await rest(url, '/cross-device/start', { kind: 'login' })
  expect(Object.keys(viaClient).sort()).toEqual(Object.keys(json).sort())
  expect({ kind: viaClient.kind, status: viaClient.status }).toEqual({ kind: json.kind, status: json.status })
  expect(typeof viaClient.expiresAt).toBe(typeof json.expiresAt)

  await client.signInWallet()
  const session = await client.getCurrentSession()
  const authorization = `Bearer ${client.readStoredToken()}`
  expect((await rest(url, '/session', undefined, { authorization })).json.session).toEqual(session)

  const claim = await client.claimOrder(viaClient)
  const challenge = await client.getOrderChallenge(claim)
  const query = `?orderId=${claim.orderId}`
  const bearer = { authorization: `Bearer ${claim.challengeToken}` }
  expect((await rest(url, `/cross-device/challenge${query}`, undefined, bearer)).json).toEqual(challenge)
})
