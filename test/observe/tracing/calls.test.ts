import { createServer } from 'node:http'
import { createClient, createRouterTransport, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { createGrpcWebTransport, createConnectTransport as createWebTransport } from '@connectrpc/connect-web'
import { type Baggage, propagation, type SpanContext, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { describe, expect, test } from 'vitest'
import { OrderService } from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { SignInService } from '../../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { readRequest } from '../../../src/base/request.ts'
import { CountersignError, type Host } from '../../../src/index.ts'
import { openTelemetry } from '../../../src/observe/opentelemetry/index.ts'
import { completeOrder } from '../../support/flows.ts'
import { mountService } from '../../support/mounted.ts'
import { orderClients } from '../../support/orders.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { stores } from '../../support/stores.ts'
import {
  callSpans,
  childNames,
  childrenOf,
  endedSpans,
  inClientSpan,
  registerSdk,
  traceHeaders,
} from '../../support/tracing.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'

registerSdk()

const passesOn: Interceptor = (next) => (request) => {
  for (const [name, value] of Object.entries(traceHeaders())) request.header.set(name, value)
  return next(request)
}

const interceptors = [passesOn]

/** Clients of each protocol that pass their trace on, and what the service's spans call the protocol. */
const transports = {
  connect: (baseUrl: string) => createWebTransport({ baseUrl, interceptors }),
  'connect over HTTP/2': (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: '2', interceptors }),
  'grpc-web': (baseUrl: string) => createGrpcWebTransport({ baseUrl, interceptors }),
  grpc: (baseUrl: string) => createGrpcTransport({ baseUrl, interceptors }),
}

/** Signs in, in a span of the client's own, whose context it resolves with. */
async function signIn(transport: ReturnType<typeof createGrpcTransport>): Promise<SpanContext> {
  const client = createClient(SignInService, transport)
  return await inClientSpan(async (span) => {
    const challenge = await client.issueNonce({})
    await client.verifySignIn(proofOf(makeWallet(), challenge))
    return span.spanContext()
  })
}

async function calls(count: number) {
  await expect.poll(() => callSpans().length).toBe(count)
  return callSpans()
}

test.each(Object.entries(transports))(
  'a call over %s continues the trace of its client, down to the store',
  async (protocol, transport) => {
    const { url } = await startService({ tracing: 'on' })
    const { traceId, spanId } = await signIn(transport(url))
    const [issued, verified] = await calls(2)
    for (const [span, rpc] of [
      [issued!, 'IssueNonce'],
      [verified!, 'VerifySignIn'],
    ] as const) {
      const method = `countersign.v1.SignInService/${rpc}`
      expect(span.name).toBe(method)
      expect(span.spanContext().traceId).toBe(traceId)
      expect(span.parentSpanContext).toMatchObject({ traceId, spanId, isRemote: true })
      const short = protocol.split(' ')[0]!
      expect(span.attributes).toEqual({
        'rpc.system.name': short === 'connect' ? 'connectrpc' : 'grpc',
        'rpc.method': method,
        'countersign.protocol': short,
        ...(short === 'connect' ? {} : { 'rpc.status_code': 'OK' }),
      })
      expect(span.status).toEqual({ code: SpanStatusCode.UNSET })
    }
    expect(childNames(issued!)).toEqual(['create'])
    expect(childNames(verified!)).toEqual(expect.arrayContaining(['take', 'verify nimiq', 'create']))
  },
)

test.each(stores)('a step at the store is a span of its own: $name', async ({ name, open }) => {
  const { url } = await startService({ tracing: 'on', ...(await open()) })
  await signIn(transports.grpc(url))
  const [, verified] = await calls(2)
  const take = childrenOf(verified!).find((span) => span.name === 'take')
  expect(take?.attributes).toEqual({ 'db.system.name': name.toLowerCase(), 'db.operation.name': 'take' })
  expect(take?.kind).toBe(name === 'Redis' ? SpanKind.CLIENT : SpanKind.INTERNAL)
})

test('a REST call with a traceparent header belongs to that trace', async () => {
  const { url } = await startService({ tracing: 'on' })
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const { status } = await rest(url, '/wallet/nonce', {}, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` })
  const [span] = await calls(1)
  expect(status).toBe(200)
  expect(span!.parentSpanContext).toMatchObject({ traceId, spanId: '00f067aa0ba902b7' })
  expect(span!.attributes).toMatchObject({ 'rpc.system.name': 'rest', 'countersign.protocol': 'rest' })
})

describe('mounted', () => {
  test('in a node server, a call continues the trace of its headers', async () => {
    const { url } = await mountService((service) => createServer((...both) => service().handler(...both)), {
      tracing: 'on',
    })
    const { traceId, spanId } = await signIn(transports.connect(url))
    for (const span of await calls(2)) expect(span.parentSpanContext).toMatchObject({ traceId, spanId })
  })

  test('by fetch or in a router, a call in a span of the application belongs to that', async () => {
    const { service } = await startService({ tracing: 'on', publicUrl: 'https://app.example' })
    const requested = new Request('https://app.example/api/auth/wallet/nonce', {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json', traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` },
    })
    const { traceId, spanId } = await inClientSpan(async (span) => {
      expect((await service.fetch(requested)).status).toBe(200)
      return span.spanContext()
    })
    const router = createRouterTransport(service.routes, { router: {}, transport: { interceptors: [] } })
    const own = await inClientSpan(async (span) => {
      await createClient(SignInService, router).issueNonce({}, { headers: { origin: 'https://app.example' } })
      return span.spanContext()
    })
    const [fetched, routed] = await calls(2)
    expect(fetched!.parentSpanContext).toMatchObject({ traceId, spanId })
    expect(routed!.parentSpanContext).toMatchObject({ traceId: own.traceId, spanId: own.spanId })
  })

  test('a span that has ended is not the parent of what is called from its left-overs', async () => {
    const { service } = await startService({ tracing: 'on', publicUrl: 'https://app.example' })
    await inClientSpan(async (span) => {
      span.end()
      await service.fetch(new Request('https://app.example/api/auth/session'))
    })
    const [call] = await calls(1)
    expect(call!.parentSpanContext).toBeUndefined()
  })
})

describe('a stream', () => {
  test.each(['REST', 'Connect over HTTP/1.1', 'gRPC'])(
    'over %s is one span from its beginning to its end, to which what it reads belongs',
    async (protocol) => {
      const { url } = await startService({ tracing: 'on' })
      await completeOrder(orderClients[protocol]!(url))
      await expect.poll(() => callSpans().map(({ name }) => name)).toContain('countersign.v1.OrderService/WatchOrder')
      const watch = callSpans().find(({ name }) => name.endsWith('/WatchOrder'))!
      const finalize = callSpans().find(({ name }) => name.endsWith('/FinalizeOrder'))!
      expect(watch.attributes['countersign.messages.sent']).toBe(5)
      expect(watch.events.map(({ attributes }) => attributes?.['countersign.message.number'])).toEqual([1, 2, 3, 4, 5])
      expect(watch.attributes).not.toHaveProperty('error.type')
      // Those after the last wake-up included: each is made in a later turn, by whoever asks for the next message.
      expect(childrenOf(watch).filter(({ name }) => name === 'get').length).toBeGreaterThanOrEqual(5)
      expect(watch.spanContext().traceId).not.toBe(finalize.spanContext().traceId)
    },
  )

  test('has events for its first hundred messages only', () => {
    const request = readRequest(
      { headers: new Headers(), scheme: 'https', authority: 'a.example', remoteAddress: '' },
      0,
    )
    const call = openTelemetry().begin({ method: 'countersign.v1.OrderService/WatchOrder', protocol: 'grpc', request })
    for (let i = 0; i < 150; i++) call.sent()
    call.end('ok')
    const [span] = callSpans()
    expect(span?.attributes['countersign.messages.sent']).toBe(150)
    expect(span?.events.length).toBe(100)
  })

  test('a stream that its client leaves has no error', async () => {
    const { url } = await startService({ tracing: 'on' })
    const leaving = new AbortController()
    const { orderId, desktopToken } = await orderClients.gRPC!(url).start('login')
    const client = createClient(OrderService, transports.grpc(url))
    const watching = async () => {
      for await (const _ of client.watchOrder({ orderId, desktopToken }, { signal: leaving.signal })) leaving.abort()
    }
    await expect(watching()).rejects.toThrow('aborted')
    await expect.poll(() => callSpans().length).toBe(2)
    const watch = callSpans()[1]!
    expect(watch.attributes).toMatchObject({ 'rpc.status_code': 'CANCELLED' })
    expect(watch.attributes).not.toHaveProperty('error.type')
    expect(watch.status.code).toBe(SpanStatusCode.UNSET)
  })
})

describe('a call that fails', () => {
  test('names its reason, and is an error of the service only if it is its fault', async () => {
    let failure: Error = new Error('a text that nobody may see')
    const { url } = await startService({ tracing: 'on', resolveLogin: () => Promise.reject(failure) })
    const client = createClient(SignInService, transports.grpc(url))
    const verify = async () => client.verifySignIn(proofOf(makeWallet(), await client.issueNonce({})))
    await expect(verify()).rejects.toThrow()
    failure = new CountersignError('LOGIN_REFUSED', 'not today')
    await expect(verify()).rejects.toThrow()
    await rest(url, '/wallet/verify', {})
    await createClient(SignInService, transports.connect(url))
      .issueNonce({}, { timeoutMs: 60_000, headers: { origin: 'https://evil.example' } })
      .catch(() => {})
    const failed = (await calls(6)).filter(({ attributes }) => attributes['error.type'] !== undefined)
    expect(failed.map(({ attributes, status }) => ({ ...attributes, status: status.code }))).toMatchObject([
      { 'error.type': 'HOST_UNAVAILABLE', 'rpc.status_code': 'UNAVAILABLE', status: SpanStatusCode.ERROR },
      { 'error.type': 'LOGIN_REFUSED', 'rpc.status_code': 'PERMISSION_DENIED', status: SpanStatusCode.UNSET },
      { 'error.type': 'INVALID_REQUEST', 'http.response.status_code': 400, status: SpanStatusCode.UNSET },
      { 'error.type': 'ORIGIN_NOT_TRUSTED', 'rpc.status_code': 'permission_denied', status: SpanStatusCode.UNSET },
    ])
    const steps = endedSpans().filter(({ name }) => name === 'resolveLogin')
    expect(steps.map(({ attributes, status }) => [attributes['error.type'], status.code])).toEqual([
      ['_OTHER', SpanStatusCode.ERROR],
      ['LOGIN_REFUSED', SpanStatusCode.ERROR],
    ])
    expect(endedSpans().flatMap(({ events }) => events)).toEqual([])
    expect(endedSpans().map(({ status }) => status.message)).toEqual(endedSpans().map(() => undefined))
  })
})

test("an application's own spans nest in the step that called it, without what the caller wrote beside its trace", async () => {
  let baggage: Baggage | undefined
  const { url } = await startService({
    tracing: 'on',
    resolveLogin({ address }) {
      baggage = propagation.getActiveBaggage()
      return inClientSpan(async () => ({ id: address }))
    },
  })
  const challenge = (await rest(url, '/wallet/nonce', {})).json
  const headers = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, baggage: 'user=somebody' }
  expect((await rest(url, '/wallet/verify', proofOf(makeWallet(), challenge), headers)).status).toBe(200)
  expect(baggage).toBeUndefined()
  await calls(2)
  const own = endedSpans().find(({ name }) => name === 'client')!
  const step = endedSpans().find(({ name }) => name === 'resolveLogin')!
  const call = callSpans()[1]!
  expect(own.parentSpanContext?.spanId).toBe(step.spanContext().spanId)
  expect(step.parentSpanContext?.spanId).toBe(call.spanContext().spanId)
})

test('what a session host is asked is a step of the call', async () => {
  const fail = () => Promise.reject(new Error('a text that nobody may see'))
  const { url } = await startService({
    tracing: 'on',
    // It fails whatever it is asked.
    sessionHost: new Proxy({} as Host, { get: () => fail }),
  })
  expect((await rest(url, '/session', undefined, { authorization: 'Bearer x' })).json.code).toBe('HOST_UNAVAILABLE')
  const [call] = await calls(1)
  const steps = childrenOf(call!).map(({ name, attributes }) => ({ name, ...attributes }))
  expect(steps).toEqual([{ name: 'sessionHost.currentSession', 'error.type': 'HOST_UNAVAILABLE' }])
})

describe('the decision to sample', () => {
  const unsampled = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00` }

  test('is that of the caller', async () => {
    let context: SpanContext | undefined
    const { url } = await startService({
      tracing: 'on',
      async resolveLogin({ address }) {
        context = trace.getActiveSpan()?.spanContext()
        return { id: address }
      },
    })
    const challenge = (await rest(url, '/wallet/nonce', {}, unsampled)).json
    expect((await rest(url, '/wallet/verify', proofOf(makeWallet(), challenge), unsampled)).status).toBe(200)
    // What the application does in it is not sampled either.
    expect(context).toMatchObject({ traceId: 'a'.repeat(32), traceFlags: 0 })
    await rest(url, '/session')
    await calls(1)
    expect(endedSpans().filter((span) => span.spanContext().traceId === 'a'.repeat(32))).toEqual([])
  })

  test('is the service’s own if callers are linked to', async () => {
    for (const tracing of ['link', openTelemetry({ callers: 'link' })] as const) {
      const { url } = await startService({ tracing })
      await rest(url, '/wallet/nonce', {}, { ...unsampled, tracestate: 'written=by-the-caller' })
    }
    for (const span of await calls(2)) {
      expect(span.parentSpanContext).toBeUndefined()
      expect(span.spanContext().traceId).not.toBe('a'.repeat(32))
      expect(span.links.map(({ context }) => context)).toEqual([
        { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 0, isRemote: true },
      ])
    }
  })
})

test('a forged or malformed trace changes nothing about a call, and names no trace', async () => {
  const { url } = await startService({ tracing: 'on' })
  const forged = [
    '',
    'nonsense',
    `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
    `00-${'1'.repeat(32)}-${'0'.repeat(16)}-01`,
    `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
    `00-${'1'.repeat(31)}-${'1'.repeat(16)}-01`,
    `00-${'g'.repeat(32)}-${'1'.repeat(16)}-01`,
    `00-${'A'.repeat(32)}-${'1'.repeat(16)}-01`,
    `00-${'1'.repeat(32)}-${'1'.repeat(16)}-01-more`,
    `00-${'1'.repeat(32)}-${'1'.repeat(16)}-01, 00-${'2'.repeat(32)}-${'2'.repeat(16)}-01`,
    'x'.repeat(8000),
  ]
  for (const traceparent of forged) {
    const { status } = await rest(url, '/wallet/nonce', {}, { traceparent, tracestate: 'a=b', baggage: 'a=b' })
    expect(status, traceparent).toBe(200)
  }
  const spans = await calls(forged.length)
  expect(spans.map((span) => span.parentSpanContext)).toEqual(spans.map(() => undefined))
  expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(spans.length)

  const traceparent = `00-${'1'.repeat(32)}-${'1'.repeat(16)}-01`
  for (const tracestate of ['=,=,,', 'x'.repeat(8000), Array.from({ length: 99 }, (_, i) => `k${i}=v`).join()]) {
    expect((await rest(url, '/wallet/nonce', {}, { traceparent, tracestate })).status).toBe(200)
  }
  for (const span of (await calls(forged.length + 3)).slice(forged.length)) {
    expect(span.spanContext().traceState?.serialize().length ?? 0).toBeLessThanOrEqual(512)
  }
})

test('a wrong option of openTelemetry() stops the start', () => {
  expect(() => openTelemetry({ callers: 'none' as 'link' })).toThrow(new TypeError('callers must be continue or link'))
})
