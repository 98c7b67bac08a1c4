import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect, onTestFinished, test } from 'vitest'
import {
  OrderService,
  WatchOrderRequestSchema,
  WatchOrderResponseSchema,
} from '../../gen/server/countersign/v1/order_service_pb.ts'
import { silentLogger } from '../../src/base/log.ts'
import { storedOrders } from '../../src/core/order/records.ts'
import type { NodeRequest } from '../../src/http/exchange.ts'
import { createCountersign } from '../../src/index.ts'
import { openStore } from '../../src/store/open.ts'
import type { NodeResponse } from '../../src/wire/output.ts'
import { envelope } from '../support/rpc-call.ts'

const eventCount = 500
/** Makes each event about 30 KB, so that all together are more than what sockets hold. No caller can choose as much. */
const returnTo = `/${'x'.repeat(30_000)}`

/**
 * A service on a server of the test's own, so that what waits in its responses can be seen, and an order with a very
 * long history. An order of real life has five steps, which fit into any buffer.
 */
async function startOrderWithLongHistory(makeServer: (listener: Listener) => Server) {
  const store = await openStore('sqlite::memory:')
  const service = await createCountersign({
    store,
    logger: silentLogger,
    rateLimit: false,
    enforceOrigin: false,
    publicUrl: 'http://localhost',
  })
  const responses: NodeResponse[] = []
  const server = makeServer((request, response) => {
    responses.push(response)
    service.handler(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    await service.close(100)
    await store.close()
  })
  const { port } = server.address() as AddressInfo
  const start = createServer((request, response) => service.handler(request, response)).listen(0, '127.0.0.1')
  await once(start, 'listening')
  const answer = await fetch(`http://127.0.0.1:${(start.address() as AddressInfo).port}/api/auth/cross-device/start`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'login' }),
  })
  const { orderId, desktopToken } = (await answer.json()) as { orderId: string; desktopToken: string }
  start.close()
  const records = storedOrders(store)
  const { order, version } = (await records.load(orderId))!
  const history = Array.from({ length: eventCount }, (_, i) => ({
    sequence: i + 1,
    status: i + 1 === eventCount ? ('finalized' as const) : ('approved' as const),
    at: Date.now(),
  }))
  expect(await records.compareAndSet({ ...order, returnTo, status: 'finalized', history }, version)).toBe(true)
  return { port, orderId, desktopToken, responses }
}

type Listener = (request: NodeRequest, response: NodeResponse) => void

/** The most bytes that a response holds while its reader does not read. */
async function mostHeld(response: NodeResponse): Promise<number> {
  let most = 0
  for (let i = 0; i < 25; i++) {
    await pause(20)
    const stream = 'stream' in response ? response.stream : response
    most = Math.max(most, stream.writableLength)
  }
  return most
}

const inOrder = Array.from({ length: eventCount }, (_, i) => i + 1)

/** A few events more than a stream of Node.js buffers (64 KiB), and far from the 15 MB of all. */
const mostBytes = 128 * 1024

test('a reader of server-sent events that stops for a while costs no memory, and misses and repeats nothing', async () => {
  const { port, orderId, desktopToken, responses } = await startOrderWithLongHistory((listener) =>
    createServer(listener),
  )
  const request = get({
    host: '127.0.0.1',
    port,
    path: `/api/auth/cross-device/events?orderId=${orderId}`,
    headers: { authorization: `Bearer ${desktopToken}`, 'last-event-id': '0' },
  })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  expect(response.statusCode).toBe(200)
  response.pause()
  expect(await mostHeld(responses[0]!)).toBeLessThan(mostBytes)
  expect(responses[0]!.writableEnded).toBe(false)
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const ids = [
    ...Buffer.concat(chunks)
      .toString()
      .matchAll(/^id: (\d+)$/gm),
  ].map(([, id]) => Number(id))
  expect(ids).toEqual(inOrder)
})

test('nor does a reader over gRPC', async () => {
  const { port, orderId, desktopToken, responses } = await startOrderWithLongHistory((listener) =>
    createHttp2Server(listener),
  )
  const session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  const stream = session.request({
    ':method': 'POST',
    ':path': `/${OrderService.typeName}/WatchOrder`,
    'content-type': 'application/grpc+proto',
    te: 'trailers',
  })
  const message = create(WatchOrderRequestSchema, { orderId, desktopToken, afterSequence: 0 })
  stream.end(envelope(toBinary(WatchOrderRequestSchema, message)))
  const [headers] = await once(stream, 'response')
  expect(headers['grpc-status']).toBeUndefined()
  expect(await mostHeld(responses[0]!)).toBeLessThan(mostBytes)
  expect(responses[0]!.writableEnded).toBe(false)
  let trailers: Record<string, unknown> = {}
  stream.on('trailers', (received) => {
    trailers = received
  })
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const sequences: number[] = []
  for (let at = 0; at < body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1)
    sequences.push(fromBinary(WatchOrderResponseSchema, body.subarray(at + 5, end)).sequence)
    at = end
  }
  expect(sequences).toEqual(inOrder)
  expect(trailers['grpc-status']).toBe('0')
})
