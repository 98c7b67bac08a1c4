import { request } from 'node:http'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect, onTestFinished, test } from 'vitest'
import { OrderService, OrderStatus } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { rest } from '../support/rest.ts'
import { callRaw, envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'

const type = 'application/grpc-web-text'
const { issueNonce } = SignInService.method
const { watchOrder } = OrderService.method

test.each([
  ['in one piece', (message: Buffer) => envelope(message).toString('base64')],
  // As clients do that encode each piece as they make it.
  [
    'in two pieces with padding',
    (message: Buffer) => `${envelope(message).subarray(0, 5).toString('base64')}${message.toString('base64')}`,
  ],
])('a unary call as base64 %s is answered as base64', async (_name, encode) => {
  const { url } = await startService()
  const message = Buffer.from(toBinary(issueNonce.input, create(issueNonce.input, { appName: 'Countersign' })))
  const { status, headers, messages } = await callRaw(url, issueNonce, type, Buffer.from(encode(message)))
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('application/grpc-web-text+proto')
  expect(headers.get('grpc-status')).toBe('0')
  expect(messages).toMatchObject([{ action: 'auth.login', origin: url }])
})

test('a failure comes as base64 as well', async () => {
  const { url } = await startService()
  const message = Buffer.from(toBinary(issueNonce.input, create(issueNonce.input, { appName: 'Another' })))
  const { failure } = await callRaw(url, issueNonce, type, Buffer.from(envelope(message).toString('base64')))
  expect(failure).toMatchObject({ code: 'invalid_argument', reason: 'APP_NAME_MISMATCH' })
})

test('a watch arrives live, and each chunk of it decodes by itself', async () => {
  const { url } = await startService()
  const { orderId, desktopToken } = (await rest(url, '/cross-device/start', { kind: 'login' })).json
  const input = toBinary(watchOrder.input, create(watchOrder.input, { orderId, desktopToken }))
  const chunks: Buffer[] = []
  const ended = new Promise<void>((resolve, reject) => {
    const path = `/${OrderService.typeName}/${watchOrder.name}`
    const call = request(url + path, { method: 'POST', headers: { 'content-type': type } }, (response) => {
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', resolve)
    })
    onTestFinished(() => void call.destroy())
    call.on('error', reject)
    call.end(envelope(input).toString('base64'))
  })
  // The first event is here while the order goes on.
  await expect.poll(() => chunks.length).toBeGreaterThan(0)
  await rest(url, '/cross-device/cancel', { orderId, desktopToken })
  await ended
  const frames = chunks.flatMap((chunk) => {
    const text = chunk.toString('latin1')
    expect(text).toMatch(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/)
    return framesOf(Buffer.from(text, 'base64'))
  })
  const trailers = frames.pop()
  expect(trailers?.flags).toBe(0x80)
  expect(trailers?.data.toString()).toContain('grpc-status: 0')
  expect(frames.map(({ data }) => fromBinary(watchOrder.output, data).status)).toEqual([
    OrderStatus.CREATED,
    OrderStatus.CANCELLED,
  ])
})

/** Whole messages, one after the other, and nothing else. */
function framesOf(bytes: Buffer): { flags: number; data: Buffer }[] {
  if (bytes.length === 0) return []
  const end = 5 + bytes.readUInt32BE(1)
  expect(bytes.length).toBeGreaterThanOrEqual(end)
  return [{ flags: bytes.readUInt8(0), data: bytes.subarray(5, end) }, ...framesOf(bytes.subarray(end))]
}
