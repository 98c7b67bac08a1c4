import { createServer } from 'node:http'
import { describe, expect, test } from 'vitest'
import {
  type ClientCalls,
  type CountersignClient,
  createCountersignClient,
  type OrderEvent,
} from '../../../src/browser/client/index.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { listen } from '../../support/listening.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { codeOf, connectClient, fetchFrom, MapStorage, pageWallet } from './support.ts'

const wallet = makeWallet()

async function setUp(options: CountersignOptions = {}) {
  const { url } = await startService(options)
  const requests: string[] = []
  const device = (): CountersignClient => {
    const noting: typeof fetch = (input, init) => {
      requests.push(new URL(String(input)).pathname)
      return fetchFrom(url)(input, init)
    }
    const storage = new MapStorage()
    return createCountersignClient({ baseUrl: url, fetch: noting, storage, wallet: pageWallet(wallet) })
  }
  return { url, requests, desktop: device(), phone: device() }
}

/** Claims and reads an order, as a phone does. */
async function open(phone: ClientCalls, claimUrl: string) {
  const claim = await phone.claimOrder(claimUrl)
  return { claim, challenge: await phone.getOrderChallenge(claim) }
}

describe('the client over REST', () => {
  test('carries a login order through, watched, and keeps the session', async () => {
    const { desktop, phone, requests } = await setUp()
    const order = await desktop.startOrder({ kind: 'login', returnTo: '/welcome' })
    const seen: OrderEvent[] = []
    for await (const event of desktop.watchOrder(order)) {
      seen.push(event)
      if (event.status === 'created') {
        const { claim, challenge } = await open(phone, order.claimUrl)
        expect(await phone.approveOrder(claim, { challenge })).toMatchObject({ ok: true, status: 'approved' })
      }
      if (event.status === 'approved') {
        expect(await desktop.finalizeOrder(order)).toMatchObject({ kind: 'login', redirectTo: '/welcome' })
      }
    }
    expect(seen.map(({ status }) => status)).toEqual(['created', 'claimed', 'waiting_user', 'approved', 'finalized'])
    expect(seen.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
    const session = await desktop.getCurrentSession()
    expect(session).toMatchObject({ address: wallet.address, orderId: order.orderId, current: true })
    expect(await desktop.listSessions()).toEqual([session])
    expect(await desktop.listKnownComputers()).toEqual([])
    expect(await codeOf(desktop.forgetKnownComputer('none'))).toBe('COMPUTER_NOT_FOUND')
    await desktop.signOut()
    expect(desktop.readStoredToken()).toBeUndefined()
    expect(await desktop.getCurrentSession()).toBeUndefined()
    expect(await codeOf(desktop.listSessions())).toBe('SESSION_REQUIRED')
    expect(requests.filter((path) => !path.startsWith('/api/auth/'))).toEqual([])
  })

  test('has a text signed; cancels, rejects and hands over', async () => {
    const { desktop, phone, ...other } = await setUp()
    const order = await desktop.startOrder({ kind: 'sign', payloadHash: 'sha256:abc' })
    const { claim } = await open(phone, order.claimUrl)
    const { ticket } = await phone.handOverOrder(claim)
    const second = (await setUpPhone(other.url)).phone
    const redeemed = await second.redeemHandOver(ticket)
    const challenge = await second.getOrderChallenge(redeemed)
    await second.approveOrder(redeemed, { challenge })
    expect(await desktop.finalizeOrder(order)).toMatchObject({ proofArtifact: { payloadHash: 'sha256:abc' } })
    expect(desktop.readStoredToken()).toBeUndefined()

    const rejected = await desktop.startOrder({ kind: 'login' })
    expect(await phone.rejectOrder(await phone.claimOrder(rejected.claimUrl))).toMatchObject({ status: 'rejected' })
    expect(await codeOf(desktop.finalizeOrder(rejected))).toBe('ORDER_REJECTED')
    const cancelled = await desktop.startOrder({ kind: 'login' })
    expect(await desktop.cancelOrder(cancelled)).toMatchObject({ status: 'cancelled' })
    expect(await codeOf(phone.claimOrder(cancelled.claimUrl))).toBe('ORDER_CANCELLED')
  })

  test('says how many return codes are left to try, as the other client does', async () => {
    const { url, desktop, phone } = await setUp({ confirmationCode: 'return' })
    const connect = connectClient({ baseUrl: url, storage: new MapStorage(), fetch: fetchFrom(url) })
    const order = await desktop.startOrder({ kind: 'login' })
    const { claim, challenge } = await open(phone, order.claimUrl)
    const { returnCode } = await phone.approveOrder(claim, { challenge })
    const wrong = { returnCode: returnCode === '000000' ? '000001' : '000000' }
    const left = async (client: ClientCalls): Promise<unknown> =>
      await client.finalizeOrder(order, wrong).catch(({ code, triesLeft }) => [code, triesLeft])
    expect(await left(desktop)).toEqual(['RETURN_CODE_WRONG', 2])
    expect(await left(connect)).toEqual(['RETURN_CODE_WRONG', 1])
    expect(await left(desktop)).toEqual(['RETURN_CODE_WRONG', 0])
  })

  test('a developer\u2019s mistake is a TypeError', () => {
    expect(() => createCountersignClient({ baseUrl: 'auth.example' })).toThrow(TypeError)
  })
})

async function setUpPhone(url: string) {
  const phone = createCountersignClient({
    baseUrl: url,
    fetch: fetchFrom(url),
    storage: new MapStorage(),
    wallet: pageWallet(wallet),
  })
  return { phone }
}

describe.each([
  ['over REST', createCountersignClient],
  ['over Connect', connectClient],
] as const)('the wallets of the user, %s', (_, create) => {
  test('are listed, added and taken away', async () => {
    const { url } = await startService({ appName: 'Tally' })
    const [first, second] = [makeWallet(), makeWallet()]
    const client = create({
      baseUrl: url,
      storage: new MapStorage(),
      appName: 'Tally',
      wallet: pageWallet(first),
      fetch: fetchFrom(url),
    })
    expect(await codeOf(client.listWallets())).toBe('SESSION_REQUIRED')
    expect(await codeOf(client.linkWallet({ wallet: pageWallet(second) }))).toBe('SESSION_REQUIRED')
    const { session } = await client.signInWallet()
    expect(await codeOf(client.unlinkWallet(session))).toBe('LAST_WALLET')

    const linked = await client.linkWallet({ wallet: pageWallet(second), requestAddressBeforeVerify: true })
    expect(linked).toMatchObject({ adapterId: 'nimiq', address: second.address, current: false })
    const known = await client.listWallets()
    expect(known.map(({ address, current }) => [address, current])).toEqual([
      [first.address, true],
      [second.address, false],
    ])
    expect(known[1]).toEqual(linked)

    await client.unlinkWallet(linked)
    expect(await codeOf(client.unlinkWallet(linked))).toBe('WALLET_NOT_FOUND')
    expect(await client.listWallets()).toHaveLength(1)
    expect(await codeOf(client.linkWallet({ wallet: pageWallet(second), appName: 'Another' }))).toBe(
      'APP_NAME_MISMATCH',
    )
  })
})

test.each([302, 307, 308])('a service that answers %i sends neither client elsewhere', async (status) => {
  const asked: string[] = []
  const target = createServer((request, response) => {
    asked.push(String(request.url))
    response.end('{}')
  })
  const url = await startRedirecting(status, await listen(target))
  for (const client of [createCountersignClient({ baseUrl: url }), connectClient({ baseUrl: url })]) {
    expect(await codeOf(client.issueNonce())).toBe('UNEXPECTED_ANSWER')
  }
  expect(asked).toEqual([])
})

async function startRedirecting(status: number, port: number): Promise<string> {
  const server = createServer((request, response) => {
    response.writeHead(status, { location: `http://127.0.0.1:${port}${request.url}` }).end()
  })
  return `http://127.0.0.1:${await listen(server)}`
}
