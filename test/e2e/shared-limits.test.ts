import { createClient } from 'redis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newToken } from '../../src/base/token.ts'
import type { AuditEvent } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { approveOrder } from '../support/flows.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { spawnService, startService } from '../support/service.ts'
import { redisUrl, sharedStores } from '../support/stores.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

const secret = 'a secret for tests and for nothing else'
const app = { origin: 'https://app.example' }
/** The headers of a call that a trusted proxy passed on for this address. */
const from = (ip: string) => ({ ...app, 'x-forwarded-for': ip })

let prefixes = 0

/** Addresses of two services on one store, whose keys are those of no other test. */
async function startTwo(open: () => Promise<string>, options: CountersignOptions): Promise<readonly [string, string]> {
  const keyPrefix = `limits-${process.pid}-${prefixes++}`
  const store = await open()
  const common = { store, keyPrefix, secret, rateLimit: true, trustedOrigins: [app.origin], ...options }
  const [one, two] = [await startService(common), await startService(common)]
  return [one.url, two.url]
}

/**
 * Makes calls in turns at several services. Resolves with how many were refused for which limit, and with the others.
 */
async function inTurns(
  urls: readonly string[],
  calls: number,
  call: (url: string, n: number) => Promise<RestAnswer>,
): Promise<{ readonly limited: RestAnswer[]; readonly others: RestAnswer[] }> {
  const answers: RestAnswer[] = []
  for (let n = 0; n < calls; n++) answers.push(await call(urls[n % urls.length] as string, n))
  return {
    limited: answers.filter(({ status }) => status === 429),
    others: answers.filter(({ status }) => status !== 429),
  }
}

const nonce = (url: string, headers: Record<string, string> = app) => rest(url, '/wallet/nonce', {}, headers)

async function signIn(url: string, wallet: TestWallet, headers: Record<string, string> = app): Promise<RestAnswer> {
  const challenge = await nonce(url, headers)
  return challenge.status === 200
    ? await rest(url, '/wallet/verify', proofOf(wallet, challenge.json), headers)
    : challenge
}

const startOrder = (url: string, headers: Record<string, string> = app) =>
  rest(url, '/cross-device/start', { kind: 'login' }, headers)

/** An order that a wallet has approved. */
async function approvedOrder(url: string, wallet: TestWallet) {
  const order = (await startOrder(url)).json
  await approveOrder(url, order, { wallet, headers: app })
  return { orderId: order.orderId as string, desktopToken: order.desktopToken as string }
}

/** A stream of an order's events, and how it was answered. */
async function watch(url: string, order: { orderId: string; desktopToken: string }, headers: Record<string, string>) {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const response = await fetch(`${url}/api/auth/cross-device/events?orderId=${order.orderId}`, {
    headers: { ...headers, authorization: `Bearer ${order.desktopToken}` },
    signal: leaving.signal,
  })
  // The response stays referenced: fetch cancels the stream of one that is collected as garbage.
  return { status: response.status, response, leave: () => leaving.abort() }
}

describe.each(sharedStores)('two services on %s', (_name, open) => {
  test('limit wrong tokens from an address, and never who has the right one', async () => {
    const urls = await startTwo(open, { limits: { rates: { 'wrong-token': 16, 'order-wrong-token': 1000 } } })
    const orders = await Promise.all(Array.from({ length: 8 }, async () => (await startOrder(urls[0])).json))
    const { limited, others } = await inTurns(urls, 48, (url, n) =>
      rest(url, '/cross-device/claim', { orderId: orders[n % 8].orderId, claimToken: newToken('claim') }, app),
    )
    expect(others.map(({ json }) => json.code)).toEqual(Array(others.length).fill('ORDER_TOKEN_INVALID'))
    expect(others.length).toBeGreaterThanOrEqual(16)
    expect(limited.length).toBeGreaterThan(8)
    expect(Number(limited[0]?.headers.get('retry-after'))).toBeGreaterThan(0)
    for (const [n, { orderId, claimToken }] of orders.entries()) {
      const { status } = await rest(urls[n % 2] as string, '/cross-device/claim', { orderId, claimToken }, app)
      expect(status).toBe(200)
    }
  })

  test('limit wrong tokens for an order from however many addresses, and never who has the right one', async () => {
    const urls = await startTwo(open, { trustProxy: 1, limits: { rates: { 'order-wrong-token': 16 } } })
    const { orderId, claimToken } = (await startOrder(urls[0], from('192.0.2.1'))).json
    const { limited, others } = await inTurns(urls, 48, (url, n) =>
      rest(url, '/cross-device/claim', { orderId, claimToken: newToken('claim') }, from(`198.51.100.${n}`)),
    )
    expect(others.map(({ json }) => json.code)).toEqual(Array(others.length).fill('ORDER_TOKEN_INVALID'))
    expect(others.length).toBeGreaterThanOrEqual(16)
    expect(limited.length).toBeGreaterThan(8)
    const claimed = await rest(urls[1], '/cross-device/claim', { orderId, claimToken }, from('198.51.100.1'))
    expect(claimed.status).toBe(200)
  })

  test('limit the open orders of the user for whom a backend starts them, until one is over, and not of the backend', async () => {
    const key = 'k'.repeat(32)
    const urls = await startTwo(open, { orderStartKeys: [key], limits: { rates: { 'open-orders': 10 } } })
    const startFor = (url: string, ip: string) => {
      const requester = { origin: app.origin, ip, userAgent: 'a browser' }
      return rest(url, '/cross-device/start', { kind: 'login', requester }, { authorization: `Bearer ${key}` })
    }
    const ofOne = await inTurns(urls, 15, (url) => startFor(url, '2001:db8:1:2::1'))
    expect([ofOne.others.length, ofOne.limited.length]).toEqual([10, 5])
    const neighbour = await inTurns(urls, 2, (url) => startFor(url, '2001:db8:1:2:ffff::2'))
    expect(neighbour.limited).toHaveLength(2)
    const { orderId, desktopToken } = ofOne.others[0]?.json ?? {}
    await rest(urls[1], '/cross-device/cancel', { orderId, desktopToken }, app)
    await expect.poll(async () => (await startFor(urls[0], '2001:db8:1:2::1')).status).toBe(200)
    expect((await startFor(urls[1], '2001:db8:1:2::1')).status).toBe(429)
    const ofMany = await inTurns(urls, 30, (url, n) => startFor(url, `192.0.2.${n}`))
    expect(ofMany.limited).toEqual([])
  })

  test('limit the streams of an address at each, and let others in when some are closed', async () => {
    const urls = await startTwo(open, { trustProxy: 1, limits: { rates: { watchers: 6 } } })
    const order = (await startOrder(urls[0], from('192.0.2.1'))).json
    const streams: Awaited<ReturnType<typeof watch>>[] = []
    for (let n = 0; n < 20; n++) streams.push(await watch(urls[n % 2] as string, order, from('192.0.2.66')))
    const opened = streams.filter(({ status }) => status === 200)
    expect(opened).toHaveLength(12)
    expect(streams.filter(({ status }) => status === 429)).toHaveLength(8)
    expect((await watch(urls[0], order, from('192.0.2.1'))).status).toBe(200)
    for (const { leave } of opened.slice(0, 6)) leave()
    const again = () => watch(urls[1], order, from('192.0.2.66'))
    await expect.poll(async () => (await again()).status).toBe(200)
  })

  test('limit the sign-ins of a wallet by either way, and those of no other', async () => {
    const urls = await startTwo(open, { limits: { rates: { 'wallet-sign-in': 12 } } })
    const wallet = makeWallet()
    const { limited, others } = await inTurns(urls, 24, (url) => signIn(url, wallet))
    expect(others.map(({ status }) => status)).toEqual(Array(others.length).fill(200))
    expect(others.length).toBeGreaterThanOrEqual(12)
    expect(others.length).toBeLessThan(24)
    expect(limited[0]?.json.message).toContain('wallet')
    const order = await approvedOrder(urls[0], wallet)
    const finalized = await inTurns(urls, 4, (url) => rest(url, '/cross-device/finalize', order, app))
    expect(finalized.limited.length).toBeGreaterThan(0)
    expect((await signIn(urls[0], makeWallet())).status).toBe(200)
  })
})

test('forwarded headers that a client writes give it no further allowance', async () => {
  const limits = { rates: { 'sign-in': 10 } }
  const { url } = await startService({ rateLimit: true, limits, trustedOrigins: [app.origin] })
  const { limited } = await inTurns([url], 40, (_url, n) =>
    nonce(url, { ...from(`192.0.2.${n}`), 'x-real-ip': `192.0.2.${n}`, forwarded: `for=192.0.2.${n}` }),
  )
  expect(limited.length).toBeGreaterThan(20)
})

test('a refusal tells which limit was reached, to the caller, to the log and to the audit trail', async () => {
  const events: AuditEvent[] = []
  const logged: unknown[] = []
  const note = (text: string, fields?: object): void => void logged.push({ text, ...fields })
  const { url } = await startService({
    rateLimit: true,
    limits: { rates: { 'sign-in': 1 } },
    onAuditEvent: (event) => events.push(event),
    logger: { debug: note, info: note, warn: note, error: note },
  })
  const call = async () => {
    const headers = { 'content-type': 'application/json' }
    const path = `${url}/countersign.v1.SignInService/IssueNonce`
    return await (await fetch(path, { method: 'POST', headers, body: '{}' })).json()
  }
  await call()
  const { details } = await call()
  expect(details[0].debug).toMatchObject({ reason: 'RATE_LIMITED', metadata: { limit: 'sign-in' } })
  expect(events).toMatchObject([{ type: 'limit.hit', reason: 'RATE_LIMITED', limit: 'sign-in' }])
  expect(logged).toContainEqual(expect.objectContaining({ reason: 'RATE_LIMITED', limit: 'sign-in' }))
})

test('a wrong code is answered as a wrong code, however many came before, so that no client repeats it', async () => {
  const rateLimits = { 'wrong-token': 1 }
  const { url } = await startService({ rateLimit: true, limits: { rates: rateLimits }, confirmationCode: 'return' })
  const order = (await rest(url, '/cross-device/start', { kind: 'login' })).json
  const { orderId, claimToken, desktopToken } = order
  const guess = () => rest(url, '/cross-device/claim', { orderId, claimToken: newToken('claim') })
  await guess()
  expect((await guess()).status).toBe(429)
  const { returnCode } = await approveOrder(url, { orderId, claimToken })
  const finalize = (code: string) => rest(url, '/cross-device/finalize', { orderId, desktopToken, returnCode: code })
  expect((await finalize(returnCode === '000000' ? '000001' : '000000')).json.code).toBe('RETURN_CODE_WRONG')
  expect((await finalize(returnCode)).status).toBe(200)
})

describe.skipIf(redisUrl === undefined)('with Redis', () => {
  const openRedis = redisUrl as () => Promise<string>

  test('services whose machines’ clocks are minutes apart hold one limit', async () => {
    const ahead = (ms: number) => ({
      NODE_OPTIONS: `--import=${new URL('../support/shifted-clock.ts', import.meta.url).href}`,
      CLOCK_AHEAD_MS: String(ms),
    })
    const environment = {
      COUNTERSIGN_STORE: await openRedis(),
      COUNTERSIGN_KEY_PREFIX: `limits-${process.pid}-clocks`,
      COUNTERSIGN_SECRET: secret,
      COUNTERSIGN_RATE_LIMIT: 'on',
      COUNTERSIGN_RATE_LIMITS: 'sign-in=40',
      COUNTERSIGN_TRUSTED_ORIGINS: app.origin,
      COUNTERSIGN_TRUST_PROXY: '1',
    }
    const services = [
      await spawnService({ ...environment, ...ahead(-600_000) }),
      await spawnService({ ...environment, ...ahead(600_000) }),
    ]
    const urls = services.map(({ url }) => url) as [string, string]
    const startedAt = Date.now()
    const { others } = await inTurns(urls, 160, (url) => nonce(url, from('192.0.2.1')))
    expect(others.length).toBeGreaterThanOrEqual(40)
    expect(others.length).toBeLessThanOrEqual(50 + 1 + (Date.now() - startedAt) / 1500)
    // What one of them has told is not in the future of the other.
    for (const [ip, first, then] of [
      ['192.0.2.2', ...urls],
      ['192.0.2.3', ...urls.toReversed()],
    ] as const) {
      expect((await inTurns([first as string], 12, (url) => nonce(url, from(ip)))).limited).toEqual([])
      expect((await inTurns([then as string], 20, (url) => nonce(url, from(ip)))).limited).toEqual([])
    }
  })

  test('a sign-in of an ordinary client asks the store for nothing more than without limits', async () => {
    const admin = createClient({ url: await openRedis() })
    await admin.connect()
    onTestFinished(() => admin.destroy())
    const commandsOf = async (rateLimit: boolean): Promise<number> => {
      const keyPrefix = `limits-${process.pid}-cost-${rateLimit}`
      const { url } = await startService({ store: await openRedis(), secret, keyPrefix, rateLimit })
      const seen: string[] = []
      const monitor = admin.duplicate()
      await monitor.connect()
      onTestFinished(() => monitor.destroy())
      await monitor.monitor((line) => seen.push(String(line)))
      for (let n = 0; n < 5; n++) expect((await signIn(url, makeWallet(), {})).status).toBe(200)
      await admin.echo(keyPrefix)
      await expect.poll(() => seen.some((line) => line.includes(`"ECHO" "${keyPrefix}"`))).toBe(true)
      return seen.filter((line) => line.includes(`${keyPrefix}:`)).length
    }
    const without = await commandsOf(false)
    expect(without).toBeGreaterThan(0)
    expect(await commandsOf(true)).toBe(without)
  })
})
