import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { Health } from '../../gen/server/grpc/health/v1/health_pb.ts'
import { keptLog } from '../support/log-lines.ts'
import { memoryStore } from '../support/memory-store.ts'
import type { RpcAnswer } from '../support/rpc-answer.ts'
import { callRaw, envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'

const { issueNonce } = SignInService.method
const { watchOrder } = OrderService.method

const undecodable = Buffer.from([0x0a, 0x7f, 0x78])
const truncatedGzip = gzipSync('{"appName":"Countersign"}').subarray(0, -9)
const asGzip = { 'content-encoding': 'gzip' }

describe('a message that cannot be read is the caller\u2019s mistake', () => {
  test.each<[string, (url: string) => Promise<RpcAnswer>]>([
    ['bytes, over Connect', (url) => callRaw(url, issueNonce, 'application/proto', undecodable)],
    ['JSON, over Connect', (url) => callRaw(url, issueNonce, 'application/json', Buffer.from('{"appName":'))],
    ['gzip cut off, over Connect', (url) => callRaw(url, issueNonce, 'application/json', truncatedGzip, asGzip)],
    [
      'undecodable bytes in gzip, over Connect',
      (url) => callRaw(url, issueNonce, 'application/proto', gzipSync(undecodable), asGzip),
    ],
    [
      'JSON in a stream over Connect',
      (url) => callRaw(url, watchOrder, 'application/connect+json', envelope(Buffer.from('{"orderId":7}'))),
    ],
    [
      'bytes in a stream over Connect',
      (url) => callRaw(url, watchOrder, 'application/connect+proto', envelope(undecodable)),
    ],
    [
      'gzip cut off, in a stream over Connect',
      (url) =>
        callRaw(url, watchOrder, 'application/connect+json', envelope(truncatedGzip, 1), {
          'connect-content-encoding': 'gzip',
        }),
    ],
    [
      'an envelope cut off',
      (url) => callRaw(url, watchOrder, 'application/connect+json', Buffer.from([0, 0, 0, 0, 9])),
    ],
    ['bytes in a stream over gRPC', (url) => callRaw(url, watchOrder, 'application/grpc', envelope(undecodable))],
    [
      'bytes in a stream over gRPC-Web',
      (url) => callRaw(url, watchOrder, 'application/grpc-web', envelope(undecodable)),
    ],
    [
      'an emoji in place of JSON, over gRPC',
      (url) => callRaw(url, issueNonce, 'application/grpc+json', envelope(Buffer.from('\u{1f600}{}'))),
    ],
    [
      'an emoji in place of JSON, over gRPC-Web',
      (url) => callRaw(url, issueNonce, 'application/grpc-web+json', envelope(Buffer.from('\u{1f600}{}'))),
    ],
    ['bytes, to the health check', (url) => callRaw(url, Health.method.check, 'application/proto', undecodable)],
    [
      'an emoji in place of JSON, to the health check over gRPC',
      (url) => callRaw(url, Health.method.watch, 'application/grpc+json', envelope(Buffer.from('\u{1f600}{}'))),
    ],
    ['bytes, over gRPC', (url) => callRaw(url, issueNonce, 'application/grpc', envelope(undecodable))],
    [
      'gzip cut off, over gRPC',
      (url) => callRaw(url, issueNonce, 'application/grpc', envelope(truncatedGzip, 1), { 'grpc-encoding': 'gzip' }),
    ],
    [
      'text that is not base64, over gRPC-Web',
      (url) => callRaw(url, watchOrder, 'application/grpc-web-text', Buffer.from('$$$$')),
    ],
  ])('%s', async (_name, call) => {
    const { logger, lines } = keptLog()
    const { url } = await startService({ logger })
    const { status, headers, failure } = await call(url)
    expect(failure).toMatchObject({ code: 'invalid_argument', reason: 'INVALID_REQUEST' })
    const type = headers.get('content-type') ?? ''
    if (type === 'application/json') expect(status).toBe(400)
    if (type.includes('grpc')) expect(headers.get('grpc-status')).toBe('3')
    expect(lines.map(({ level, text }) => [level, text])).toEqual([['info', 'request refused']])
    expect(lines[0]?.fields).toMatchObject({ reason: 'INVALID_REQUEST', method: expect.stringMatching(/\w+\/\w+$/) })
    expect(JSON.stringify(lines)).not.toMatch(/\bat .+:\d+:\d+/)
  })
})

test('a gzipped Connect call that says its length is served', async () => {
  const { url } = await startService()
  const body = gzipSync('{"appName":"Countersign"}')
  const { status, messages } = await callRaw(url, issueNonce, 'application/json', body, asGzip)
  expect([status, messages[0]]).toEqual([200, expect.objectContaining({ action: 'auth.login' })])
})

test('JSON that gives a name two values is refused', async () => {
  const { url } = await startService()
  const body = Buffer.from('{"appName":"Another","appName":"Countersign"}')
  const { failure } = await callRaw(url, issueNonce, 'application/json', body)
  expect(failure).toMatchObject({ reason: 'INVALID_REQUEST' })
})

test('a fault of the server’s own in a stream has a reference, under which the log has the cause', async () => {
  const store = await memoryStore()
  await store.create('order:{rubbish}', 'not JSON', { ttlMs: 60_000 })
  const { logger, lines } = keptLog()
  const { url } = await startService({ logger, store })
  const message = envelope(Buffer.from('{"orderId":"rubbish","desktopToken":"x"}'))
  const { failure } = await callRaw(url, watchOrder, 'application/grpc+json', message)
  expect(failure).toMatchObject({ code: 'internal', reason: 'INTERNAL' })
  const reference = failure?.metadata?.reference
  expect(reference).toMatch(/^[0-9a-f-]{36}$/)
  const errors = lines.filter(({ level }) => level === 'error')
  expect(errors.map(({ fields }) => fields.reference)).toEqual([reference])
  expect(errors[0]?.fields.cause).toMatch(/SyntaxError[\s\S]*\bat .+:\d+:\d+/)
})
