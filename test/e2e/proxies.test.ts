import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import http2 from 'node:http2'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { OrderKind, OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { Countersign } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { optionsFromEnvironment, unknownVariables } from '../../src/service/config.ts'
import { clientsFile, shop } from '../oidc/support.ts'
import { signInClients } from '../support/clients.ts'
import { deployedProxies, proxyPorts, startDeployed } from '../support/deployed-proxies.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { listen } from '../support/listening.ts'
import { keptLog } from '../support/log-lines.ts'
import { hasPart } from '../support/optional.ts'
import { orderClients } from '../support/orders.ts'
import { freePort, RedisServer } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { trustedAuthority } from '../support/tls.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const page = await readFile(new URL('../../docs/proxies.md', import.meta.url), 'utf8')
const [, snippet = ''] = /<!-- executed by test\/e2e -->\n\n```sh\n([^`]*)```/.exec(page) ?? []
const variables = Object.fromEntries(snippet.split('\n').map((line) => line.split('=', 2)))
/** The settings that docs/proxies.md asks for, but for names. */
const { trustProxy = 0 } = optionsFromEnvironment(variables)

test('docs/proxies.md names settings that exist, for the names in deploy/', () => {
  expect(unknownVariables(variables)).toEqual([])
  expect(optionsFromEnvironment(variables)).toMatchObject({ publicUrl: 'https://auth.example', trustProxy: 1 })
})

const mounting = await readFile(new URL('../../docs/mounting.md', import.meta.url), 'utf8')
/** The paths of the service by docs/mounting.md. */
const ownPaths = [...mounting.matchAll(/^\| (`\/.*?) \|/gm)]
  .flatMap(([, cell = '']) => [...cell.matchAll(/`(\/[^`]*)`/g)])
  .map(([, path = '']) => path.replace('{22 characters}', 'x'.repeat(22)).replace('…', 'x'))

test('the paths of docs/mounting.md are found, those of the issuer too', () => {
  expect(ownPaths).toEqual(expect.arrayContaining(['/api/auth', '/healthz', '/.well-known/openid-configuration']))
})

const authority = hasPart('openssl') ? await trustedAuthority() : undefined

/** One instance behind a proxy. The other one is not there, as during its restart. */
async function start(name: string, options: CountersignOptions = {}, site?: number) {
  const ports = await proxyPorts()
  const { logger, lines } = keptLog()
  const publicUrl = `https://localhost:${ports.port}`
  const service = await startService({ publicUrl, trustProxy, logger, ...options })
  const upstreams = [Number(new URL(service.url).port), await freePort()] as const
  const certificate = await authority!.issue('localhost')
  const proxy = await startDeployed(name, { ...ports, upstreams, certificate, ...(site !== undefined && { site }) })
  const warnings = () => lines.filter(({ level }) => level === 'warn' || level === 'error')
  return { ...proxy, warnings }
}

/** What a client could hope to be believed. */
const forged = {
  'x-forwarded-for': '203.0.113.66',
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'http',
  'x-real-ip': '203.0.113.66',
  forwarded: 'for=203.0.113.66;host=evil.example;proto=http',
}

/** How RPCs reach the proxy from another address than its own. */
const transports: Readonly<Record<string, (baseUrl: string, localAddress: string) => Transport>> = {
  'Connect over HTTP/1.1': (baseUrl, localAddress) =>
    createConnectTransport({ baseUrl, httpVersion: '1.1', nodeOptions: { localAddress } }),
  gRPC: (baseUrl, localAddress) =>
    createGrpcTransport({ baseUrl, nodeOptions: { localAddress } as http2.SecureClientSessionOptions }),
}

/** A REST call with whatever headers, and from whatever address. */
async function send(
  url: string,
  path: string,
  { body, ...options }: { body?: string | Buffer; headers?: OutgoingHttpHeaders; localAddress?: string; agent?: Agent },
): Promise<{ readonly status: number; readonly body: string }> {
  const headers = { 'content-type': 'application/json', ...options.headers }
  const method = body === undefined ? 'GET' : 'POST'
  // Without the name, TLS would go by a Host header that is not the proxy's.
  const call = request(`${url}/api/auth${path}`, { ...options, servername: 'localhost', headers, method })
  const answered = once(call, 'response') as Promise<[IncomingMessage]>
  // The answer can come, and the connection end, before all of the body is sent.
  call.on('error', () => {})
  call.end(body)
  const [answer] = await answered
  return { status: answer.statusCode ?? 0, body: await text(answer) }
}

describe.each(deployedProxies)('behind %s with its file of deploy/', (name) => {
  describe.skipIf(!hasPart(name) || !hasPart('openssl'))('a service', () => {
    // REST has streams of HTTP/1.1, and gRPC streams of HTTP/2 with trailers. No other protocol asks more of a proxy.
    test('signs people in, and devices see each step of an order as it happens', async () => {
      const { url, plainUrl, warnings } = await start(name)
      await signInWith(signInClients['gRPC through @grpc/grpc-js']!(url))
      for (const protocol of ['REST', 'gRPC']) await completeOrder(orderClients[protocol]!(url))
      expect(warnings()).toEqual([])
      const led = await fetch(`${plainUrl}/api/auth/sign-in?returnTo=%2Fa`, { redirect: 'manual' })
      const target = expect.stringMatching(/^https:\/\/[\w.]+:\d+\/api\/auth\/sign-in\?returnTo=%2Fa$/)
      expect([led.status, led.headers.get('location')]).toEqual([308, target])
    })

    test('answers a long poll when something happens', async () => {
      const { url } = await start(name)
      const { orderId, claimToken, desktopToken } = (await rest(url, '/cross-device/start', { kind: 'login' })).json
      const poll = rest(url, `/cross-device/events?orderId=${orderId}&after=1&wait=25`, undefined, {
        accept: 'application/json',
        authorization: `Bearer ${desktopToken}`,
      })
      await rest(url, '/cross-device/claim', { orderId, claimToken })
      expect((await poll).json.events).toEqual([expect.objectContaining({ sequence: 2, status: 'claimed' })])
    })

    // Elsewhere 127.0.0.1 is the only such address.
    test.skipIf(process.platform !== 'linux')(
      'knows the addresses of its clients and its own, whatever headers they send',
      async () => {
        const { url, warnings } = await start(name)
        const localAddress = '127.0.0.2'
        for (const [protocol, transport] of Object.entries(transports)) {
          const made = transport(url, localAddress)
          for (const headers of [{}, forged]) {
            const client = createClient(SignInService, made)
            const challenge = await client.issueNonce({}, { headers })
            expect(challenge.origin, protocol).toBe(url)
            const { token } = await client.verifySignIn(proofOf(makeWallet(), challenge), { headers })
            const bearer = { ...headers, authorization: `Bearer ${token}` }
            const { session } = await createClient(SessionService, made).getCurrentSession({}, { headers: bearer })
            expect(session?.ip, protocol).toBe(localAddress)
          }
        }
        // A client can also ask a proxy to drop headers on the way, or send one twice.
        const twice = { ...forged, 'x-forwarded-for': ['203.0.113.66', '203.0.113.67'] }
        const dropped = { ...forged, connection: 'close, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto' }
        for (const headers of [{}, forged, twice, dropped] as const) {
          const nonce = await send(url, '/wallet/nonce', { body: '{}', headers, localAddress })
          if (nonce.status === 400) {
            expect([name, headers]).toEqual(['caddy', dropped])
            continue
          }
          const challenge = JSON.parse(nonce.body)
          expect(challenge.origin).toBe(url)
          const body = JSON.stringify(proofOf(makeWallet(), challenge))
          const { session } = JSON.parse((await send(url, '/wallet/verify', { body, headers, localAddress })).body)
          expect(session.ip).toBe(localAddress)
        }
        const host = { host: 'evil.example' }
        const elsewhere = await send(url, '/wallet/nonce', { body: '{}', headers: { ...host, ...forged } })
        expect(elsewhere.body).not.toContain('nonceId')
        expect(warnings()).toEqual([])
      },
    )

    test.skipIf(process.platform !== 'linux')('limits the client that calls too often, and no other', async () => {
      const { url } = await start(name, { rateLimit: true })
      const agent = new Agent({ keepAlive: true, maxSockets: 16, localAddress: '127.0.0.2' })
      onTestFinished(() => agent.destroy())
      const statuses = await Promise.all(
        Array.from({ length: 320 }, async (_, i) => {
          const headers = { 'x-forwarded-for': `203.0.113.${i % 256}` }
          return (await send(url, '/wallet/nonce', { body: '{}', headers, agent })).status
        }),
      )
      expect(new Set(statuses)).toEqual(new Set([200, 429]))
      expect((await send(url, '/wallet/nonce', { body: '{}', localAddress: '127.0.0.3' })).status).toBe(200)
    })

    test('and the proxy refuse what is too large in a clear way, and serve on', async () => {
      const { url } = await start(name)
      const filler = (length: number): string => JSON.stringify({ appName: 'x'.repeat(length) })
      const refused = await send(url, '/wallet/nonce', { body: filler(100_000) })
      expect([refused.status, JSON.parse(refused.body).code]).toEqual([413, 'REQUEST_TOO_LARGE'])
      expect((await send(url, '/wallet/nonce', { body: filler(300_000) })).status).toBe(413)
      const chunked = { 'transfer-encoding': 'chunked' }
      expect((await send(url, '/wallet/nonce', { body: filler(300_000), headers: chunked })).status).toBe(413)
      const orders = createClient(OrderService, createGrpcTransport({ baseUrl: url }))
      const tooLarge = await orders
        .startOrder({ kind: OrderKind.SIGN, payload: 'x'.repeat(100_000) })
        .catch((thrown: unknown) => ConnectError.from(thrown).code)
      expect(tooLarge).toBe(Code.ResourceExhausted)

      const headers = { 'x-filler': 'x'.repeat(20_000) }
      expect((await send(url, '/session', { headers })).status).toSatisfy((status) => status === 400 || status === 431)
      const session = http2.connect(url)
      onTestFinished(() => session.destroy())
      session.on('error', () => {})
      const stream = session.request({ ':path': '/api/auth/session', ...headers })
      const status = await Promise.race([
        once(stream, 'response').then(([head]) => Number(head[':status'])),
        once(stream, 'close').then(() => 'closed'),
      ]).catch(() => 'closed')
      expect(status).toSatisfy((seen) => seen === 'closed' || seen === 400 || seen === 431)
      expect((await send(url, '/wallet/nonce', { body: '{}' })).status).toBe(200)
    })

    test('on the host of another site gets its own paths, and the site all others', async () => {
      const site = createServer((_, response) => response.setHeader('x-site', 'yes').end())
      const options = { oidc: { clients: clientsFile(shop) }, accessTokens: { audiences: ['https://backend.example'] } }
      const { url } = await start(name, options, await listen(site))
      const isOfSite = async (path: string): Promise<boolean> => (await fetch(url + path)).headers.has('x-site')
      for (const path of ownPaths) expect([path, await isOfSite(path)]).toEqual([path, false])
      const others = ['/', '/c', '/api/authors', '/.well-known/acme-challenge/x', '/healthz/x', '/xcountersign.v1.X/Y']
      for (const path of others) expect([path, await isOfSite(path)]).toEqual([path, true])
      const discovery = await fetch(`${url}/.well-known/openid-configuration`)
      expect(await discovery.json()).toMatchObject({ issuer: url })
    })

    test.skipIf(!hasPart('redis-server'))('fails no call while its instances are stopped in turn', async () => {
      await using redis = await RedisServer.start()
      const ports = await proxyPorts()
      const publicUrl = `https://localhost:${ports.port}`
      const upstreams = [await freePort(), await freePort()] as const
      const secret = 'a secret for tests and for nothing else'
      const options = { store: redis.url, secret, publicUrl, trustProxy, drainSeconds: 2 }
      const instance = async (port: number): Promise<Countersign> => (await startService({ ...options, port })).service
      const first = await instance(upstreams[0])
      const second = await instance(upstreams[1])
      const certificate = await authority!.issue('localhost')
      const { url, log } = await startDeployed(name, { ...ports, upstreams, certificate })

      const agent = new Agent({ keepAlive: true, maxSockets: 8 })
      onTestFinished(() => agent.destroy())
      const grpc = createClient(SignInService, createGrpcTransport({ baseUrl: url }))
      const failures: string[] = []
      const overRest = async (): Promise<void> => {
        const { status, body } = await send(url, '/wallet/nonce', { body: '{}', agent })
        if (status !== 200) throw new Error(`${status} ${body.slice(0, 100)}`)
      }
      const calls: Promise<unknown>[] = []
      const call = (made: Promise<unknown>): void => {
        calls.push(made.catch((failure: unknown) => failures.push(String(failure))))
      }
      let running = true
      const load = (async () => {
        for (; running; await sleep(15)) {
          call(overRest())
          call(grpc.issueNonce({}))
        }
      })()
      await sleep(300)
      await first.drain()
      await first.close()
      await sleep(300)
      await instance(upstreams[0])
      // The time after which every proxy has seen that it is back.
      await sleep(1_500)
      await second.drain()
      await second.close()
      await sleep(300)
      running = false
      await load
      await Promise.all(calls)
      expect(failures, log()).toEqual([])
      expect(calls.length).toBeGreaterThan(200)
    })
  })
})

describe.skipIf(!hasPart('haproxy') || !hasPart('openssl'))('behind HAProxy, a site', () => {
  const parts = ['User', 'Address', 'Adapter', 'Session', 'Groups']
  const spellings = ['X-Countersign-', 'x-countersign_', 'X_COUNTERSIGN_', 'X.Countersign~', 'x_countersign-']
  const ofForwardAuth = Object.fromEntries(spellings.flatMap((start) => parts.map((part) => [start + part, 'admin'])))

  test('gets none of the headers of forward auth that a client sends, over HTTP/1.1 and HTTP/2', async () => {
    const seen: IncomingHttpHeaders[] = []
    const site = createServer(({ headers }, response) => {
      seen.push(headers)
      response.end()
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void site.close())
    await once(site, 'listening')
    const { url } = await start('haproxy', {}, (site.address() as AddressInfo).port)
    const headers = { ...ofForwardAuth, 'x-other': 'passed on' }
    const call = request(`${url}/report`, { headers }).end()
    const [answer] = (await once(call, 'response')) as [IncomingMessage]
    expect(answer.resume().statusCode).toBe(200)
    const session = http2.connect(url)
    onTestFinished(() => session.destroy())
    const stream = session.request({ ':path': '/report', ...headers })
    const [head] = await once(stream, 'response')
    expect(head[':status']).toBe(200)
    expect(seen.map((received) => received['x-other'])).toEqual(['passed on', 'passed on'])
    expect(JSON.stringify(seen)).not.toMatch(/countersign|admin/i)
  })
})
