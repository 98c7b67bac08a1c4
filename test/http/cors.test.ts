import { once } from 'node:events'
import http, { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import http2 from 'node:http2'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OriginPolicy } from '../../src/core/origin-policy.ts'
import { applyCors } from '../../src/http/cors.ts'
import { type Exchange, nodeExchange, streamExchange } from '../../src/http/exchange.ts'
import { OnePortServer } from '../../src/http/port/port.ts'
import { ResponseOutput, StreamOutput } from '../../src/wire/output.ts'

const trusted = 'https://app.example'
const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' }

const origins = new OriginPolicy({ enforce: true, own: 'https://auth.example', trusted: [trusted] })
const asked: string[] = []
const serve = (exchange: Exchange): void => {
  const isTrusted = (origin: string): boolean => {
    asked.push(origin)
    return origins.isTrusted(origin)
  }
  if (applyCors(exchange, { isTrusted }) !== 'continue') return
  exchange.output.send({ status: 299, headers: {} })
}
const server = new OnePortServer({
  request: (request, response) => serve(nodeExchange({ request, trustedProxies: 0 }, new ResponseOutput(response))),
  stream: (stream, headers) => serve(streamExchange(headers, 0, new StreamOutput(stream))),
})
let url: string

beforeAll(async () => {
  const { port } = await server.listen(0, '127.0.0.1')
  url = `http://127.0.0.1:${port}`
})
afterAll(() => server.close(0))

describe.each([
  ['HTTP/1.1', callHttp1],
  ['HTTP/2', callHttp2],
])('over %s', (_, call) => {
  test('a page of a trusted origin may call and read', async () => {
    const { status, headers } = await call('POST', { origin: trusted })
    expect(status).toBe(299)
    expect(headers).toMatchObject({
      'access-control-allow-origin': trusted,
      'access-control-allow-credentials': 'true',
      vary: 'Origin',
    })
    expect(list(headers['access-control-expose-headers'])).toEqual(
      expect.arrayContaining([
        'set-auth-token',
        'retry-after',
        'grpc-status',
        'grpc-message',
        'grpc-status-details-bin',
      ]),
    )
    expect(headers['access-control-allow-methods']).toBeUndefined()
  })

  test('its preflight is answered with what it may send', async () => {
    const { status, headers } = await call('OPTIONS', { origin: trusted, ...preflight })
    expect(status).toBe(204)
    expect(headers).toMatchObject({
      'access-control-allow-origin': trusted,
      'access-control-allow-credentials': 'true',
      'access-control-max-age': '7200',
      vary: 'Origin',
    })
    expect(list(headers['access-control-allow-methods']).sort()).toEqual(['get', 'post'])
    expect(list(headers['access-control-allow-headers'])).toEqual(
      expect.arrayContaining([
        'authorization',
        'last-event-id',
        'content-type',
        'connect-protocol-version',
        'connect-timeout-ms',
        'x-grpc-web',
        'x-user-agent',
        'grpc-timeout',
      ]),
    )
    // With credentials, a star is no wildcard.
    expect(JSON.stringify(headers)).not.toContain('*')
    expect(headers['content-length']).toBeUndefined()
  })

  test.each([
    'https://evil.example',
    `${trusted}.evil.example`,
    'https://app.example:8443',
    'http://app.example',
    'null',
    'x',
  ])('a page of %s gets no permission, and its call is served', async (origin) => {
    const answers = [await call('OPTIONS', { origin, ...preflight }), await call('POST', { origin })]
    expect(answers.map(({ status }) => status)).toEqual([204, 299])
    for (const { headers } of answers) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
      expect(headers.vary).toBe('Origin')
    }
  })

  test('a call from no page is served, with nothing but Vary', async () => {
    for (const method of ['GET', 'OPTIONS']) {
      const { status, headers } = await call(method, preflight)
      expect(status).toBe(299)
      expect(headers['access-control-allow-origin']).toBeUndefined()
      expect(headers.vary).toBe('Origin')
    }
  })

  test('OPTIONS that is no preflight is served', async () => {
    expect(await call('OPTIONS', { origin: trusted })).toMatchObject({
      status: 299,
      headers: { 'access-control-allow-origin': trusted },
    })
  })

  test('only canonical origins are asked about and given back', async () => {
    asked.length = 0
    const { headers } = await call('GET', { origin: 'HTTPS://App.Example:443' })
    expect(asked).toEqual([trusted])
    expect(headers['access-control-allow-origin']).toBe(trusted)
  })
})

interface Answer {
  status: number | undefined
  headers: IncomingHttpHeaders
}

async function callHttp1(method: string, headers: OutgoingHttpHeaders): Promise<Answer> {
  const request = http.request(url, { method, headers }).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  return { status: response.statusCode, headers: response.headers }
}

async function callHttp2(method: string, headers: OutgoingHttpHeaders): Promise<Answer> {
  const session = http2.connect(url)
  try {
    const stream = session.request({ ':method': method, ':path': '/', ...headers })
    stream.end()
    const [answer] = await once(stream, 'response')
    return { status: answer[':status'], headers: answer }
  } finally {
    session.destroy()
  }
}

function list(value: string | string[] | undefined): string[] {
  return String(value).toLowerCase().split(', ')
}
