import { createClient } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { OrderKind, OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { type OrderClient, orderClients, type Transition } from '../support/orders.ts'
import { RedisServer } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { spawnService, startService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { makeWallet } from '../support/wallet.ts'

const secret = 'a secret for tests and for nothing else'

async function claimAndRead(phone: OrderClient, order: { orderId: string; claimToken: string }) {
  const { orderId } = order
  const { challengeToken } = await phone.claim(order)
  const wallet = makeWallet()
  const { message } = await phone.challenge({ orderId, challengeToken })
  const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
  return { orderId, challengeToken, proof }
}

describe.skipIf(redisUrl === undefined)('on Redis', () => {
  test('a watcher whose subscription to Redis is cut misses nothing and hears nothing twice', async () => {
    await using redis = await RedisServer.start()
    const options = { store: redis.url, secret, enforceOrigin: false }
    const [one, two] = [await startService(options), await startService(options)]
    const [desktop, phone] = [orderClients.gRPC!(one.url), orderClients.REST!(two.url)]
    for (let round = 0; round < 5; round++) {
      const order = await desktop.start('sign')
      const seen: Transition[] = []
      const watching = (async () => {
        for await (const event of desktop.watch(order, 0)) {
          seen.push(event)
          // Cut at another moment in every round.
          if (event.sequence === (round % 4) + 1) await redis.cli('client', 'kill', 'type', 'pubsub')
        }
      })()
      await phone.approve(await claimAndRead(phone, order))
      await desktop.finalize(order)
      await watching
      expect(seen.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
    }
  })

  test('1,000 watchers on one process each get their own events, and no other', async () => {
    await using redis = await RedisServer.start()
    const options = { store: redis.url, secret, enforceOrigin: false }
    const [one, two] = [await startService(options), await startService(options)]
    const desktop = orderClients['Connect over HTTP/2']!(one.url)
    const other = orderClients.REST!(two.url)
    const orders = await Promise.all(Array.from({ length: 1000 }, () => desktop.start('login')))
    const watches = orders.map(async (order) => {
      const seen: Transition[] = []
      for await (const event of desktop.watch(order, 0)) seen.push(event)
      return seen
    })
    // Awaited below; until then, a failure of another part is the one to hear of.
    for (const watch of watches) watch.catch(() => {})
    // Half are cancelled, half are claimed first, all through the other instance.
    await Promise.all(
      orders.map(async ({ orderId, claimToken, desktopToken }, i) => {
        if (i % 2 === 0) await other.claim({ orderId, claimToken })
        const { status } = await rest(two.url, '/cross-device/cancel', { orderId, desktopToken })
        expect(status).toBe(200)
      }),
    )
    for (const [i, watch] of watches.entries()) {
      const expected = i % 2 === 0 ? ['created', 'claimed', 'cancelled'] : ['created', 'cancelled']
      expect((await watch).map(({ status }) => status)).toEqual(expected)
    }
    expect((await redis.cli('pubsub', 'shardchannels')).trim()).toBe('')
    expect((await redis.cli('client', 'list', 'type', 'pubsub')).trim().split('\n').length).toBeLessThanOrEqual(2)
  })
})

describe('a stopping server asks its watchers to come back', () => {
  const start = () => spawnService({ COUNTERSIGN_STORE: 'sqlite::memory:', COUNTERSIGN_ENFORCE_ORIGIN: 'false' })

  test('over server-sent events', async () => {
    const service = await start()
    const { orderId, desktopToken } = await orderClients.REST!(service.url).start('login')
    const response = await fetch(`${service.url}/api/auth/cross-device/events?orderId=${orderId}`, {
      headers: { authorization: `Bearer ${desktopToken}` },
    })
    const text = response.text()
    onTestFinished(() => void text.catch(() => {}))
    expect(await service.stop('SIGTERM')).toBe(0)
    expect(await text).toMatch(/event: reconnect\ndata: \{.*"reconnect":true.*\}\n\n$/)
  })

  test.each([
    ['Connect over HTTP/1.1', (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
    ['gRPC', (baseUrl: string) => createGrpcTransport({ baseUrl })],
  ])('over %s', async (_name, makeTransport) => {
    const service = await start()
    const client = createClient(OrderService, makeTransport(service.url))
    const { orderId, desktopToken } = await client.startOrder({ kind: OrderKind.LOGIN })
    const seen: boolean[] = []
    let stopped: Promise<number | null> | undefined
    for await (const { reconnect } of client.watchOrder({ orderId, desktopToken })) {
      seen.push(reconnect)
      stopped ??= service.stop('SIGTERM')
    }
    expect(seen).toEqual([false, true])
    expect(await stopped).toBe(0)
  })
})
