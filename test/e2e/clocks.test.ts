import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { readEventStream } from '../../src/client/event-stream.ts'
import { clockLate } from '../support/redis-clock.ts'
import { RedisServer } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { type ServiceProcess, spawnService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const trusted = {
  COUNTERSIGN_TRUSTED_ORIGINS: 'https://app.example',
  COUNTERSIGN_SECRET: 'a secret for tests and for nothing else',
}
const origin = { origin: 'https://app.example' }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
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

/** An answer, and the time in epoch milliseconds between two bounds at which it was made. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
type Timed = { json: any; status: number; from: number; to: number }

async function timed(...call: Parameters<typeof rest>): Promise<Timed> {
  const from = Date.now()
  const { json, status } = await rest(...call)
  return { json, status, from, to: Date.now() }
}

/** Checks that a time is the one of an answer plus a life, within a second. */
function expectExpiry(expiresAt: number, lifeMs: number, { from, to }: Timed): void {
  const bornAt = expiresAt - lifeMs
  expect(bornAt).toBeGreaterThan(from - 1000)
  expect(bornAt).toBeLessThan(to + 1000)
}

test.skipIf(redisUrl === undefined)(
  'instances whose clocks are nine minutes apart agree on every expiry',
  {
    timeout: 90_000,
  },
  async () => {
    const [nonceMs, orderMs, sessionMs] = [8000, 12_000, 10_000]
    const environment = {
      COUNTERSIGN_STORE: await redisUrl!(),
      COUNTERSIGN_NONCE_TTL_SECONDS: String(nonceMs / 1000),
      COUNTERSIGN_ORDER_TTL_SECONDS: String(orderMs / 1000),
      COUNTERSIGN_SESSION_TTL_SECONDS: String(sessionMs / 1000),
    }
    const [fast, slow] = await Promise.all([spawnAhead(270_000, environment), spawnAhead(-270_000, environment)])
    const pairs = [
      [fast.url, slow.url],
      [slow.url, fast.url],
    ] as const

    const directions = pairs.map(async ([here, there]) => {
      const wallet = makeWallet()
      const issue = () => timed(here, '/wallet/nonce', {}, origin)
      const [used, unused] = [await issue(), await issue()]
      for (const nonce of [used, unused]) expectExpiry(nonce.json.expiresAt, nonceMs, nonce)

      const signedIn = await timed(there, '/wallet/verify', proofOf(wallet, used.json), origin)
      expect(signedIn.status).toBe(200)
      const { token, session } = signedIn.json
      expectExpiry(session.expiresAt, sessionMs, signedIn)
      const other = (await rest(here, '/wallet/nonce', {}, origin)).json
      const unusedToken = (await rest(there, '/wallet/verify', proofOf(wallet, other), origin)).json.token

      // Used on the instance that did not make it, a session gets a new life of the same length.
      await sleep(2000)
      const extended = await timed(here, '/session', undefined, bearer(token))
      expect(extended.status).toBe(200)
      expectExpiry(extended.json.session.expiresAt, sessionMs, extended)

      await sleep(unused.json.expiresAt + 1000 - Date.now())
      const late = await rest(there, '/wallet/verify', proofOf(wallet, unused.json), origin)
      expect([late.status, late.json.code]).toEqual([410, 'NONCE_EXPIRED'])
      await sleep(signedIn.to + sessionMs + 1000 - Date.now())
      expect((await rest(here, '/session', undefined, bearer(unusedToken))).json.code).toBe('SESSION_INVALID')
    })

    const orders = pairs.map(async ([here, there]) => {
      const start = () => timed(here, '/cross-device/start', { kind: 'login' }, origin)
      const [approved, left] = [await start(), await start()]
      for (const order of [approved, left]) expectExpiry(order.json.expiresAt, orderMs, order)
      const expiries = [expiryOf(here, left.json), expiryOf(there, left.json)]

      const { orderId, claimToken, desktopToken } = approved.json
      const { challengeToken } = (await rest(there, '/cross-device/claim', { orderId, claimToken }, origin)).json
      const challengePath = `/cross-device/challenge?orderId=${orderId}`
      const challenge = (await rest(there, challengePath, undefined, { ...origin, ...bearer(challengeToken) })).json
      const { nonceId: _, ...proof } = proofOf(makeWallet(), { nonceId: '', message: challenge.message })
      const approval = await rest(there, '/cross-device/approve', { orderId, challengeToken, proof }, origin)
      expect(approval.status).toBe(200)

      const [one, two] = await Promise.all(expiries)
      expect(one?.at).toBe(left.json.expiresAt)
      expect(two?.at).toBe(left.json.expiresAt)
      for (const { heardAt } of [one!, two!]) expect(heardAt).toBeGreaterThan(left.json.expiresAt - 1000)

      // Its own life is over, but it has a minute from its approval on.
      await sleep(approved.json.expiresAt + 1000 - Date.now())
      const finalized = await rest(here, '/cross-device/finalize', { orderId, desktopToken }, origin)
      expect([finalized.status, finalized.json.status]).toEqual([200, 'finalized'])
    })
    await Promise.all([...directions, ...orders])
  },
)

/** Watches an order that nobody claims until it expires: the time of the event, and when it came. */
async function expiryOf(
  url: string,
  { orderId, desktopToken }: { orderId: string; desktopToken: string },
): Promise<{ at: number; heardAt: number } | undefined> {
  const headers = { ...origin, ...bearer(desktopToken) }
  const response = await fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}`, { headers })
  for await (const { data } of readEventStream(response.body!)) {
    const event = JSON.parse(data)
    if (event.status === 'expired') return { at: event.at, heardAt: Date.now() }
  }
}

test.skipIf(redisUrl === undefined)(
  'an instance that cannot learn the time of Redis is not ready',
  {
    timeout: 60_000,
  },
  async () => {
    await using redis = await RedisServer.start()
    const proxy = await startTcpProxy(redis.port)
    const service = await spawnService({ ...trusted, COUNTERSIGN_STORE: `redis://127.0.0.1:${proxy.port}` })
    const readiness = async () => (await fetch(`${service.url}/readyz`)).status
    expect(await readiness()).toBe(200)
    proxy.answer = clockLate(2100)
    proxy.cut()
    const reason = () => readiness().then(() => service.log())
    await expect
      .poll(reason, { timeout: 20_000 })
      .toMatch(/the offset to the clock of the Redis server is uncertain by/)
    expect(await readiness()).toBe(503)
    proxy.answer = (chunk) => chunk
    await expect.poll(readiness, { timeout: 20_000 }).toBe(200)
  },
)
