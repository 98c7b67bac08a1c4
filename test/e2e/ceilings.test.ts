import { Code, ConnectError } from '@connectrpc/connect'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { passTime } from '../core/order/support.ts'
import { signInClients } from '../support/clients.ts'
import { keptLog } from '../support/log-lines.ts'
import { memoryStore } from '../support/memory-store.ts'
import { orderClients } from '../support/orders.ts'
import { RedisServer } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const secret = 'a secret for tests and for nothing else'

afterEach(() => void vi.useRealTimers())

describe('open streams', () => {
  test('are refused beyond their ceiling over every protocol, and served again below it', async () => {
    const { logger, lines } = keptLog()
    const { url } = await startService({ enforceOrigin: false, limits: { streams: 2 }, logger })
    const watched = await Promise.all(['REST', 'gRPC'].map((protocol) => watchNew(url, protocol)))
    const order = await orderClients.REST!(url).start('sign')
    for (const [protocol, clientFor] of Object.entries(orderClients)) {
      if (protocol !== 'REST') expect(await refusal(clientFor(url).watch(order)), protocol).toEqual(busy)
    }
    const path = `/cross-device/events?orderId=${order.orderId}`
    expect(await rest(url, path, undefined, { authorization: `Bearer ${order.desktopToken}` })).toSatisfy(isBusy)
    // The order was not even read.
    expect(await rest(url, path, undefined, { authorization: 'Bearer wrong' })).toSatisfy(isBusy)
    // Everything else is served.
    expect((await rest(url, '/wallet/nonce', {})).status).toBe(200)
    expect(lines.find(({ text }) => text === 'ceiling reached')).toEqual({
      level: 'warn',
      text: 'ceiling reached',
      fields: {
        ceiling: 'open streams',
        setting: 'COUNTERSIGN_MAX_STREAMS',
        most: 2,
        refused: 1,
        lastRefused: '127.0.0.1',
      },
    })
    for (const { end } of watched) await end()
    for (const protocol of Object.keys(orderClients)) await (await watchNew(url, protocol)).end()
  })

  test('make room when they end, fail or lose their watcher', async () => {
    const { url } = await startService({ enforceOrigin: false, limits: { streams: 1, requests: 4 } })
    const client = orderClients['Connect over HTTP/2']!(url)
    const order = await client.start('sign')
    for (let n = 0; n < 3; n++) {
      expect(await refusal(client.watch({ ...order, desktopToken: order.claimToken }))).toMatchObject({
        reason: 'ORDER_TOKEN_INVALID',
      })
      await (await watchNew(url, 'gRPC-Web')).end()
      const leaving = new AbortController()
      const response = await fetch(`${url}/api/auth/cross-device/events?orderId=${order.orderId}`, {
        headers: { authorization: `Bearer ${order.desktopToken}` },
        signal: leaving.signal,
      })
      expect(response.status).toBe(200)
      expect(await refusal(client.watch(order))).toEqual(busy)
      leaving.abort()
      await expect
        .poll(() => refusal(client.watch({ ...order, desktopToken: 'wrong' })))
        .toMatchObject({ reason: 'ORDER_TOKEN_INVALID' })
    }
  })
})

describe('of what all clients can hold, one network has a quarter', () => {
  const settings = { rateLimit: true, trustProxy: 1, enforceOrigin: false, publicUrl: 'http://localhost' }
  const as = (address: string) => ({ 'x-forwarded-for': address })

  test('open streams: a /48 that takes its share leaves the rest to others', async () => {
    const { url } = await startService({ ...settings, limits: { streams: 8 } })
    const order = (await rest(url, '/cross-device/start', { kind: 'sign' }, as('192.0.2.1'))).json
    const leaving = new AbortController()
    onTestFinished(() => leaving.abort())
    const watch = async (address: string): Promise<number> => {
      const { status } = await fetch(`${url}/api/auth/cross-device/events?orderId=${order.orderId}`, {
        headers: { ...as(address), authorization: `Bearer ${order.desktopToken}` },
        signal: leaving.signal,
      })
      return status
    }
    const statuses: number[] = []
    for (let n = 0; n < 16; n++) statuses.push(await watch(`2001:db8:0:${n.toString(16)}00::1`))
    expect(statuses.filter((status) => status === 200)).toHaveLength(2)
    expect(statuses.filter((status) => status === 503)).toHaveLength(14)
    expect([await watch('2001:db8:1::1'), await watch('198.51.100.1')]).toEqual([200, 200])
  })

  test('live orders and nonces: a network that fills its share leaves the rest to others', async () => {
    const { url } = await startService({ ...settings, limits: { orders: 40, nonces: 40 } })
    for (const [path, body] of [
      ['/cross-device/start', { kind: 'sign' }],
      ['/wallet/nonce', {}],
    ] as const) {
      const statuses: number[] = []
      for (let n = 0; n < 30; n++) statuses.push((await rest(url, path, body, as(`2001:db8:0:${n}00::1`))).status)
      expect(statuses.filter((status) => status === 200)).toHaveLength(10)
      expect((await rest(url, path, body, as('198.51.100.1'))).status).toBe(200)
    }
  })

  test.skipIf(redisUrl === undefined)('calls that wait for the store, while it hangs', async () => {
    await using redis = await RedisServer.start()
    const { url } = await startService({ ...settings, store: redis.url, secret, limits: { requests: 64 } })
    expect((await rest(url, '/wallet/nonce', {}, as('192.0.2.1'))).status).toBe(200)
    redis.freeze()
    const answers: number[] = []
    const ask = async (address: string) => answers.push((await rest(url, '/wallet/nonce', {}, as(address))).status)
    const calls = Array.from({ length: 12 }, () => ask('192.0.2.1'))
    await expect.poll(() => answers).toEqual(Array(8).fill(503))
    calls.push(ask('198.51.100.1'))
    redis.thaw()
    await Promise.all(calls)
    expect(answers.slice(8)).toEqual(Array(5).fill(200))
  })

  test('without limits on what clients do, one network may hold all', async () => {
    const { url } = await startService({ ...settings, rateLimit: false, limits: { nonces: 20 } })
    for (let n = 0; n < 20; n++) expect((await rest(url, '/wallet/nonce', {}, as('192.0.2.1'))).status).toBe(200)
  })
})

describe.skipIf(redisUrl === undefined)('calls that wait for the store', () => {
  test('are refused at once beyond their ceiling; the others are answered when the store is', async () => {
    await using redis = await RedisServer.start()
    const { logger, lines } = keptLog()
    const { url } = await startService({
      store: redis.url,
      secret,
      enforceOrigin: false,
      limits: { requests: 12 },
      logger,
    })
    const order = await orderClients.REST!(url).start('sign')
    redis.freeze()
    const statuses: number[] = []
    const calls = Array.from({ length: 8 }, async () => statuses.push((await rest(url, '/wallet/nonce', {})).status))
    await expect.poll(() => statuses).toEqual([503, 503, 503, 503, 503])
    for (const [protocol, clientFor] of Object.entries(signInClients)) {
      if (protocol === 'REST') expect(await rest(url, '/wallet/nonce', {})).toSatisfy(isBusy)
      else if (protocol.includes('grpc-js')) await expect(clientFor(url).issueNonce()).rejects.toThrow('UNAVAILABLE')
      else expect(await refusal(clientFor(url).issueNonce()), protocol).toEqual(busy)
    }
    expect(await refusal(orderClients.gRPC!(url).watch(order))).toEqual(busy)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    // The three still wait for the store, which gives them up after 2.5 s.
    expect(statuses).toHaveLength(5)
    redis.thaw()
    await Promise.all(calls)
    expect(statuses.slice(5)).toEqual([200, 200, 200])
    for (const clientFor of Object.values(signInClients)) expect(await clientFor(url).issueNonce()).toBeDefined()
    for (const protocol of Object.keys(orderClients)) await (await watchNew(url, protocol)).end()
    expect(lines.find(({ text }) => text === 'ceiling reached')?.fields).toMatchObject({
      ceiling: 'calls that wait for the store',
      setting: 'COUNTERSIGN_MAX_REQUESTS',
      most: 3,
    })
  })

  test('are never refused between two steps: after SERVER_BUSY the nonce is still good', async () => {
    await using redis = await RedisServer.start()
    const { url } = await startService({ store: redis.url, secret, enforceOrigin: false, limits: { requests: 8 } })
    const client = signInClients.REST!(url)
    const counts = { refused: 0 }
    const untilServed = async <T>(call: () => Promise<T>): Promise<T> => {
      for (;;) {
        try {
          return await call()
        } catch (error) {
          if (!(error instanceof Error && error.message.includes('SERVER_BUSY'))) throw error
          counts.refused++
        }
      }
    }
    const signIn = async () => {
      const wallet = makeWallet()
      const { nonceId, message } = await untilServed(() => client.issueNonce())
      const proof = { nonceId, publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
      return await untilServed(() => client.verify(proof))
    }
    const results = await Promise.all(Array.from({ length: 20 }, signIn))
    expect(results.map(({ ok }) => ok)).toEqual(Array.from({ length: 20 }, () => true))
    expect(counts.refused).toBeGreaterThan(20)
  })

  test('do not include those of readiness: however many ask, one asks the store', async () => {
    await using redis = await RedisServer.start()
    const { url } = await startService({ store: redis.url, secret, limits: { requests: 200 } })
    const pings = async (): Promise<number> =>
      Number(/cmdstat_ping:calls=(\d+)/.exec(await redis.cli('info', 'commandstats'))?.[1] ?? 0)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    const before = await pings()
    redis.freeze()
    const check = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
    const asked = Array.from({ length: 50 }, () => [
      fetch(`${url}/readyz`),
      fetch(`${url}/grpc.health.v1.Health/Check`, check),
      fetch(`${url}/grpc.health.v1.Health/List`, check),
    ]).flat()
    await expect.poll(() => fetch(`${url}/healthz`).then(({ status }) => status)).toBe(200)
    redis.thaw()
    for (const { status } of await Promise.all(asked)) expect(status).toBe(200)
    // The client pings its connections as well, every two seconds.
    expect((await pings()) - before).toBeLessThan(10)
  })
})

test('a flood from the networks of one IPv6 /56 is stopped behind a proxy, and others are served', async () => {
  // The clock stands still, so that no allowance comes back meanwhile.
  passTime(0)
  const { url } = await startService({ rateLimit: true, trustProxy: 1, publicUrl: 'http://localhost' })
  const codes = new Map<string, number>()
  const start = async (ip: string): Promise<void> => {
    const headers = { 'x-forwarded-for': ip, origin: 'http://localhost' }
    const { status, json } = await rest(url, '/cross-device/start', { kind: 'sign' }, headers)
    const code = status === 200 ? 'served' : json.code
    codes.set(code, (codes.get(code) ?? 0) + 1)
  }
  for (let subnet = 0; subnet < 256; subnet++) {
    const ip = `2001:db8:0:${(0x1200 + subnet).toString(16)}::1`
    await Promise.all([start(ip), start(ip)])
  }
  expect(Object.fromEntries(codes)).toEqual({ served: 480, RATE_LIMITED: 32 })
  await start('2001:db8:0:1300::1')
  await start('192.0.2.1')
  expect(codes.get('served')).toBe(482)
})

describe('live nonces and orders', () => {
  /** A service, and how often something was stored in it. */
  async function startCounting(options: CountersignOptions) {
    const store = await memoryStore()
    const create = vi.spyOn(store, 'create')
    const { logger, lines } = keptLog()
    const { url } = await startService({ store, logger, ...options })
    // The secret is stored at the start.
    create.mockClear()
    return { url, stored: () => create.mock.calls.length, lines }
  }

  async function flood(url: string, path: string, body: object, calls: number): Promise<number> {
    const answers = await Promise.all(Array.from({ length: calls }, () => rest(url, path, body)))
    expect(answers.filter((answer) => answer.status !== 200 && !isBusy(answer))).toEqual([])
    return answers.filter(({ status }) => status === 200).length
  }

  test('orders beyond their ceiling are refused before they are stored, until the lives of others end', async () => {
    const { url, stored, lines } = await startCounting({ limits: { orders: 20 } })
    const start = (calls: number): Promise<number> => flood(url, '/cross-device/start', { kind: 'login' }, calls)
    expect(await start(60)).toBe(20)
    expect(stored()).toBe(20)
    expect(lines.find(({ text }) => text === 'ceiling reached')).toMatchObject({
      level: 'warn',
      fields: { ceiling: 'live orders', setting: 'COUNTERSIGN_MAX_ORDERS', most: 20, lastRefused: '127.0.0.1' },
    })
    expect(await refusal(orderClients.gRPC!(url).start('login'))).toEqual(busy)
    expect((await rest(url, '/wallet/nonce', {})).status).toBe(200)
    // An order is over after two minutes, and remembered for ten more.
    passTime(11 * 60_000)
    expect(await start(1)).toBe(0)
    passTime(61_000)
    expect(await start(60)).toBe(20)
  })

  test('an order with long texts counts for as many as it takes room for', async () => {
    const { url } = await startCounting({ limits: { orders: 10 } })
    const longest = { returnTo: `/${'\u{1f600}'.repeat(2047)}`, displaySummary: '\u{1f600}'.repeat(500) }
    expect(await flood(url, '/cross-device/start', { kind: 'login', ...longest }, 10)).toBe(1)
    expect(await flood(url, '/cross-device/start', { kind: 'login' }, 10)).toBeLessThan(5)
  })

  test('nonces beyond their ceiling are refused before they are stored, until others are used or end', async () => {
    const { url, stored, lines } = await startCounting({ limits: { nonces: 20 }, nonceTtlSeconds: 10 })
    const issue = (calls: number): Promise<number> => flood(url, '/wallet/nonce', {}, calls)
    const wallet = makeWallet()
    const proofs = await Promise.all(
      Array.from({ length: 3 }, async () => proofOf(wallet, (await rest(url, '/wallet/nonce', {})).json)),
    )
    expect(await issue(60)).toBe(17)
    expect(stored()).toBe(20)
    expect(lines.find(({ text }) => text === 'ceiling reached')?.fields).toMatchObject({
      ceiling: 'live nonces',
      setting: 'COUNTERSIGN_MAX_NONCES',
      most: 20,
    })
    // Refused without being used.
    const foreign = { origin: 'https://evil.example' }
    expect((await rest(url, '/wallet/verify', proofs[0], foreign)).json.code).toBe('ORIGIN_MISMATCH')
    expect(await issue(3)).toBe(0)
    // Used: one well, one with a signature that does not hold, one twice.
    expect((await rest(url, '/wallet/verify', proofs[0])).status).toBe(200)
    const wrong = { ...proofs[1], signatureHex: proofs[2]!.signatureHex }
    expect((await rest(url, '/wallet/verify', wrong)).json.code).toBe('SIGNATURE_INVALID')
    for (let n = 0; n < 3; n++) await rest(url, '/wallet/verify', proofs[2])
    expect(await issue(10)).toBe(3)
    // An unused one is kept for a minute after it has expired.
    passTime(65_000)
    expect(await issue(1)).toBe(0)
    passTime(7_000)
    expect(await issue(60)).toBe(20)
  })
})

/** Watches a new order until `end` cancels it. Rejects if the stream is refused. */
async function watchNew(url: string, protocol: string): Promise<{ end(): Promise<void> }> {
  const client = orderClients[protocol]!(url)
  const { orderId, desktopToken } = await client.start('sign')
  const events = client.watch({ orderId, desktopToken })[Symbol.asyncIterator]()
  expect((await events.next()).value).toMatchObject({ status: 'created' })
  return {
    async end() {
      expect((await rest(url, '/cross-device/cancel', { orderId, desktopToken })).status).toBe(200)
      expect((await events.next()).value).toMatchObject({ status: 'cancelled' })
      expect((await events.next()).done).toBe(true)
    },
  }
}

/** What a call is told that may come back in a second. */
const busy = { code: Code.Unavailable, reason: 'SERVER_BUSY', retryAfterSeconds: 1n }

function isBusy({ status, headers, json }: Awaited<ReturnType<typeof rest>>): boolean {
  return status === 503 && json?.code === 'SERVER_BUSY' && headers.get('retry-after') === '1'
}

/** How an RPC fails, or a stream before its first message; 'served' if it does not. */
async function refusal(called: Promise<unknown> | AsyncIterable<unknown>): Promise<unknown> {
  try {
    if (called instanceof Promise) await called
    else for await (const _ of called) break
    return 'served'
  } catch (thrown) {
    const error = ConnectError.from(thrown)
    return {
      code: error.code,
      reason: error.findDetails(ErrorInfoSchema)[0]?.reason,
      retryAfterSeconds: error.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds,
    }
  }
}
