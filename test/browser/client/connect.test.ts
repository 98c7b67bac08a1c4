import { create } from '@bufbuild/protobuf'
import { durationFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { expect, test } from 'vitest'
import { OrderStatus, WatchOrderResponseSchema } from '../../../gen/client/countersign/v1/order_service_pb.ts'
import { ErrorInfoSchema, RetryInfoSchema } from '../../../gen/client/google/rpc/error_details_pb.ts'
import { plain, toClientError } from '../../../src/browser/client/connect-client.ts'

function refusal(domain: string): ConnectError {
  return new ConnectError('no', Code.ResourceExhausted, undefined, [
    { desc: ErrorInfoSchema, value: { reason: 'RATE_LIMITED', domain } },
    { desc: RetryInfoSchema, value: { retryDelay: durationFromMs(1500) } },
  ])
}

test('a reason counts only when it is this service\u2019s', () => {
  const cause = refusal('countersign')
  expect(toClientError(cause, undefined)).toMatchObject({
    code: 'RATE_LIMITED',
    retryAfterMs: 1500,
    message: 'no',
    cause,
  })
  expect(toClientError(refusal('another.example'), undefined)).toMatchObject({ code: 'UNEXPECTED_ANSWER' })
})

test.each([
  ['fetch failed', new ConnectError('x', Code.Unknown, undefined, undefined, new TypeError('fetch failed')), 'NETWORK'],
  ['a proxy does not reach the service', new ConnectError('HTTP 502', Code.Unavailable), 'NETWORK'],
  ['the time was up', new ConnectError('timeout', Code.Canceled), 'NETWORK'],
  ['a stream was cut', 'missing EndStreamResponse', 'NETWORK'],
  [
    'a page that is not the service',
    new ConnectError('unsupported content type text/html', Code.Unknown),
    'UNEXPECTED_ANSWER',
  ],
  ['a path that is not there', new ConnectError('HTTP 404', Code.Unimplemented), 'UNEXPECTED_ANSWER'],
])('%s', (_, thrown, code) => {
  expect(toClientError(thrown, undefined).code).toBe(code)
})

test('every status of an order has its name', () => {
  const { UNSPECIFIED: _, ...statuses } = OrderStatus
  for (const [name, status] of Object.entries(statuses)) {
    const message = create(WatchOrderResponseSchema, { status: status as OrderStatus })
    expect(plain<{ status: string }>(message).status).toBe(name.toLowerCase())
  }
})
