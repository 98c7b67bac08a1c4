import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect, onTestFinished, test } from 'vitest'
import { WatchOrderRequestSchema } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { openCounted } from '../support/counted-store.ts'
import type { Holder } from '../support/orders.ts'
import { rest } from '../support/rest.ts'
import { envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'

const path = '/countersign.v1.OrderService/WatchOrder'

function bodyOf(order: Holder): Buffer {
  return envelope(toBinary(WatchOrderRequestSchema, create(WatchOrderRequestSchema, order)))
}

/** Watches over HTTP/1.1. Resolves, once the first event is there, with how to leave. */
async function overHttp1(url: string, order: Holder, contentType: string | undefined): Promise<() => void> {
  const request =
    contentType === undefined
      ? http.get(`${url}/api/auth/cross-device/events?orderId=${order.orderId}`, {
          headers: { authorization: `Bearer ${order.desktopToken}` },
        })
      : http.request(url + path, { method: 'POST', headers: { 'content-type': contentType } }).end(bodyOf(order))
  request.on('error', () => {})
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  response.on('error', () => {})
  await once(response, 'data')
  return () => request.destroy()
}

/** The same over HTTP/2. */
async function overHttp2(url: string, order: Holder, leave: 'stream' | 'connection'): Promise<() => void> {
  const session = http2.connect(url)
  onTestFinished(() => session.destroy())
  session.on('error', () => {})
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  stream.on('error', () => {})
  stream.end(bodyOf(order))
  await once(stream, 'data')
  return leave === 'stream' ? () => stream.close(http2.constants.NGHTTP2_CANCEL) : () => session.destroy()
}

test.each<[string, (url: string, order: Holder) => Promise<() => void>]>([
  ['server-sent events', (url, order) => overHttp1(url, order, undefined)],
  ['Connect', (url, order) => overHttp1(url, order, 'application/connect+proto')],
  ['gRPC-Web', (url, order) => overHttp1(url, order, 'application/grpc-web+proto')],
  ['gRPC, by cancelling the call', (url, order) => overHttp2(url, order, 'stream')],
  ['gRPC, with its connection', (url, order) => overHttp2(url, order, 'connection')],
])('the watch of a client that leaves ends: %s', async (_, watch) => {
  const { store, watches } = await openCounted()
  const { url } = await startService({ store })
  const order = (await rest(url, '/cross-device/start', { kind: 'login' })).json
  const leave = await watch(url, order)
  expect(watches()).toBe(1)
  leave()
  await expect.poll(watches, { timeout: 7000 }).toBe(0)
})
