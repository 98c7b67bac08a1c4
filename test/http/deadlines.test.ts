import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { expect, test } from 'vitest'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { keptLog } from '../support/log-lines.ts'
import { rest } from '../support/rest.ts'
import { callRaw, envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const { watchOrder } = OrderService.method

async function startOrder(url: string): Promise<{ readonly orderId: string; readonly desktopToken: string }> {
  const { orderId, desktopToken } = (await rest(url, '/cross-device/start', { kind: 'login' })).json
  return { orderId, desktopToken }
}

test.each([
  ['Connect', 'application/connect+json', { 'connect-timeout-ms': '1000' }],
  ['gRPC', 'application/grpc+json', { 'grpc-timeout': '1000m' }],
])('a watch over %s ends with deadline_exceeded at its caller\u2019s deadline', async (_name, contentType, headers) => {
  const { logger, lines } = keptLog()
  const { url } = await startService({ logger })
  const body = envelope(Buffer.from(JSON.stringify(await startOrder(url))))
  const startedAt = performance.now()
  const { messages, failure } = await callRaw(url, watchOrder, contentType, body, headers)
  expect(performance.now() - startedAt).toBeGreaterThan(990)
  expect(messages).toMatchObject([{ sequence: 1, status: 'ORDER_STATUS_CREATED' }])
  expect(failure?.code).toBe('deadline_exceeded')
  // Nobody did anything wrong.
  expect(lines.filter(({ text }) => text !== 'audit')).toEqual([])
})

test('a gRPC client over HTTP/2 hears of its own deadline in time', async () => {
  const { url } = await startService()
  const client = createClient(OrderService, createGrpcTransport({ baseUrl: url }))
  const statuses: number[] = []
  const watch = async (): Promise<void> => {
    for await (const { status } of client.watchOrder(await startOrder(url), { timeoutMs: 1000 })) statuses.push(status)
  }
  await expect(watch()).rejects.toMatchObject({ message: expect.stringMatching(/^\[deadline_exceeded\]/) })
  expect(statuses).toEqual([1])
})

test.each([
  ['Connect', 'months', 'application/connect+json', { 'connect-timeout-ms': '9999999999' }],
  ['gRPC', 'millennia', 'application/grpc+json', { 'grpc-timeout': '99999999H' }],
])('a watch over %s whose deadline is %s away is not cut short', async (_name, _time, contentType, headers) => {
  const { url } = await startService()
  const order = await startOrder(url)
  const body = envelope(Buffer.from(JSON.stringify(order)))
  const watch = callRaw(url, watchOrder, contentType, body, headers)
  await pause(100)
  await rest(url, '/cross-device/cancel', order)
  const { messages, failure } = await watch
  expect(failure).toBeUndefined()
  expect(messages).toHaveLength(2)
})

test('a sign-in whose deadline is months away waits for a slow application', async () => {
  const resolveLogin = async () => {
    await pause(50)
    return { id: 'a user' }
  }
  const { url } = await startService({ resolveLogin })
  const body = Buffer.from(JSON.stringify(proofOf(makeWallet(), (await rest(url, '/wallet/nonce', {})).json)))
  const { failure } = await callRaw(url, SignInService.method.verifySignIn, 'application/json', body, {
    'connect-timeout-ms': '9999999999',
  })
  expect(failure).toBeUndefined()
})

test('a watch without any time is over before the order is looked for', async () => {
  const { url } = await startService()
  const body = envelope(Buffer.from('{"orderId":"unknown","desktopToken":"x"}'))
  const { failure } = await callRaw(url, watchOrder, 'application/connect+json', body, { 'connect-timeout-ms': '0' })
  expect(failure?.code).toBe('deadline_exceeded')
})

test.each([
  ['without any time, over Connect', { 'connect-timeout-ms': '0' }, 'deadline_exceeded'],
  ['without any time, over gRPC', { 'grpc-timeout': '0m' }, 'deadline_exceeded'],
  ['whose deadline is a word, over Connect', { 'connect-timeout-ms': 'abc' }, 'invalid_argument'],
  ['whose deadline has too many digits, over Connect', { 'connect-timeout-ms': '12345678901' }, 'invalid_argument'],
  ['whose deadline is negative, over Connect', { 'connect-timeout-ms': '-1' }, 'invalid_argument'],
])('a call %s has no effect', async (_name, headers, code) => {
  const { url } = await startService()
  const proof = proofOf(makeWallet(), (await rest(url, '/wallet/nonce', {})).json)
  const json = Buffer.from(JSON.stringify(proof))
  const [type, body] =
    'grpc-timeout' in headers ? ['application/grpc+json', envelope(json)] : ['application/json', json]
  const { failure } = await callRaw(url, SignInService.method.verifySignIn, type, body, headers)
  expect(failure?.code).toBe(code)
  expect((await rest(url, '/wallet/verify', proof)).status).toBe(200)
})
