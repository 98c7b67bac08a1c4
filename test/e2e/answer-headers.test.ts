import { create, toBinary, toJsonString } from '@bufbuild/protobuf'
import { describe, expect, onTestFinished, test } from 'vitest'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { crossDevice, walletSignIn } from '../../src/better-auth/index.ts'
import { restEndpoints } from '../../src/http/rest/endpoints.ts'
import { serviceOptionsPath } from '../../src/shared/rest-paths.ts'
import { call } from '../better-auth/calls.ts'
import { makeAuth, startAuth } from '../better-auth/support.ts'
import { Signer } from '../core/order/support.ts'
import { approveOrder } from '../support/flows.ts'
import { sendRaw } from '../support/raw-http.ts'
import { http2Sender } from '../support/raw-http2.ts'
import { okay, rest } from '../support/rest.ts'
import { envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'

const methods = [SignInService, OrderService, SessionService].flatMap((service) => service.methods)

/** The content types of RPCs, with whether messages are in envelopes. */
const types = [
  ['application/json', false],
  ['application/proto', false],
  ['application/connect+json', true],
  ['application/connect+proto', true],
  ['application/grpc-web+proto', true],
  ['application/grpc-web-text+proto', true],
  ['application/grpc+proto', true],
] as const

/** An order that a phone has approved, and the requests by which its desktop gets and watches the result. */
async function approvedOrder(url: string) {
  const order = okay(await rest(url, '/cross-device/start', { kind: 'login' }))
  await approveOrder(url, order)
  return { orderId: order.orderId as string, desktopToken: order.desktopToken as string }
}

const isUncached = (headers: Headers): boolean => (headers.get('cache-control') ?? '').split(', ').includes('no-store')

describe('no cache may keep', () => {
  test('the answer of any RPC, in every form of request', async () => {
    const { url } = await startService()
    const port = Number(new URL(url).port)
    const overHttp2 = http2Sender(url)
    for (const method of methods) {
      for (const [type, enveloped] of types) {
        const message = create(method.input)
        const bytes = type.includes('json')
          ? Buffer.from(toJsonString(method.input, message))
          : Buffer.from(toBinary(method.input, message))
        const wrapped = enveloped ? envelope(bytes) : bytes
        const body = type.includes('-text') ? Buffer.from(wrapped.toString('base64')) : wrapped
        const unary = method.methodKind === 'unary'
        if (!type.includes('grpc') && unary === enveloped) continue
        const target = `/${method.parent.typeName}/${method.name}`
        const headers = [
          ['host', `localhost:${port}`],
          ['connection', 'close'],
          ['content-type', type],
        ] as const
        const request = { method: 'POST', target, version: '1.1', headers, body } as const
        const answers = [await overHttp2(request), ...(/grpc\+/.test(type) ? [] : [await sendRaw(port, request)])]
        for (const answer of answers) {
          expect(isUncached(answer?.headers ?? new Headers()), `${target} as ${type}: ${answer?.status}`).toBe(true)
        }
      }
    }
  })

  test('what a call hands out that succeeds: a challenge, a token, a session', async () => {
    const { url } = await startService()
    const post = async (rpc: string, body: object, headers: Record<string, string> = {}) =>
      await fetch(`${url}/countersign.v1.${rpc}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
    const nonce = await post('SignInService/IssueNonce', {})
    const { nonceId, message } = (await nonce.json()) as { nonceId: string; message: string }
    const verified = await post('SignInService/VerifySignIn', { nonceId, ...new Signer().prove(message) })
    const { token } = (await verified.json()) as { token: string }
    const session = await post('SessionService/GetCurrentSession', {}, { authorization: `Bearer ${token}` })
    const introspected = await post('SessionService/IntrospectSession', { token })
    const finalized = await post('OrderService/FinalizeOrder', await approvedOrder(url))
    for (const answer of [nonce, verified, session, introspected, finalized]) {
      expect(answer.status).toBe(200)
      expect(isUncached(answer.headers), answer.url).toBe(true)
    }
  })

  test('the answer of any REST endpoint, of the health checks, and of a path that nothing is at', async () => {
    const { url } = await startService()
    const endpoints = restEndpoints({ basePath: '', endpointPrefix: '/wallet' })
    for (const { httpMethod, path } of endpoints) {
      for (const method of [httpMethod, 'PUT']) {
        const body = method === 'GET' ? {} : { body: '{}' }
        const headers = { 'content-type': 'application/json' }
        const answer = await fetch(`${url}/api/auth${path}`, { method, headers, ...body })
        expect(isUncached(answer.headers), `${method} ${path}: ${answer.status}`).toBe(true)
        await answer.body?.cancel()
      }
    }
    const order = await approvedOrder(url)
    expect(isUncached((await rest(url, '/cross-device/finalize', order)).headers)).toBe(true)
    for (const path of ['/healthz', '/readyz', '/nothing', '/']) {
      const answer = await fetch(url + path)
      expect(isUncached(answer.headers), path).toBe(true)
    }
    // The end of a watch, which a client asks for after the last event.
    const headers = { authorization: `Bearer ${order.desktopToken}`, 'last-event-id': '5' }
    const ended = await fetch(`${url}/api/auth/cross-device/events?orderId=${order.orderId}`, { headers })
    expect([ended.status, isUncached(ended.headers)]).toEqual([204, true])
  })

  test('the answer of any endpoint of Better Auth’s plugins', async () => {
    const auth = await makeAuth()
    const endpoints = [walletSignIn(), crossDevice()].flatMap((plugin) => Object.values(plugin.endpoints))
    for (const { path, options } of endpoints) {
      const isInternal = 'SERVER_ONLY' in (options.metadata ?? {})
      // The approval page has tests of its own, and what it is made of may be kept, as what is the same for all.
      const isPage = Array.isArray(options.method)
      if (isInternal || isPage || path === serviceOptionsPath) continue
      const { headers, status } = await call(auth, String(path), options.method === 'GET' ? undefined : {})
      expect(isUncached(headers), `${path}: ${status}`).toBe(true)
    }
  })
})

test('no browser may guess a content type, for any request and any outcome', async () => {
  const { url } = await startService()
  const post = (path: string, type: string) =>
    fetch(url + path, { method: 'POST', headers: { 'content-type': type }, body: '{}' })
  const answers = [
    await post('/api/auth/wallet/nonce', 'application/json'),
    await post('/api/auth/wallet/verify', 'application/json'),
    await post('/api/auth/wallet/nonce', 'text/html'),
    await post('/countersign.v1.SignInService/IssueNonce', 'application/json'),
    await post('/countersign.v1.SignInService/VerifySignIn', 'application/json'),
    await post('/countersign.v1.SignInService/IssueNonce', 'text/html'),
    await post('/countersign.v1.SignInService/IssueNonce', 'application/grpc-web+proto'),
    await post('/nothing', 'application/json'),
    await fetch(`${url}/api/auth/session`),
    await fetch(`${url}/api/auth/cross-device/events?orderId=<b>`),
    await fetch(`${url}/healthz`),
    await fetch(`${url}/readyz`),
    await fetch(`${url}/`),
    await fetch(`${url}/<script>`),
  ]
  for (const answer of answers) {
    expect(answer.headers.get('x-content-type-options'), `${answer.status} ${answer.url}`).toBe('nosniff')
    expect(answer.headers.get('content-type')).not.toMatch(/^text\/html(?!; charset=utf-8$)/)
  }
  // A path is repeated in the refusal, which no browser may take for a page.
  const [last] = answers.slice(-1)
  expect(last?.headers.get('content-type')).toBe('application/json')
})

describe('a stream of server-sent events says what it is, and that nothing on its way may keep or change it', () => {
  const expected = {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
  }
  const watch = async (url: string) => {
    const { orderId, desktopToken } = await approvedOrder(url)
    const leaving = new AbortController()
    onTestFinished(() => leaving.abort())
    const response = await fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}`, {
      // Compression would hold events back.
      headers: { authorization: `Bearer ${desktopToken}`, 'accept-encoding': 'gzip, br' },
      signal: leaving.signal,
    })
    expect(response.status).toBe(200)
    return Object.fromEntries(response.headers)
  }

  test('over REST', async () => {
    const { url } = await startService()
    const headers = await watch(url)
    expect(headers).toMatchObject({ ...expected, 'x-content-type-options': 'nosniff' })
    expect(headers).not.toHaveProperty('content-encoding')
  })

  test('from Better Auth’s plugin', async () => {
    const { url } = await startAuth()
    expect(await watch(url)).toMatchObject(expected)
  })

  test('and so does a stream of an RPC', async () => {
    const { url } = await startService()
    const { orderId, desktopToken } = await approvedOrder(url)
    const method = OrderService.method.watchOrder
    const json = Buffer.from(toJsonString(method.input, create(method.input, { orderId, desktopToken })))
    const response = await fetch(`${url}/${OrderService.typeName}/WatchOrder`, {
      method: 'POST',
      headers: { 'content-type': 'application/connect+json', 'connect-accept-encoding': 'gzip' },
      body: new Uint8Array(envelope(json)),
    })
    expect(response.headers.get('content-type')).toBe('application/connect+json')
    expect(isUncached(response.headers)).toBe(true)
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    await response.body?.cancel()
  })
})
