import { once } from 'node:events'
import http from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { createAdaptorServer } from '@hono/node-server'
import { describe, expect, test } from 'vitest'
import { WatchOrderRequestSchema } from '../../gen/server/countersign/v1/order_service_pb.ts'
import type { Countersign } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { signInClients } from '../support/clients.ts'
import { openCounted } from '../support/counted-store.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { keptLog } from '../support/log-lines.ts'
import { mountService } from '../support/mounted.ts'
import { type Holder, orderClients } from '../support/orders.ts'
import { rest } from '../support/rest.ts'
import { envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'

/** A real server of the Fetch standard around the service. */
async function serveFetch(options: CountersignOptions = {}): ReturnType<typeof mountService> {
  return await mountService(
    // Without hono's faster classes of its own, which take short cuts past the standard.
    (service) =>
      createAdaptorServer({
        fetch: (request) => service().fetch(request, { remoteAddress: '192.0.2.1' }),
        overrideGlobalObjects: false,
      }) as http.Server,
    options,
  )
}

const origin = 'http://localhost:8080'

/** The service alone: requests are handed to it. */
async function fetcher(options: CountersignOptions = {}): Promise<Countersign['fetch']> {
  const { service } = await startService({ publicUrl: origin, ...options })
  return service.fetch
}

function post(path: string, body: BodyInit | undefined, init: RequestInit & { duplex?: 'half' } = {}): Request {
  return new Request(origin + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body, duplex: 'half' }),
    ...init,
  } as RequestInit)
}

const nonce = '/api/auth/wallet/nonce'

test.each(['REST', 'gRPC-Web'])('a sign-in over %s', async (name) => {
  const { url } = await serveFetch()
  const { cookie } = await signInWith(signInClients[name]!(url))
  expect(cookie).toContain('HttpOnly')
})

test('an order over gRPC-Web, with every step seen as it happens', async () => {
  const { url } = await serveFetch()
  await completeOrder(orderClients['gRPC-Web']!(url))
})

test('gRPC is refused: a Response has no trailers', async () => {
  const fetch = await fetcher()
  const headers = { 'content-type': 'application/grpc+proto' }
  const response = await fetch(
    post('/countersign.v1.SignInService/IssueNonce', envelope(Buffer.alloc(0)).toString(), { headers }),
  )
  expect(response.status).toBe(415)
  expect(response.headers.get('accept-post')).not.toMatch(/grpc(?!-web)/)
  expect(await response.json()).toMatchObject({ message: expect.stringContaining('gRPC-Web') })
})

describe('a watch', () => {
  const rpc = '/countersign.v1.OrderService/WatchOrder'
  const watchBody = (order: Holder): Uint8Array<ArrayBuffer> =>
    new Uint8Array(envelope(toBinary(WatchOrderRequestSchema, create(WatchOrderRequestSchema, order))))
  const requests: Record<string, (order: Holder, signal?: AbortSignal) => Request> = {
    'server-sent events': ({ orderId, desktopToken }, signal) =>
      new Request(`${origin}/api/auth/cross-device/events?orderId=${orderId}`, {
        headers: { authorization: `Bearer ${desktopToken}` },
        signal: signal ?? null,
      }),
    Connect: (order, signal) =>
      post(rpc, watchBody(order), {
        headers: { 'content-type': 'application/connect+proto' },
        signal: signal ?? null,
      }),
    'gRPC-Web': (order, signal) =>
      post(rpc, watchBody(order), {
        headers: { 'content-type': 'application/grpc-web+proto' },
        signal: signal ?? null,
      }),
  }

  test.each(Object.entries(requests))('ends when its reader leaves: %s', async (_, requestOf) => {
    const { store, watches } = await openCounted()
    const fetch = await fetcher({ store })
    const startOrder = async (): Promise<Holder> =>
      (await (await fetch(post('/api/auth/cross-device/start', '{"kind":"login"}'))).json()) as Holder
    const cancelled = (await fetch(requestOf(await startOrder()))).body!.getReader()
    const leaving = new AbortController()
    const aborted = (await fetch(requestOf(await startOrder(), leaving.signal))).body!.getReader()
    for (const reader of [cancelled, aborted]) expect((await reader.read()).done).toBe(false)
    expect(watches()).toBe(2)
    await cancelled.cancel()
    await expect.poll(watches).toBe(1)
    leaving.abort()
    await expect.poll(watches).toBe(0)
    expect((await aborted.read()).done).toBe(true)
  })

  test('ends when its client hangs up', async () => {
    const { store, watches } = await openCounted()
    const { url } = await serveFetch({ store })
    const order = (await rest(url, '/cross-device/start', { kind: 'login' })).json
    const request = http.get(`${url}/api/auth/cross-device/events?orderId=${order.orderId}`, {
      headers: { authorization: `Bearer ${order.desktopToken}` },
    })
    request.on('error', () => {})
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    response.on('error', () => {})
    await once(response, 'data')
    expect(watches()).toBe(1)
    request.destroy()
    await expect.poll(watches).toBe(0)
  })

  test('tells its client of the stop of the service, and ends', async () => {
    const { url, service } = await serveFetch()
    const { orderId, desktopToken } = (await rest(url, '/cross-device/start', { kind: 'login' })).json
    const response = await fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}`, {
      headers: { authorization: `Bearer ${desktopToken}` },
    })
    const text = response.text()
    await service.close(0)
    expect(await text).toContain('event: reconnect')
  })
})

describe('a body', () => {
  test('a body that has been read is answered at once with what to change', async () => {
    const { lines, logger } = keptLog()
    const fetch = await fetcher({ logger })
    const used = post(nonce, '{}')
    await used.text()
    const locked = post(nonce, '{}')
    locked.body?.getReader()
    for (const request of [used, locked]) {
      const response = await fetch(request)
      expect(response.status).toBe(500)
      expect(await response.json()).toMatchObject({
        code: 'INTERNAL',
        message: expect.stringContaining('Mount Countersign before any other reader of bodies'),
      })
    }
    expect(lines).toMatchObject([{ level: 'error' }, { level: 'error' }])
  })

  test('a body that is too large is refused, and its client hears of it', async () => {
    const { url } = await serveFetch()
    const headers = { 'content-type': 'application/json' }
    const announced = await fetch(url + nonce, { method: 'POST', headers, body: 'x'.repeat(1_000_000) })
    expect(announced.status).toBe(413)
    const request = http.request(url + nonce, { method: 'POST', headers })
    const responded = once(request, 'response') as Promise<[http.IncomingMessage]>
    for (let i = 0; i < 40; i++) {
      request.write(Buffer.alloc(16_384, 'x'))
      await pause(2)
    }
    request.end()
    const [response] = await responded
    expect(response.statusCode).toBe(413)
    response.resume()
  })

  test('of the largest size is read, and one byte more is not', async () => {
    const fetch = await fetcher()
    const json = (bytes: number): string => `{"x":"${'x'.repeat(bytes - 8)}"}`
    const inPieces = (text: string): ReadableStream<Uint8Array> =>
      new ReadableStream({
        start(controller) {
          for (const piece of [text.slice(0, 9), text.slice(9)]) controller.enqueue(new TextEncoder().encode(piece))
          controller.close()
        },
      })
    for (const bodyOf of [(text: string) => text, inPieces]) {
      expect((await fetch(post(nonce, bodyOf(json(65_536))))).status).toBe(200)
      expect((await fetch(post(nonce, bodyOf(json(65_537))))).status).toBe(413)
    }
  })

  test('a body that breaks off is refused, and none counts as an empty one', async () => {
    const fetch = await fetcher()
    const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) })
    expect(await (await fetch(post(nonce, broken))).json()).toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('ended before'),
    })
    expect((await fetch(post(nonce, undefined))).status).toBe(200)
  })
})

test('a client that leaves before it is answered holds up no other', async () => {
  const fetch = await fetcher()
  const leaving = new AbortController()
  const never = new ReadableStream({ pull: () => new Promise(() => {}) })
  const answer = fetch(post(nonce, never, { signal: leaving.signal }))
  leaving.abort()
  expect((await answer).status).toBe(499)
  expect((await fetch(post(nonce, '{}', { signal: AbortSignal.abort() }))).status).toBe(499)
})

test('paths are its own as those of the handler are', async () => {
  const fetch = await fetcher({ accessTokens: { audiences: ['backend'] } })
  const get = async (path: string, init: RequestInit = {}): Promise<Response> =>
    await fetch(new Request(origin + path, init))
  for (const path of ['/', '/nothing', '/api/auth', '/api/auth/nothing']) {
    const response = await get(path)
    expect(response.status, path).toBe(404)
    expect(await response.json()).toMatchObject({ code: 'ROUTE_NOT_FOUND' })
  }
  expect((await get('/healthz')).status).toBe(200)
  expect((await get('/api/auth/session')).status).toBe(401)
  const keys = await get('/.well-known/jwks.json', { method: 'HEAD' })
  expect([keys.status, await keys.text()]).toEqual([200, ''])
  const page = await get('/c/0123456789abcdefABCDEF')
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  const [, asset = ''] = /src="(\/pages\/[^"]+)"/.exec(await page.text()) ?? []
  const head = await get(asset, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
  expect(Number(head.headers.get('content-length'))).toBeGreaterThan(1000)
  expect((await get(asset, { headers: { 'if-none-match': head.headers.get('etag') ?? '' } })).status).toBe(304)
  const preflight = await get('/api/auth/session', {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'GET' },
  })
  expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, origin])
  expect(preflight.headers.get('x-content-type-options')).toBe('nosniff')
})

test('answers are plain, whatever the request accepts: a framework may compress them again', async () => {
  const fetch = await fetcher()
  const headers = { 'accept-encoding': 'gzip, deflate, br' }
  const text = async (path: string, body?: string): Promise<string> => {
    const request = body === undefined ? new Request(origin + path) : post(path, body)
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, value)
    const response = await fetch(request)
    expect([response.status, response.headers.get('content-encoding')], path).toEqual([200, null])
    return await response.text()
  }
  const page = await text('/api/auth/sign-in')
  expect(page).toMatch(/^<!doctype html>/)
  const [, asset = ''] = /src="([^"]+\.js)"/.exec(page) ?? []
  expect(await text(asset)).toMatch(/^import\{/)
  expect(JSON.parse(await text('/api/auth/openapi.json'))).toHaveProperty('paths')
  const order = JSON.stringify({
    kind: 'ORDER_KIND_LOGIN',
    displayTitle: 'x'.repeat(100),
    displaySummary: 'y'.repeat(200),
  })
  expect(JSON.parse(await text('/countersign.v1.OrderService/StartOrder', order))).toHaveProperty('orderId')
})

describe('who calls', () => {
  test('from which origin: the header Host counts before the URL, which some servers make up', async () => {
    const fetch = await fetcher({ publicUrl: 'https://app.example' })
    const ask = async (url: string, headers: Record<string, string>): Promise<number> =>
      (await fetch(new Request(url + nonce, { method: 'POST', headers }))).status
    expect(await ask('https://app.example', {})).toBe(200)
    expect(await ask('https://localhost:3000', { host: 'app.example' })).toBe(200)
    expect(await ask('https://app.example', { host: 'other.example' })).toBe(403)
    expect(await ask('http://app.example', {})).toBe(403)
    expect(await ask('http://x', { origin: 'https://app.example' })).toBe(200)
    expect(await ask('https://app.example', { origin: 'https://evil.example' })).toBe(403)
  })

  test('limits count by the address that the server tells, or a trusted proxy', async () => {
    const { lines, logger } = keptLog()
    const fetch = await fetcher({ rateLimit: true, logger })
    const headers = { 'content-type': 'application/json' }
    /** The number of calls that were refused. */
    const spend = async (calls: number, ask: () => Promise<Response>): Promise<number> => {
      const answers = await Promise.all(Array.from({ length: calls }, ask))
      return answers.filter(({ status }) => status === 429).length
    }
    const as = (remoteAddress?: string) => async () => await fetch(post(nonce, '{}'), { remoteAddress })
    expect(await spend(300, as('192.0.2.1'))).toBeGreaterThan(0)
    // The allowance grows by four a second.
    expect(await spend(100, as('::ffff:192.0.2.1'))).toBeGreaterThan(0)
    expect(await spend(1, as('192.0.2.2'))).toBe(0)
    const warnings = (): unknown[] => lines.filter(({ text }) => text.includes('no rate limit counts'))
    expect(warnings()).toEqual([])
    // Nobody can lock out others who have no address either.
    expect(await spend(300, as())).toBe(0)
    expect(warnings()).toMatchObject([{ level: 'warn', text: expect.stringContaining('remoteAddress') }])

    const proxied = await fetcher({ rateLimit: true, trustProxy: 1 })
    let calls = 0
    const through = (address: string) => async () =>
      await proxied(
        post(nonce, '{}', { headers: { ...headers, 'x-forwarded-for': `203.0.113.${calls++ % 256}, ${address}` } }),
      )
    expect(await spend(300, through('192.0.2.1'))).toBeGreaterThan(0)
    expect(await spend(1, through('192.0.2.2'))).toBe(0)
  })

  test('an address that is none is a mistake of the developer', async () => {
    const fetch = await fetcher()
    for (const remoteAddress of ['192.0.2.1:80', 'a, b', '']) {
      await expect(fetch(post(nonce, '{}'), { remoteAddress })).rejects.toThrow(TypeError)
    }
    // Servers pass things of their own as the second argument.
    expect((await fetch(post(nonce, '{}'), { params: {} } as never)).status).toBe(200)
  })
})
