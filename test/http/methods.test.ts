import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect } from 'node:http2'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { mountService } from '../support/mounted.ts'
import { sendRaw } from '../support/raw-http.ts'
import { startService } from '../support/service.ts'

/** What came back: status, Allow, and the body. */
interface Answer {
  readonly status: number
  readonly allow: string | null
  readonly length: string | null
  readonly body: string
}

type Send = (method: string, path: string) => Promise<Answer>

/** The ways in which a request reaches the service. */
const ways: Readonly<Record<string, () => Promise<Send>>> = {
  'HTTP/1.1': async () => overHttp1((await startService()).url),
  'a server of the application': async () => {
    const mounted = await mountService<Server>((service) =>
      createServer((request, response) => service().handler(request, response)),
    )
    return overHttp1(mounted.url)
  },
  'HTTP/2': async () => {
    const session = connect((await startService()).url)
    onTestFinished(() => void session.destroy())
    return async (method, path) => {
      const stream = session.request({ ':method': method, ':path': path }, { endStream: true })
      const [headers] = await once(stream, 'response')
      const { ':status': status, allow = null, 'content-length': length = null } = headers
      return { status, allow, length, body: await text(stream) }
    }
  },
  fetch: async () => {
    const { service } = await startService()
    return async (method, path) => {
      const answer = await service.fetch(new Request(`http://localhost:8080${path}`, { method }))
      const { status, headers } = answer
      return { status, allow: headers.get('allow'), length: headers.get('content-length'), body: await answer.text() }
    }
  },
}

function overHttp1(url: string): Send {
  const { host, port } = new URL(url)
  return async (method, target) => {
    const headers = [
      ['host', host],
      ['connection', 'close'],
    ] as const
    const answer = await sendRaw(Number(port), { method, target, version: '1.1', headers, body: Buffer.alloc(0) })
    if (answer === undefined) throw new Error('the server hung up')
    const { status, body } = answer
    return {
      status,
      allow: answer.headers.get('allow'),
      length: answer.headers.get('content-length'),
      body: body.toString(),
    }
  }
}

describe.each(Object.entries(ways))('over %s', (_, open) => {
  test('HEAD is answered as GET, without the content (RFC 9110, 9.3.2)', async () => {
    const send = await open()
    for (const path of [
      '/healthz',
      '/readyz',
      '/api/auth/openapi.json',
      '/api/auth/options',
      '/api/auth/sign-in',
      '/api/auth/session',
    ]) {
      const [get, head] = [await send('GET', path), await send('HEAD', path)]
      expect({ path, ...head }).toEqual({ path, ...get, body: '' })
      expect(get.body).not.toBe('')
    }
  })

  test('a method that a resource does not have is 405, with those that it has in Allow (RFC 9110, 15.5.6)', async () => {
    const send = await open()
    const refused: [string, string, string][] = [
      ['POST', '/healthz', 'GET, HEAD'],
      ['OPTIONS', '/readyz', 'GET, HEAD'],
      ['DELETE', '/api/auth/session', 'GET, HEAD'],
      ['GET', '/api/auth/sign-out', 'POST'],
      ['HEAD', '/api/auth/cross-device/events', 'GET'],
      ['PUT', '/api/auth/sign-in', 'GET, HEAD'],
      ['POST', '/api/auth/openapi.json', 'GET, HEAD'],
      ['POST', '/api/auth/options', 'GET, HEAD'],
      ['GET', '/countersign.v1.SessionService/SignOut', 'POST'],
    ]
    for (const [method, path, allow] of refused) {
      expect({ path, ...(await send(method, path)) }).toMatchObject({ path, status: 405, allow })
    }
  })
})

// Node's parser of HTTP/1.1 refuses it as no request at all.
test.each(['HTTP/2', 'fetch'])('over %s, a method that is none is 501 (RFC 9110, 15.6.2)', async (name) => {
  const send = await ways[name]!()
  for (const path of ['/healthz', '/api/auth/session', '/countersign.v1.SessionService/SignOut']) {
    expect((await send('BREW', path)).status).toBe(501)
  }
})

describe.each(['HTTP/1.1', 'a server of the application'])('over %s', (name) => {
  test('a target in absolute form counts as the path in it (RFC 9112, 3.2.2)', async () => {
    const send = await ways[name]!()
    expect((await send('GET', 'http://example.com/healthz')).body).toBe('{"status":"ok"}')
    expect((await send('GET', 'HTTP://example.com/api/auth/session?x=http://y/')).status).toBe(401)
    expect((await send('GET', 'http://example.com/nothing')).status).toBe(404)
    expect((await send('GET', 'ftp://example.com/healthz')).status).toBe(404)
  })
})

test('the host of a target in absolute form counts in place of the Host header (RFC 9112, 3.2.2)', async () => {
  const { url } = await startService({ trustedOrigins: ['http://target.example'] })
  const body = Buffer.from('{}')
  const headers = [
    ['host', 'header.example'],
    ['connection', 'close'],
    ['content-type', 'application/json'],
  ] as const
  const target = 'http://target.example/api/auth/wallet/nonce'
  const answer = await sendRaw(Number(new URL(url).port), { method: 'POST', target, version: '1.1', headers, body })
  expect(JSON.parse(String(answer?.body))).toMatchObject({ origin: 'http://target.example' })
})

test.each(['[', 'a b', '%', 'a:99999'])(
  'a Host header of %j is the caller’s mistake over every protocol',
  async (host) => {
    const { url } = await startService()
    const headers = [
      ['host', host],
      ['connection', 'close'],
      ['content-type', 'application/grpc-web+proto'],
    ] as const
    const target = '/countersign.v1.SignInService/VerifySignIn'
    const request = { method: 'POST', target, version: '1.1', headers, body: Buffer.alloc(0) } as const
    expect((await sendRaw(Number(new URL(url).port), request))?.status).toBe(400)
  },
)
