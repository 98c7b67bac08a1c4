import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import net from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { proxyPorts, startDeployed } from '../../support/deployed-proxies.ts'
import { hasPart } from '../../support/optional.ts'
import { rest } from '../../support/rest.ts'
import { spawnService } from '../../support/service.ts'
import { trustedAuthority } from '../../support/tls.ts'

/** Addresses of the two. Linux has all of 127.0.0.0/8; elsewhere there is only 127.0.0.1. */
const [attacking, polite] = ['127.0.0.2', '127.0.0.3']

const environment = {
  COUNTERSIGN_STORE: 'sqlite::memory:',
  COUNTERSIGN_RATE_LIMIT: 'on',
  COUNTERSIGN_RATE_LIMITS: 'order=100000,watchers=100000,sign-in=100000',
  NODE_OPTIONS: '--max-old-space-size=256',
}

const authority = hasPart('openssl') ? await trustedAuthority() : undefined

/** The name in the certificate of a proxy. */
const servername = 'localhost'

interface Order {
  readonly orderId: string
  readonly desktopToken: string
}

interface Attack {
  readonly connections: number
  /** On each connection. */
  readonly streams: number
  /** Whether each connection has an address of its own. */
  readonly spread?: boolean
}

/**
 * HTTP/2 connections of the attacker that never read an answer, and open streams one after the other while they last.
 */
async function attack(
  url: string,
  { connections, streams, spread = false }: Attack,
  open: (session: ClientHttp2Session) => ClientHttp2Stream,
): Promise<void> {
  for (let made = 0; made < connections; made++) {
    const localAddress = spread ? `127.0.1.${made + 1}` : attacking
    const options = { localAddress, settings: { initialWindowSize: 0 }, servername }
    const session = http2.connect(url, options as http2.SecureClientSessionOptions)
    session.on('error', () => {})
    onTestFinished(() => session.destroy())
    await Promise.race([once(session, 'remoteSettings'), once(session, 'close')]).catch(() => {})
    for (let n = 0; n < streams && !session.destroyed; n++) open(session).on('error', () => {})
    await sleep(20)
  }
  await sleep(500)
}

/** The status of a polite client's nonce, whose body comes a moment after its headers. */
async function nonceStatus(url: string, origin: string): Promise<number> {
  const options: RequestOptions = {
    method: 'POST',
    agent: false,
    localAddress: polite,
    servername,
    signal: AbortSignal.timeout(5_000),
    headers: { 'content-type': 'application/json', 'content-length': '2', origin },
  }
  const call = (url.startsWith('https:') ? httpsRequest : httpRequest)(`${url}/api/auth/wallet/nonce`, options)
  const answered = once(call, 'response') as Promise<[IncomingMessage]>
  answered.catch(() => {})
  call.flushHeaders()
  await sleep(30)
  call.end('{}')
  try {
    const [response] = await answered
    await text(response)
    return response.statusCode ?? 0
  } catch {
    return 0
  }
}

/** The status of a polite client's stream of events. */
async function watchStatus(url: string, { orderId, desktopToken }: Order): Promise<number> {
  const path = `${url}/api/auth/cross-device/events?orderId=${orderId}`
  const headers = { authorization: `Bearer ${desktopToken}` }
  const options: RequestOptions = {
    agent: false,
    localAddress: polite,
    servername,
    headers,
    signal: AbortSignal.timeout(5_000),
  }
  const call = (url.startsWith('https:') ? httpsRequest : httpRequest)(path, options).end()
  try {
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    response.on('error', () => {}).destroy()
    return response.statusCode ?? 0
  } catch {
    return 0
  }
}

/** The polite client is served, each time, while the attack stands. */
async function expectServed(url: string, origin: string, order: Order): Promise<void> {
  const statuses: number[] = []
  for (let n = 0; n < 10; n++) statuses.push(await nonceStatus(url, origin), await watchStatus(url, order))
  expect(statuses).toEqual(Array(20).fill(200))
}

const unread = (session: ClientHttp2Session) => session.request({ ':path': '/nothing' })
const bodiless = (session: ClientHttp2Session) =>
  session.request(
    { ':method': 'POST', ':path': '/api/auth/wallet/nonce', 'content-length': '100' },
    { endStream: false },
  )
const watching =
  ({ orderId, desktopToken }: Order) =>
  (session: ClientHttp2Session) =>
    session.request({
      ':path': `/api/auth/cross-device/events?orderId=${orderId}`,
      authorization: `Bearer ${desktopToken}`,
    })

describe.skipIf(process.platform !== 'linux')('a polite client is served beside one network', () => {
  test.each([
    ['that leaves the answers to all its requests unread', () => unread],
    ['that sends headers without bodies', () => bodiless],
    ['that watches as much as it can', watching],
  ] as const)('%s', async (_name, openWith) => {
    const { url } = await spawnService(environment)
    const order = (await rest(url, '/cross-device/start', { kind: 'login' }, { origin: url })).json as Order
    const target = `http://127.0.0.1:${new URL(url).port}`
    await attack(target, { connections: 24, streams: 249 }, openWith(order))
    await expectServed(target, url, order)
  })

  test('that opens connections and sends nothing', async () => {
    const settings = { COUNTERSIGN_MAX_CONNECTIONS: '1000', COUNTERSIGN_MAX_CONNECTIONS_PER_ADDRESS: '1000000' }
    const { url } = await spawnService({ ...environment, ...settings })
    const order = (await rest(url, '/cross-device/start', { kind: 'login' }, { origin: url })).json as Order
    const port = Number(new URL(url).port)
    for (let n = 0; n < 1_500; n++) {
      const socket = net.connect({ port, host: '127.0.0.1', localAddress: attacking }).on('error', () => {})
      onTestFinished(() => void socket.destroy())
      if (n % 100 === 99) await sleep(10)
    }
    await expectServed(`http://127.0.0.1:${port}`, url, order)
  })
})

/** The first and the last of these want more than the 2,048 connections of the nginx. */
const attacksOnNginx = [
  [
    'one that watches as much as it can',
    { connections: 24, streams: 128 },
    { COUNTERSIGN_MAX_REQUESTS: '20000', COUNTERSIGN_MAX_STREAMS: '20000' },
    watching,
  ],
  [
    'one that watches as much as the service has streams for',
    { connections: 8, streams: 100 },
    { COUNTERSIGN_MAX_STREAMS: '400' },
    watching,
  ],
  [
    'fifty that leave the answers to all their requests unread',
    { connections: 50, streams: 60, spread: true },
    {},
    () => unread,
  ],
] as const

describe.skipIf(process.platform !== 'linux' || !hasPart('nginx') || authority === undefined)(
  'behind nginx with its file of deploy/, a polite client is served beside',
  () => {
    test.each(attacksOnNginx)('%s', async (_name, size, settings, openWith) => {
      const certificate = await authority!.issue('localhost')
      const ports = await proxyPorts()
      const publicUrl = `https://localhost:${ports.port}`
      const { url } = await spawnService({
        ...environment,
        ...settings,
        COUNTERSIGN_TRUST_PROXY: '1',
        COUNTERSIGN_PUBLIC_URL: publicUrl,
      })
      const order = (await rest(url, '/cross-device/start', { kind: 'login' }, { origin: publicUrl })).json as Order
      const upstream = Number(new URL(url).port)
      await startDeployed('nginx', { ...ports, upstreams: [upstream, upstream], certificate })
      const target = publicUrl.replace('localhost', '127.0.0.1')
      await attack(target, size, openWith(order))
      await expectServed(target, publicUrl, order)
    })
  },
)

describe.skipIf(process.platform !== 'linux' || authority === undefined)('a proxy with its file of deploy/', () => {
  test.each(['nginx', 'haproxy'].filter(hasPart))('takes 200 requests of one client at a time: %s', async (name) => {
    const certificate = await authority!.issue('localhost')
    const ports = await proxyPorts()
    const publicUrl = `https://localhost:${ports.port}`
    const { url } = await spawnService({
      ...environment,
      COUNTERSIGN_TRUST_PROXY: '1',
      COUNTERSIGN_PUBLIC_URL: publicUrl,
    })
    const order = (await rest(url, '/cross-device/start', { kind: 'login' }, { origin: publicUrl })).json as Order
    const upstream = Number(new URL(url).port)
    await startDeployed(name, { ...ports, upstreams: [upstream, upstream], certificate })
    const target = publicUrl.replace('localhost', '127.0.0.1')
    const statuses: unknown[] = []
    const open = watching(order)
    for (let made = 0; made < 3; made++) {
      const session = http2.connect(target, { localAddress: attacking, servername } as http2.SecureClientSessionOptions)
      onTestFinished(() => session.destroy())
      for (let n = 0; n < 100; n++) open(session).on('response', (head) => statuses.push(head[':status']))
    }
    await expect.poll(() => statuses.toSorted()).toEqual([...Array(200).fill(200), ...Array(100).fill(429)])
    await expectServed(target, publicUrl, order)
  })
})
