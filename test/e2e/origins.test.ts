import { once } from 'node:events'
import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import http2 from 'node:http2'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, test } from 'vitest'
import { OrderKind, OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { Signer } from '../core/order/support.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'

const trusted = 'https://app.example'
const options = { trustedOrigins: [trusted, 'https://other.example'] }

/** Origins that a comparison by prefix, suffix, host or pattern would take for the trusted one. */
const lookAlikes = [
  'https://app.example.evil.com',
  'https://app.example-evil.com',
  'https://app.examples',
  'https://app.exampl',
  'https://evil.app.example',
  'https://evil-app.example',
  'https://appxexample',
  'https://app.example:8443',
  'http://app.example',
  'app://app.example',
  'null',
]

describe('a page of an origin that only looks like a trusted one', () => {
  test('gets no nonce and starts no order, over REST, Connect and gRPC', async () => {
    const { url } = await startService(options)
    const transport = createGrpcTransport({ baseUrl: url })
    const [signIn, orders] = [createClient(SignInService, transport), createClient(OrderService, transport)]
    const connect = async (rpc: string, body: object, origin: string): Promise<string> => {
      const response = await fetch(`${url}/countersign.v1.${rpc}`, {
        method: 'POST',
        headers: { origin, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return await response.text()
    }
    for (const origin of lookAlikes) {
      const headers = { origin }
      expect((await rest(url, '/wallet/nonce', {}, headers)).json.code, origin).toBe('ORIGIN_NOT_TRUSTED')
      expect((await rest(url, '/cross-device/start', { kind: 'sign' }, headers)).json.code).toBe('ORIGIN_NOT_TRUSTED')
      expect(await connect('SignInService/IssueNonce', {}, origin)).toContain('permission_denied')
      expect(await connect('OrderService/StartOrder', { kind: 2 }, origin)).toContain('permission_denied')
      await expect(signIn.issueNonce({}, { headers })).rejects.toThrow(/is not trusted/)
      await expect(orders.startOrder({ kind: OrderKind.SIGN }, { headers })).rejects.toThrow(/is not trusted/)
    }
    expect((await rest(url, '/wallet/nonce', {}, { origin: trusted })).json.origin).toBe(trusted)
    expect((await rest(url, '/wallet/nonce', {}, { origin: 'HTTPS://App.Example:443' })).json.origin).toBe(trusted)
  })

  test('cannot use a visitor’s cookie, not even to end the session', async () => {
    const { url } = await startService(options)
    const signer = new Signer()
    const { json } = await rest(url, '/wallet/nonce', {}, { origin: trusted })
    const proof = { nonceId: json.nonceId, ...signer.prove(json.message) }
    const signedIn = await rest(url, '/wallet/verify', proof, { origin: trusted })
    const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!
    for (const origin of lookAlikes) {
      const headers = { origin, cookie }
      for (const path of ['/session', '/sessions']) {
        expect((await rest(url, path, undefined, headers)).json.code, origin).toBe('ORIGIN_NOT_TRUSTED')
      }
      expect((await rest(url, '/sign-out', {}, headers)).json.code, origin).toBe('ORIGIN_NOT_TRUSTED')
    }
    expect((await rest(url, '/session', undefined, { origin: trusted, cookie })).status).toBe(200)
  })

  test('can neither use nor spend a nonce of the trusted one, nor claim its orders', async () => {
    const { url } = await startService(options)
    const headers = { origin: trusted }
    const { json } = await rest(url, '/wallet/nonce', {}, headers)
    const proof = { nonceId: json.nonceId, ...new Signer().prove(json.message) }
    const { json: order } = await rest(url, '/cross-device/start', { kind: 'sign' }, headers)
    const claim = { orderId: order.orderId, claimToken: order.claimToken }
    for (const origin of [...lookAlikes, 'https://other.example']) {
      expect((await rest(url, '/wallet/verify', proof, { origin })).json.code, origin).toBe('ORIGIN_MISMATCH')
      expect((await rest(url, '/cross-device/claim', claim, { origin })).json.code, origin).toBe('ORIGIN_MISMATCH')
    }
    expect((await rest(url, '/wallet/verify', proof, headers)).status).toBe(200)
    expect((await rest(url, '/cross-device/claim', claim, headers)).status).toBe(200)
  })
})

/** Headers of an answer. */
interface Head {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** Sends requests over one HTTP version. */
type Send = (url: string, method: string, path: string, headers: Record<string, string>) => Promise<Head>

/** The request says whether its connection stays: answers are written in another way if it does. */
const overHttp1 =
  (keepAlive: boolean): Send =>
  async (url, method, path, headers) => {
    const request = http.request(url + path, { method, headers, agent: new http.Agent({ keepAlive }) }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.destroy()
    return { status: response.statusCode ?? 0, headers: response.headers }
  }

const overHttp2: Send = async (url, method, path, headers) => {
  const session = http2.connect(url)
  try {
    const stream = session.request({ ':method': method, ':path': path, ...headers }, { endStream: true })
    const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    return { status: Number(head[':status']), headers: head }
  } finally {
    session.destroy()
  }
}

const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' }

/** A request of each kind that the service answers. */
const requests: readonly [method: string, path: string, headers: Record<string, string>][] = [
  ['POST', '/api/auth/wallet/nonce', { 'content-type': 'application/json' }],
  ['GET', '/api/auth/session', {}],
  ['GET', '/api/auth/cross-device/events?orderId=x', {}],
  ['POST', '/countersign.v1.SignInService/IssueNonce', { 'content-type': 'application/json' }],
  ['POST', '/countersign.v1.SignInService/IssueNonce', { 'content-type': 'application/grpc-web+proto' }],
  ['GET', '/countersign.v1.SignInService/IssueNonce', {}],
  ['GET', '/healthz', {}],
  ['GET', '/nothing', {}],
  ['OPTIONS', '/api/auth/wallet/nonce', preflight],
  ['OPTIONS', '/countersign.v1.SessionService/ListSessions', preflight],
  ['OPTIONS', '/nothing', preflight],
]

describe.each([
  ['HTTP/1.1', overHttp1(false)],
  ['a connection of HTTP/1.1 that stays', overHttp1(true)],
  ['HTTP/2', overHttp2],
])('the answers of a service over %s', (_, send) => {
  const permissionsOf = ({ headers }: Head): string[] =>
    Object.keys(headers).filter((name) => name.startsWith('access-control-'))

  test.each([true, false])(
    'may be read by pages of trusted origins, and of no other (enforceOrigin: %s)',
    async (enforceOrigin) => {
      const { url } = await startService({ ...options, enforceOrigin })
      for (const [method, path, headers] of requests) {
        const answer = await send(url, method, path, { ...headers, origin: trusted })
        expect(answer.headers, `${method} ${path}`).toMatchObject({
          'access-control-allow-origin': trusted,
          'access-control-allow-credentials': 'true',
        })
        for (const origin of [...lookAlikes, url]) {
          const refused = await send(url, method, path, { ...headers, origin })
          expect(permissionsOf(refused), `${method} ${path} from ${origin}`).toEqual([])
          expect(refused.headers.vary).toMatch(/\bOrigin\b/)
        }
        expect(permissionsOf(await send(url, method, path, headers))).toEqual([])
      }
    },
  )

  test('may be read by pages of the service’s own origin alone, if no origins are set', async () => {
    const { url } = await startService()
    const answerTo = (origin: string) => send(url, 'GET', '/api/auth/session', { origin })
    expect((await answerTo(url)).headers['access-control-allow-origin']).toBe(url)
    for (const origin of [trusted, 'https://localhost', 'http://localhost:1', 'http://localhost.evil.com', 'null']) {
      expect(permissionsOf(await answerTo(origin)), origin).toEqual([])
    }
  })
})
