import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readEventStream } from '../../src/browser/client/event-stream.ts'
import { hasPart } from '../support/optional.ts'
import { RedisServer } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { spawnService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'

const origin = { origin: 'https://app.example' }
const common = {
  COUNTERSIGN_TRUSTED_ORIGINS: origin.origin,
  COUNTERSIGN_SECRET: 'a secret for tests and for nothing else',
}

/** What a watcher is told: the name of the event, which is empty for a transition, the status and the sequence. */
type Told = readonly [name: string, status: string, sequence: number]

/** Watches an order as a desktop does. */
async function* watch(url: string, order: { orderId: string; desktopToken: string }, after?: number) {
  const leaving = new AbortController()
  const headers = { ...origin, authorization: `Bearer ${order.desktopToken}` }
  const { body } = await fetch(`${url}/api/auth/cross-device/events?orderId=${order.orderId}`, {
    headers: after === undefined ? headers : { ...headers, 'last-event-id': String(after) },
    signal: leaving.signal,
  })
  try {
    for await (const { name, data } of readEventStream(body!)) {
      const { status, sequence } = JSON.parse(data)
      yield [name === 'message' ? '' : name, status, sequence] satisfies Told
    }
  } finally {
    leaving.abort()
  }
}

/**
 * Watches an order on one process while another one moves it on, and checks what the watcher is told until it is
 * approved.
 */
async function watchWhileAnotherProcessApproves(watching: string, changing: string): Promise<void> {
  const call = async (path: string, body?: object, headers: Record<string, string> = {}) => {
    const { status, json } = await rest(changing, path, body, { ...origin, ...headers })
    expect(status).toBe(200)
    return json
  }
  const order = await call('/cross-device/start', { kind: 'sign' })
  const { orderId, claimToken } = order
  const told: Told[] = []
  let changingMs = 0
  for await (const event of watch(watching, order)) {
    told.push(event)
    if (event[0] === '' && event[1] === 'created') {
      const startedAt = performance.now()
      const { challengeToken } = await call('/cross-device/claim', { orderId, claimToken })
      const authorization = `Bearer ${challengeToken}`
      const { message } = await call(`/cross-device/challenge?orderId=${orderId}`, undefined, { authorization })
      const wallet = makeWallet()
      const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
      await call('/cross-device/approve', { orderId, challengeToken, proof })
      changingMs = performance.now() - startedAt
    }
    if (event[1] === 'approved') break
  }
  // When a heartbeat was due, the order was read again. Each step came in its place, as an event of its own and in
  // order, and no heartbeat before that said what was no longer so. On a machine that is so slow, one may have come
  // before the first step.
  const firstHeartbeatMs = 7_500
  expect(changingMs < firstHeartbeatMs ? told : told.filter(([name]) => name === '')).toEqual([
    ['', 'created', 1],
    ['', 'claimed', 2],
    ['', 'waiting_user', 3],
    ['', 'approved', 4],
  ])
  for await (const event of watch(watching, order, 4)) {
    expect(event).toEqual(['heartbeat', 'approved', 4])
    break
  }
}

/** A proxy to a Redis server that loses each wake-up and nothing else, so that neither side notices. */
async function startLossyProxy(targetPort: number): Promise<{ readonly url: string; lost(): number }> {
  let lost = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(targetPort, '127.0.0.1')
    client.pipe(upstream)
    upstream.on('data', (chunk) => {
      if (chunk.includes('smessage')) lost++
      else client.write(chunk)
    })
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, lost: () => lost }
}

test('a watcher whose wake-up is lost hears of everything with its next heartbeat', { timeout: 60_000 }, async () => {
  // Nobody tells a process what another one changes in a SQLite file.
  const onSqlite = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const environment = { ...common, COUNTERSIGN_STORE: `sqlite:${join(folder, 'countersign.db')}` }
    const one = await spawnService(environment)
    const two = await spawnService(environment)
    await watchWhileAnotherProcessApproves(one.url, two.url)
  }

  const onRedis = async () => {
    const redis = await RedisServer.start()
    onTestFinished(() => redis[Symbol.asyncDispose]())
    const proxy = await startLossyProxy(redis.port)
    const one = await spawnService({ ...common, COUNTERSIGN_STORE: proxy.url })
    const two = await spawnService({ ...common, COUNTERSIGN_STORE: redis.url })
    await watchWhileAnotherProcessApproves(one.url, two.url)
    expect(proxy.lost()).toBeGreaterThan(0)
  }

  await Promise.all([onSqlite(), ...(hasPart('redis-server') ? [onRedis()] : [])])
})
