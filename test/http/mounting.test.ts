import { createServer, request as httpRequest, type Server } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import { gzipSync } from 'node:zlib'
import express, { type Express } from 'express'
import { fastify } from 'fastify'
import { describe, expect, test } from 'vitest'
import type { Countersign } from '../../src/index.ts'
import { signInClients } from '../support/clients.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { keptLog } from '../support/log-lines.ts'
import { mountService } from '../support/mounted.ts'
import { orderClients } from '../support/orders.ts'
import { rest } from '../support/rest.ts'

type Service = () => Countersign

/** An application of Express, with a page of its own. */
function application(build: (app: Express, handler: Countersign['handler']) => void): (service: Service) => Server {
  return (service) => {
    const app = express()
    build(app, (request, response, next) => service().handler(request, response, next))
    app.get('/', (_request, response) => void response.send('The application'))
    return createServer(app)
  }
}

interface Mounting {
  readonly name: string
  readonly make: (service: Service) => Server
  /** Whether only REST's paths are mounted. */
  readonly isRestOnly?: boolean
}

const mountings: readonly Mounting[] = [
  { name: 'node:http', make: (service) => createServer((...args) => service().handler(...args)) },
  {
    name: 'Express, before a body parser',
    make: application((app, handler) => app.use(handler).use(express.json())),
  },
  {
    name: 'Express, behind express.json()',
    make: application((app, handler) => app.use(express.json()).use(express.urlencoded()).use(handler)),
  },
  {
    name: 'Express, behind express.raw() for everything',
    make: application((app, handler) => app.use(express.raw({ type: () => true })).use(handler)),
  },
  {
    name: 'Express, behind express.text() for JSON',
    make: application((app, handler) => app.use(express.text({ type: 'application/json' })).use(handler)),
  },
  {
    name: 'Express, behind a parser that keeps only request.rawBody, as cloud functions do',
    make: application((app, handler) =>
      app
        .use(express.raw({ type: () => true }))
        .use((request, _response, next) => {
          if (request.body !== undefined) Object.assign(request, { rawBody: request.body, body: 'parsed' })
          next()
        })
        .use(handler),
    ),
  },
  {
    name: 'Express, at /api/auth, before a body parser',
    make: application((app, handler) => app.use('/api/auth', handler).use(express.json())),
    isRestOnly: true,
  },
  {
    name: 'Express, at /api/auth, behind a body parser',
    make: application((app, handler) => app.use(express.json()).use('/api/auth', handler)),
    isRestOnly: true,
  },
  {
    name: 'Express, in applications within applications',
    make: application((app, handler) =>
      app.use('/api', express().use(express.json(), express.Router().use('/auth', handler))),
    ),
    isRestOnly: true,
  },
]

test.each(mountings)(
  '$name: a sign-in and an order, with every step seen as it happens',
  async ({ make, isRestOnly = false }) => {
    const { url } = await mountService(make)
    await signInWith(signInClients.REST!(url))
    await completeOrder(orderClients[isRestOnly ? 'REST' : 'gRPC-Web']!(url))
  },
)

test('over a foreign server of HTTP/2, gRPC is spoken, too', async () => {
  const { url } = await mountService((service) => createHttp2Server((...args) => service().handler(...args)))
  await signInWith(signInClients['gRPC through @grpc/grpc-js']!(url))
  await completeOrder(orderClients.gRPC!(url))
})

test('a hook of Fastify serves before Fastify reads the body', async () => {
  const app = fastify()
  const { url } = await mountService(async (service) => {
    app.addHook('onRequest', (request, reply, done) => service().handler(request.raw, reply.raw, done))
    app.get('/', () => 'The application')
    app.post('/echo', (request) => request.body)
    await app.ready()
    return app.server
  })
  await signInWith(signInClients.REST!(url))
  await completeOrder(orderClients['Connect over HTTP/1.1']!(url))
  expect(await (await fetch(`${url}/`)).text()).toBe('The application')
  const echo = await fetch(`${url}/echo`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"a":1}',
  })
  expect(await echo.json()).toEqual({ a: 1 })
})

describe('what is not its own', () => {
  const claimPath = '/c/0123456789abcdefABCDEF'

  test('goes on to next, untouched, and the rest does not', async () => {
    const { url } = await mountService(
      application((app, handler) => {
        app.use(handler)
        app.use((_request, response) => void response.status(299).json(response.getHeaders()))
      }),
    )
    const preflight = {
      method: 'OPTIONS',
      headers: { origin: url, 'access-control-request-method': 'POST' },
    }
    for (const path of [
      '/',
      '/?orderId=x',
      '/api',
      '/api/authx',
      '/session',
      '/openapi.json',
      '/countersign.v1.OrderService',
      '/pages',
    ]) {
      for (const init of [{}, { method: 'POST', body: '{}' }, preflight]) {
        const response = await fetch(url + path, init)
        expect(response.status, path).toBe(299)
        // Nothing of ours is on the answers of others.
        expect(Object.keys((await response.json()) as object)).toEqual(['x-powered-by'])
      }
    }
    const own = async (path: string, init: RequestInit = {}): Promise<number> => (await fetch(url + path, init)).status
    for (const path of ['/healthz', '/readyz', '/api/auth/openapi.json', claimPath]) expect(await own(path)).toBe(200)
    expect(await own('/api/auth/session')).toBe(401)
    expect(await own('/api/auth/session?x=1')).toBe(401)
    for (const path of ['/api/auth', '/api/auth/', '/api/auth/nothing']) expect(await own(path), path).toBe(404)
    expect(await own('/countersign.v1.OrderService/WatchOrder')).toBe(405)
    expect(await own('/api/auth/session', preflight)).toBe(204)
    const html = await (await fetch(url + claimPath)).text()
    const assets = [...html.matchAll(/(?:src|href)="(\/pages\/[^"]+)"/g)].map(([, path]) => path as string)
    expect(assets.length).toBeGreaterThan(0)
    for (const path of assets) expect(await own(path)).toBe(200)
  })

  test('with the pages off, their paths are not its own either', async () => {
    const { url } = await mountService(
      application((app, handler) => app.use(handler).use((_request, response) => void response.status(299).end())),
      { pages: false },
    )
    expect((await fetch(url + claimPath)).status).toBe(299)
  })

  test('is answered with 404 if there is no next, the root included', async () => {
    const { url } = await mountService((service) =>
      createServer((request, response) => service().handler(request, response)),
    )
    for (const path of ['/', '/nothing']) {
      const response = await fetch(url + path)
      expect(response.status).toBe(404)
      expect(await response.json()).toMatchObject({ code: 'ROUTE_NOT_FOUND' })
    }
  })

  test('the demo page stays at the root of the port of its own', async () => {
    const { service, url } = await mountService(
      (of) => createServer((request, response) => of().handler(request, response)),
      { port: 0, host: '127.0.0.1' },
    )
    const port = await service.listen()
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
    expect((await fetch(`${url}/`)).status).toBe(404)
  })
})

describe('a mount path', () => {
  const mounted = application((app, handler) => app.use('/api/auth', handler))
  const noticesOf = ({ lines }: ReturnType<typeof keptLog>): unknown[] =>
    lines.filter(({ text }) => text.includes('mounted at a path'))

  test('leaves paths outside, which are named once', async () => {
    const log = keptLog()
    const { url } = await mountService(mounted, { logger: log.logger })
    expect(noticesOf(log)).toEqual([])
    for (let i = 0; i < 3; i++) expect((await rest(url, '/session')).status).toBe(401)
    expect(noticesOf(log)).toEqual([
      {
        level: 'warn',
        text: expect.stringContaining('app.use(countersign.handler)'),
        fields: { mountPath: '/api/auth', outside: expect.any(String) },
      },
    ])
    const [{ fields }] = noticesOf(log) as [{ fields: { outside: string } }]
    const outside = fields.outside.split(', ')
    expect(outside).toEqual(
      expect.arrayContaining([
        '/countersign.v1.SignInService/*',
        '/countersign.v1.OrderService/*',
        '/grpc.health.v1.Health/*',
        '/healthz',
        '/readyz',
        '/pages/*',
        '/c/*',
        '/cross-device/continue/*',
      ]),
    )
    expect(outside.filter((place) => place.startsWith('/api/auth'))).toEqual([])
    // Ownership goes by the whole path, so below the mount path there is nothing but what belongs there.
    expect((await fetch(`${url}/api/auth/healthz`)).status).toBe(404)
  })

  test('is told from its absence, and of frameworks that say only what the URL was', async () => {
    const log = keptLog()
    const { url } = await mountService(
      (service) =>
        createServer((request, response) => {
          const [, mount = '', rest] = /^(\/deep\/api)(\/.*)$/.exec(request.url ?? '') ?? []
          Object.assign(request, { originalUrl: request.url, url: rest ?? request.url })
          service().handler(request, response)
          void mount
        }),
      { logger: log.logger, basePath: '/deep/api/auth' },
    )
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect(noticesOf(log)).toEqual([])
    expect((await fetch(`${url}/deep/api/auth/session`)).status).toBe(401)
    expect(noticesOf(log)).toMatchObject([{ fields: { mountPath: '/deep/api' } }])
  })
})

describe('a body that has been read', () => {
  /** Reads every body to its end, and keeps nothing. */
  const reader = application((app, handler) =>
    app
      .use(async (request, _response, next) => {
        for await (const _ of request) void _
        next()
      })
      .use(handler),
  )

  test.each([
    ['REST', '/api/auth/wallet/nonce', 'application/json', '{}', 500],
    ['Connect', '/countersign.v1.SignInService/IssueNonce', 'application/json', '{}', 500],
    ['Connect, binary', '/countersign.v1.SignInService/IssueNonce', 'application/proto', 'x', 500],
    ['gRPC-Web', '/countersign.v1.SignInService/IssueNonce', 'application/grpc-web+proto', 'xxxxx', 200],
    ['a Connect stream', '/countersign.v1.OrderService/WatchOrder', 'application/connect+json', 'xxxxx', 200],
  ])(
    'and that nobody has any more is answered at once with what to change: %s',
    async (_, path, type, body, status) => {
      const log = keptLog()
      const { url } = await mountService(reader, { logger: log.logger })
      const startedAt = performance.now()
      const response = await fetch(url + path, { method: 'POST', headers: { 'content-type': type }, body })
      expect(response.status).toBe(status)
      expect(decodeURIComponent(await response.text())).toMatch(/Mount Countersign before any other reader of bodies/)
      expect(performance.now() - startedAt).toBeLessThan(10_000)
      expect(log.lines).toContainEqual(
        expect.objectContaining({
          level: 'error',
          fields: expect.objectContaining({ cause: expect.stringContaining('docs/mounting.md') }),
        }),
      )
    },
  )

  test('is no matter to a request without one', async () => {
    const { url } = await mountService(reader)
    expect((await rest(url, '/session')).status).toBe(401)
    const empty = await fetch(`${url}/api/auth/sign-out`, { method: 'POST' })
    expect(await empty.json()).toEqual({ ok: true })
  })

  test('over HTTP/2 is told from none, although no header tells them apart', async () => {
    const { url } = await mountService((service) =>
      createHttp2Server(async (request, response) => {
        for await (const _ of request) void _
        service().handler(request, response)
      }),
    )
    const session = connect(url)
    const post = async (body: string | undefined): Promise<unknown> => {
      const headers = { ':method': 'POST', ':path': '/api/auth/sign-out', 'content-type': 'application/json' }
      const stream = session.request(headers, { endStream: body === undefined })
      if (body !== undefined) stream.end(body)
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk)
      return JSON.parse(Buffer.concat(chunks).toString())
    }
    expect(await post(undefined)).toEqual({ ok: true })
    expect(await post('{}')).toMatchObject({ code: 'INTERNAL' })
    session.close()
  })

  test('and was a form is refused as if it had not been read', async () => {
    const { url } = await mountService(
      application((app, handler) => app.use(express.json(), express.urlencoded(), express.text()).use(handler)),
    )
    const post = async (body: BodyInit): Promise<unknown> => {
      const response = await fetch(`${url}/api/auth/wallet/nonce`, { method: 'POST', body })
      return [response.status, ((await response.json()) as { code: string }).code]
    }
    expect(await post(new URLSearchParams({ a: 'b' }))).toEqual([400, 'INVALID_REQUEST'])
    // text/plain needs no preflight, so a page of anybody can send it.
    expect(await post('{}')).toEqual([400, 'INVALID_REQUEST'])
  })

  test('and decompressed is not decompressed again', async () => {
    for (const parser of [express.json(), express.raw({ type: () => true })]) {
      const { url } = await mountService(application((app, handler) => app.use(parser).use(handler)))
      const response = await fetch(`${url}/countersign.v1.SignInService/IssueNonce`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        body: gzipSync('{}'),
      })
      expect(response.status).toBe(200)
    }
  })

  test('and is larger than Countersign allows is refused', async () => {
    const body = JSON.stringify({ purpose: 'x'.repeat(70_000) })
    for (const parser of [express.json({ limit: '1mb' }), express.raw({ type: () => true, limit: '1mb' })]) {
      const { url } = await mountService(application((app, handler) => app.use(parser).use(handler)))
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${url}/api/auth/wallet/nonce`, { method: 'POST', headers, body })
      expect(response.status).toBe(413)
    }
  })

  test('and left as text only is not taken for bytes', async () => {
    const { url } = await mountService(
      application((app, handler) => app.use(express.text({ type: () => true })).use(handler)),
    )
    const response = await fetch(`${url}/countersign.v1.SignInService/VerifySignIn`, {
      method: 'POST',
      headers: { 'content-type': 'application/proto' },
      body: new Uint8Array([0xff]),
    })
    expect(await response.json()).toMatchObject({ code: 'internal' })
  })

  test('what parsers set on requests that they leave alone does not count', async () => {
    const { url } = await mountService(
      application((app, handler) =>
        app
          .use((request, _response, next) => {
            // As body-parser 1 does.
            request.body = {}
            next()
          })
          .use(handler),
      ),
    )
    await signInWith(signInClients.REST!(url))
    await signInWith(signInClients['Connect binary over HTTP/1.1']!(url))
  })
})

test('a request whose sender has left before it is served is not served, and holds nothing up', async () => {
  const over = Promise.withResolvers<void>()
  const { lines, logger } = keptLog()
  const { url } = await mountService(
    (service) =>
      createServer((request, response) => {
        request.once('close', () => {
          service().handler(request, response)
          over.resolve()
        })
        request.on('error', () => {})
      }),
    { logger },
  )
  const sent = httpRequest(`${url}/api/auth/wallet/nonce`, { method: 'POST', headers: { 'content-length': '10' } })
  sent.on('error', () => {})
  await new Promise<void>((resolve) => void sent.write('{', () => resolve()))
  sent.destroy()
  await over.promise
  await expect.poll(() => lines).toMatchObject([{ fields: { reason: 'INVALID_REQUEST' } }])
})
