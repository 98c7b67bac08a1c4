import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readEventStream } from '../../src/browser/client/event-stream.ts'
import { openStore } from '../../src/index.ts'
import { approveOrder } from '../support/flows.ts'
import { clockLate } from '../support/redis-clock.ts'
import { RedisServer } from '../support/redis-server.ts'
import { bearer, type RestAnswer, rest } from '../support/rest.ts'
import { type ServiceProcess, spawnService, startService } from '../support/service.ts'
import { redisUrl, sharedStores } from '../support/stores.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const trusted = {
  COUNTERSIGN_TRUSTED_ORIGINS: 'https://app.example',
  COUNTERSIGN_SECRET: 'a secret for tests and for nothing else',
}
const origin = { origin: 'https://app.example' }
const shiftedClock = new URL('../support/shifted-clock.ts', import.meta.url).href

/** A service on a machine whose wall clock is ahead by so many milliseconds. */
async function spawnAhead(ms: number, environment: Record<string, string>): Promise<ServiceProcess> {
  const service = await spawnService({
    ...trusted,
    ...environment,
    NODE_OPTIONS: `--import=${shiftedClock}`,
    CLOCK_AHEAD_MS: String(ms),
  })
  const [, logged = ''] = /"time":"([^"]+)"/.exec(service.log()) ?? []
  expect(Math.abs(Date.parse(logged) - ms - Date.now()), 'the clock is not shifted').toBeLessThan(60_000)
  return service
}

/** An answer, and two times in epoch milliseconds between which it was made. */
type TimedAnswer = RestAnswer & { readonly from: number; readonly to: number }

async function timed(...call: Parameters<typeof rest>): Promise<TimedAnswer> {
  const from = Date.now()
  const answer = await rest(...call)
  return { ...answer, from, to: Date.now() }
}

/** Checks that a time is that of an answer plus a life, within a second. */
function expectExpiry(expiresAt: number, lifeMs: number, { from, to }: TimedAnswer): void {
  expect(expiresAt - lifeMs).toBeGreaterThan(from - 1000)
  expect(expiresAt - lifeMs).toBeLessThan(to + 1000)
}

async function sleepUntil(time: number): Promise<void> {
  await sleep(Math.max(0, time - Date.now()))
}

/** A started order. */
interface Started {
  readonly orderId: string
  readonly claimToken: string
  readonly desktopToken: string
}

const start = (url: string) => timed(url, '/cross-device/start', { kind: 'login' }, origin)

const approve = (url: string, order: Started) => approveOrder(url, order, { headers: origin })
const finalize = (url: string, { orderId, desktopToken }: Started) =>
  rest(url, '/cross-device/finalize', { orderId, desktopToken }, origin)

/** Watches an order that nobody claims until it expires: the time of the event, and when it came. */
async function expiryOf(url: string, { orderId, desktopToken }: Started): Promise<{ at: number; heardAt: number }> {
  const headers = { ...origin, ...bearer(desktopToken) }
  const response = await fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}`, { headers })
  for await (const { data } of readEventStream(response.body!)) {
    const event = JSON.parse(data)
    if (event.status === 'expired') return { at: event.at, heardAt: Date.now() }
  }
  throw new Error('the stream ended before the order')
}

/** Stores whose server has a clock of its own. */
const servers = sharedStores.filter(([name]) => name !== 'one SQLite file')

describe.each(servers)('on %s', (_, urlOf) => {
  test('instances whose clocks are nine minutes apart agree on every expiry', { timeout: 90_000 }, async () => {
    const [nonceMs, orderMs, sessionMs] = [8000, 12_000, 10_000]
    const environment = {
      COUNTERSIGN_STORE: await urlOf(),
      COUNTERSIGN_NONCE_TTL_SECONDS: String(nonceMs / 1000),
      COUNTERSIGN_ORDER_TTL_SECONDS: String(orderMs / 1000),
      COUNTERSIGN_SESSION_TTL_SECONDS: String(sessionMs / 1000),
    }
    const [fast, slow] = await Promise.all([spawnAhead(270_000, environment), spawnAhead(-270_000, environment)])

    const signIns = async (here: string, there: string): Promise<void> => {
      const issue = () => timed(here, '/wallet/nonce', {}, origin)
      const verify = (nonce: RestAnswer) => timed(there, '/wallet/verify', proofOf(makeWallet(), nonce.json), origin)
      const sessionOf = (token: string) => timed(here, '/session', undefined, bearer(token))
      const late = await issue()
      expectExpiry(late.json.expiresAt, nonceMs, late)
      const [used, unused] = [await verify(await issue()), await verify(await issue())]
      for (const signedIn of [used, unused]) {
        expect(signedIn.status).toBe(200)
        expectExpiry(signedIn.json.session.expiresAt, sessionMs, signedIn)
      }

      // The instance that did not make it extends it.
      await sleep(2000)
      const extended = await sessionOf(used.json.token)
      expect(extended.status).toBe(200)
      expectExpiry(extended.json.session.expiresAt, sessionMs, extended)

      await sleepUntil(late.json.expiresAt + 1000)
      expect((await verify(late)).json.code).toBe('NONCE_EXPIRED')
      await sleepUntil(unused.json.session.expiresAt + 1000)
      expect((await sessionOf(unused.json.token)).json.code).toBe('SESSION_INVALID')
    }

    const orders = async (here: string, there: string): Promise<void> => {
      const [approved, left] = [await start(here), await start(here)]
      for (const order of [approved, left]) expectExpiry(order.json.expiresAt, orderMs, order)
      const expiries = Promise.all([expiryOf(here, left.json), expiryOf(there, left.json)])
      await approve(there, approved.json)
      for (const { at, heardAt } of await expiries) {
        expect(at).toBe(left.json.expiresAt)
        expect(heardAt).toBeGreaterThan(at - 1000)
      }
      // Its own life is over, but it has a minute from its approval on.
      await sleepUntil(approved.json.expiresAt + 1000)
      expect((await finalize(here, approved.json)).status).toBe(200)
    }

    await Promise.all([
      signIns(fast.url, slow.url),
      signIns(slow.url, fast.url),
      orders(fast.url, slow.url),
      orders(slow.url, fast.url),
    ])
  })
})

describe.skipIf(redisUrl === undefined)('on Redis', () => {
  test('an instance that cannot learn the time is not ready, and serves', async () => {
    await using redis = await RedisServer.start()
    const proxy = await startTcpProxy(redis.port)
    const service = await spawnService({ ...trusted, COUNTERSIGN_STORE: `redis://127.0.0.1:${proxy.port}` })
    const readiness = async () => (await fetch(`${service.url}/readyz`)).status
    expect(await readiness()).toBe(200)
    proxy.answer = clockLate(2100)
    proxy.cut()
    const log = () => readiness().then(() => service.log())
    await expect.poll(log, { timeout: 20_000 }).toMatch(/the offset to the clock of the Redis server is uncertain by/)
    expect(await readiness()).toBe(503)
    const nonce = () => rest(service.url, '/wallet/nonce', {}, origin)
    await expect.poll(async () => (await nonce()).status, { timeout: 20_000 }).toBe(200)
    proxy.answer = (chunk) => chunk
    await expect.poll(readiness, { timeout: 20_000 }).toBe(200)
  })
})

test.each([-3_600_000, 3_600_000])(
  'a store whose clock is %i ms ahead of the process decides all times',
  async (ms) => {
    const store = Object.assign(await openStore('sqlite::memory:'), { now: () => Date.now() + ms })
    onTestFinished(() => store.close())
    const { url, service } = await startService({ store, trustedOrigins: [origin.origin] })
    const expectNow = (time: number) => expect(Math.abs(time - store.now())).toBeLessThan(60_000)

    const nonce = (await rest(url, '/wallet/nonce', {}, origin)).json
    expectNow(nonce.issuedAt)
    const { headers, json } = await rest(url, '/wallet/verify', proofOf(makeWallet(), nonce), origin)
    const { token, session } = json
    expectNow(session.createdAt)
    expectNow((await service.findUser(session.userId))!.createdAt)
    const [, maxAge] = /Max-Age=(\d+)/.exec(headers.getSetCookie()[0]!) ?? []
    // 30 days, the longest life of a session.
    expect(Number(maxAge)).toBe(2_592_000)
    expectNow(session.expiresAt - 604_800_000)
    expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(200)

    const order = (await start(url)).json
    expectNow(order.expiresAt - 120_000)
    await approve(url, order)
    expect((await finalize(url, order)).status).toBe(200)
  },
)
