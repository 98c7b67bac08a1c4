import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../../src/base/log.ts'
import { version } from '../../../src/base/version.ts'
import { type AuditEvent, CountersignError, createCountersign } from '../../../src/index.ts'
import { signInClients } from '../../support/clients.ts'
import { openCounted } from '../../support/counted-store.ts'
import { completeOrder, signInWith } from '../../support/flows.ts'
import { type MeasuredService, type Scrape, startMeasured } from '../../support/metrics.ts'
import { hasPart } from '../../support/optional.ts'
import { type OrderClient, orderClients } from '../../support/orders.ts'
import { RedisServer } from '../../support/redis-server.ts'
import { rest } from '../../support/rest.ts'
import { makeWallet } from '../../support/wallet.ts'

/**
 * Scrapes until it shows what is waited for. What a call does after its answer may not have happened when the answer
 * arrives.
 */
async function shows(service: MeasuredService, look: (scrape: Scrape) => unknown, expected: unknown): Promise<void> {
  await expect.poll(async () => look(await service.scrape())).toEqual(expected)
}

const restOrders = (url: string): OrderClient => orderClients.REST!(url)

const method = (service: string, rpc: string): string => `countersign.v1.${service}/${rpc}`

/** An order that is waiting for its user. */
async function openOrder(client: OrderClient, kind: 'login' | 'sign' = 'login') {
  const order = await client.start(kind)
  const { challengeToken } = await client.claim(order)
  const { message } = await client.challenge({ orderId: order.orderId, challengeToken })
  return { ...order, challengeToken, message }
}

describe('calls', () => {
  test('are counted by method, transport and outcome, over every protocol', async () => {
    const service = await startMeasured()
    const { url } = service
    const transports = {
      rest: ['REST'],
      connect: ['Connect JSON over HTTP/1.1', 'Connect binary over HTTP/2, compressed'],
      'grpc-web': ['gRPC-Web'],
      grpc: ['gRPC through @grpc/grpc-js', 'gRPC through connect-node'],
    }
    for (const names of Object.values(transports)) {
      for (const name of names) await signInWith(signInClients[name]!(url))
    }
    const expected = { rest: 1, connect: 2, 'grpc-web': 1, grpc: 2 }
    for (const rpc of ['IssueNonce', 'VerifySignIn']) {
      const labels = { method: method('SignInService', rpc), outcome: 'ok' }
      await shows(
        service,
        (scrape) =>
          Object.fromEntries(
            Object.keys(expected).map((transport) => [
              transport,
              scrape.value('countersign_calls_total', { ...labels, transport }),
            ]),
          ),
        expected,
      )
    }
    const counts = (await service.scrape()).counts('countersign_call_duration_seconds', 'method')
    expect(counts[method('SignInService', 'VerifySignIn')]).toBe(6)
  })

  test('calls that fail are counted under their reason, those that end without one under how they ended', async () => {
    const service = await startMeasured()
    const { url } = service
    await rest(url, '/wallet/nonce', {}, { origin: 'https://evil.example' })
    await rest(url, '/wallet/verify', { nonceId: 'x', publicKeyHex: 'y', signatureHex: 'z' })
    await rest(url, '/session')
    await fetch(`${url}/countersign.v1.SignInService/IssueNonce`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json', 'connect-timeout-ms': '0' },
    })
    await shows(
      service,
      (scrape) =>
        ['ORIGIN_NOT_TRUSTED', 'INVALID_REQUEST', 'SESSION_REQUIRED', 'deadline_exceeded'].map((outcome) =>
          Math.min(1, scrape.value('countersign_calls_total', { outcome })),
        ),
      [1, 1, 1, 1],
    )
  })

  test('calls that allow for being signed out are counted by what they brought: nothing, or a token of no session', async () => {
    const refused: string[] = []
    const onAuditEvent = ({ type }: AuditEvent) => void refused.push(type)
    const service = await startMeasured({ onAuditEvent })
    const path = '/session?allowSignedOut=true'
    expect(await rest(service.url, path)).toMatchObject({ status: 200, json: {} })
    const made = { authorization: `Bearer ${'cst_'.padEnd(47, 'A')}.${'B'.repeat(43)}` }
    expect(await rest(service.url, path, undefined, made)).toMatchObject({ status: 200, json: {} })
    await shows(
      service,
      (scrape) =>
        ['ok', 'SESSION_INVALID', 'SESSION_REQUIRED'].map((outcome) =>
          scrape.value('countersign_calls_total', { method: method('SessionService', 'GetCurrentSession'), outcome }),
        ),
      [1, 1, 0],
    )
    expect(refused).toEqual(['call.refused'])
  })

  test('to pages, health checks and forward auth are counted, and streams have no latency', async () => {
    const service = await startMeasured()
    const { url } = service
    await fetch(`${url}/healthz`)
    await fetch(`${url}/openapi.json`)
    await fetch(`${url}/readyz`)
    await fetch(`${url}/api/auth/forward-auth`)
    await completeOrder(restOrders(url))
    await shows(service, (scrape) => scrape.value('countersign_calls_total', { method: 'health' }), 2)
    await shows(service, (scrape) => scrape.value('countersign_calls_total', { method: 'openapi' }), 1)
    await shows(
      service,
      (scrape) => scrape.value('countersign_calls_total', { method: method('OrderService', 'WatchOrder') }),
      1,
    )
    const counts = (await service.scrape()).counts('countersign_call_duration_seconds', 'method')
    expect(counts).toMatchObject({ health: 2, [method('OrderService', 'FinalizeOrder')]: 1 })
    expect(counts).not.toHaveProperty([method('OrderService', 'WatchOrder')])
  })

  test('calls that callers make up are all "other", and add no series', async () => {
    const service = await startMeasured({
      resolveLogin: async () => {
        // An application can throw whatever it likes.
        throw new CountersignError('caller-chosen' as 'INTERNAL', 'x')
      },
    })
    const { url } = service
    const odd = async (n: number): Promise<void> => {
      await fetch(`${url}/api/auth/caller-chosen-${n}`)
      await fetch(`${url}/countersign.v1.SignInService/caller-chosen-${n}`, { method: 'POST', body: '{}' })
      await fetch(`${url}/caller-chosen-${n}`)
      await fetch(`${url}/api/auth/wallet/nonce?caller-chosen=${n}`, { method: 'PUT' })
      await signInWith(signInClients.REST!(url)).catch(() => {})
    }
    const others = (scrape: Scrape): number => scrape.value('countersign_calls_total', { method: 'other' })
    await odd(0)
    await shows(service, others, 4)
    const before = await service.scrape()
    for (let n = 1; n <= 20; n++) await odd(n)
    await shows(service, others, 84)
    const after = await service.scrape()
    expect([...after.labelValues()].filter((value) => value.includes('caller-chosen'))).toEqual([])
    const series = ({ text }: Scrape): number =>
      text.split('\n').filter((line) => line.startsWith('countersign_')).length
    expect(series(after)).toBe(series(before))
  })
})

describe('sign-ins and orders', () => {
  test('a sign-in counts once, by its adapter and its way, also if it is finalized again', async () => {
    const service = await startMeasured()
    const client = restOrders(service.url)
    await signInWith(signInClients.REST!(service.url))
    const { publicKeyHex, sign } = makeWallet()
    for (const kind of ['login', 'sign'] as const) {
      const order = await openOrder(client, kind)
      await client.approve({ ...order, proof: { publicKeyHex, signatureHex: sign(order.message) } })
      await client.finalize(order)
      await client.finalize(order)
    }
    const scrape = await service.scrape()
    const signIns = (adapter: string, way: string) => scrape.value('countersign_sign_ins_total', { adapter, way })
    expect([signIns('nimiq', 'direct'), signIns('nimiq', 'order'), signIns('ed25519', 'direct')]).toEqual([1, 1, 0])
    expect(scrape.value('countersign_orders_total', { status: 'finalized' })).toBe(2)
  })

  test('orders count once for each status that they reach, by any caller', async () => {
    const service = await startMeasured({ orderTtlSeconds: 1, confirmationCode: 'return' })
    const { url } = service
    const client = restOrders(url)
    await rest(url, '/cross-device/reject', await openOrder(client))
    const cancelled = await client.start('login')
    for (let i = 0; i < 2; i++) await rest(url, '/cross-device/cancel', cancelled)
    // Three wrong codes.
    const wrong = await openOrder(client)
    const { publicKeyHex, sign } = makeWallet()
    const { orderId, desktopToken, challengeToken, message } = wrong
    const proof = { publicKeyHex, signatureHex: sign(message) }
    const { returnCode } = (await rest(url, '/cross-device/approve', { orderId, challengeToken, proof })).json
    const other = { orderId, desktopToken, returnCode: returnCode === '000000' ? '000001' : '000000' }
    for (let i = 0; i < 3; i++) await rest(url, '/cross-device/finalize', other)
    // A watch sees the end of an order that nobody claims.
    const forgotten = await client.start('login')
    for await (const { status } of client.watch(forgotten)) if (status === 'expired') break
    const scrape = await service.scrape()
    const statuses = ['created', 'claimed', 'waiting_user', 'approved', 'finalized', 'rejected', 'cancelled', 'expired']
    const reached = statuses.map((status) => scrape.value('countersign_orders_total', { status }))
    expect(reached).toEqual([4, 2, 2, 1, 0, 2, 1, 1])
  })

  test('open watches are counted while they are open', async () => {
    const service = await startMeasured()
    const client = restOrders(service.url)
    const order = await client.start('login')
    const events = client.watch(order)[Symbol.asyncIterator]()
    await events.next()
    const open = (scrape: Scrape) => [
      scrape.value('countersign_watchers'),
      scrape.value('countersign_ceiling_in_use', { ceiling: 'streams' }),
    ]
    await shows(service, open, [1, 1])
    await rest(service.url, '/cross-device/cancel', order)
    while (!(await events.next()).done);
    await shows(service, open, [0, 0])
  })
})

describe('limits', () => {
  test('calls that a rate limit refused are counted by its group', async () => {
    const service = await startMeasured({ rateLimit: true })
    // On a busy machine, tokens come back while the calls are made.
    const answers = await Promise.all(
      Array.from({ length: 240 }, () => rest(service.url, '/cross-device/start', { kind: 'sign' })),
    )
    const refused = answers.filter(({ status }) => status === 429).length
    expect(refused).toBeGreaterThan(0)
    const scrape = await service.scrape()
    expect(scrape.value('countersign_rate_limited_total', { group: 'start-order' })).toBe(refused)
    expect(scrape.value('countersign_rate_limited_total')).toBe(refused)
  })

  test('ceilings tell what is in use, their limit, and whom they turned away', async () => {
    const service = await startMeasured({ limits: { orders: 2, nonces: 5, connections: 100 } })
    const { url } = service
    for (let i = 0; i < 4; i++) await rest(url, '/cross-device/start', { kind: 'login' })
    await rest(url, '/wallet/nonce', {})
    const scrape = await service.scrape()
    const at = (ceiling: string) =>
      ['ceiling_in_use', 'ceiling_limit', 'ceiling_refusals_total'].map((name) =>
        scrape.value(`countersign_${name}`, { ceiling }),
      )
    expect(at('orders')).toEqual([2, 2, 2])
    expect(at('nonces')).toEqual([1, 5, 0])
    expect(at('connections')).toEqual([expect.any(Number), 100, 0])
    expect(at('connections')[0]).toBeGreaterThan(0)
    // Counting again does not double them.
    expect((await service.scrape()).value('countersign_ceiling_refusals_total', { ceiling: 'orders' })).toBe(2)
  })
})

describe('the service', () => {
  test('is ready until it begins to stop, and can be scraped until it has stopped', async () => {
    const service = await startMeasured({ drainSeconds: 300 })
    expect((await service.scrape()).value('countersign_ready')).toBe(1)
    void service.service.drain()
    expect((await service.scrape()).value('countersign_ready')).toBe(0)
    await service.service.close(0)
    await expect(service.scrape()).rejects.toThrow()
  })

  test.skipIf(!hasPart('redis-server'))(
    'is not ready while its store is away, and the failures are counted',
    async () => {
      await using redis = await RedisServer.start()
      const service = await startMeasured({ store: redis.url, secret: 's'.repeat(32) })
      await rest(service.url, '/wallet/nonce', {})
      expect((await service.scrape()).value('countersign_store_failures_total')).toBe(0)
      await redis.kill()
      expect((await rest(service.url, '/wallet/nonce', {})).status).toBe(503)
      const scrape = await service.scrape()
      const failures = (operation: string) =>
        scrape.value('countersign_store_failures_total', { operation, kind: 'unavailable' })
      expect([scrape.value('countersign_ready'), failures('create'), failures('get')]).toEqual([0, 1, 0])
      const unavailable = { method: method('SignInService', 'IssueNonce'), outcome: 'STORE_UNAVAILABLE' }
      expect(scrape.value('countersign_calls_total', unavailable)).toBe(1)
      expect(scrape.counts('countersign_store_operation_duration_seconds', 'operation').create).toBe(2)
    },
  )

  test('is not ready if a store of its own never answers, and the scrape does not wait for it', async () => {
    const { store } = await openCounted()
    const silent = new Proxy(store, {
      get: (target, name) => (name === 'ping' ? () => new Promise(() => {}) : Reflect.get(target, name)),
    })
    const service = await startMeasured({ store: silent })
    expect((await service.scrape()).value('countersign_ready')).toBe(0)
  })

  test('says what is running, and how long its event loop was held up', async () => {
    const service = await startMeasured()
    await service.scrape()
    // The monitor looks at the loop before and after.
    await sleep(50)
    const until = performance.now() + 300
    while (performance.now() < until);
    await sleep(50)
    const delay = (scrape: Scrape, quantile: string) =>
      scrape.value('countersign_event_loop_delay_seconds', { quantile })
    const delayed = await service.scrape()
    expect(delay(delayed, '1')).toBeGreaterThan(0.2)
    expect(delay(delayed, '1')).toBeLessThan(60)
    expect(delay(delayed, '0.5')).toBeLessThanOrEqual(delay(delayed, '1'))
    // The time between two looks of the monitor, 10 ms, is no delay.
    const quiet = async (): Promise<number> => {
      await sleep(100)
      return delay(await service.scrape(), '0.5')
    }
    await expect.poll(quiet).toBeLessThan(0.009)
    // The commit is that of a built package; in the working tree there is none.
    const running = { version, commit: '', node_version: process.versions.node }
    expect(delayed.value('countersign_build_info', running)).toBe(1)
    expect(delayed.text).not.toMatch(/nan|lag/i)
  })
})

describe('without a port', () => {
  test('an application that asks for metrics gets them, of all its requests', async () => {
    const service = await createCountersign({ store: 'sqlite::memory:', metrics: true, logger: silentLogger })
    onTestFinished(() => service.close(0))
    await service.fetch(new Request('http://localhost:8080/healthz'))
    await expect
      .poll(() => service.metrics())
      .toContain('countersign_calls_total{method="health",transport="http",outcome="ok"} 1')
  })

  test('nothing is collected unless it is asked for, and the call says what to set', async () => {
    const service = await createCountersign({ store: 'sqlite::memory:', logger: silentLogger })
    onTestFinished(() => service.close(0))
    await expect(service.metrics()).rejects.toThrow('no metrics are collected; set the option metrics to true')
  })
})
