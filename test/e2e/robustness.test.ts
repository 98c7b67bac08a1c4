import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const rpc = '/countersign.v1.SignInService/VerifySignIn'
const targets = [
  ['REST', '/api/auth/wallet/verify', 'application/json'],
  ['Connect JSON', rpc, 'application/json'],
  ['Connect binary', rpc, 'application/proto'],
  ['gRPC-Web', rpc, 'application/grpc-web+proto'],
  ['gRPC', rpc, 'application/grpc'],
] as const

const bodies: [string, string | Buffer][] = [
  ['nothing', ''],
  ['malformed JSON', '{"nonceId": '],
  ['an array', '[1,2]'],
  ['null', 'null'],
  ['a number', '7'],
  ['wrong types', '{"nonceId": 1, "publicKeyHex": [], "signatureHex": {}}'],
  ['nested too deep', `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
  ['a prototype', '{"__proto__": {"nonceId": "x"}}'],
  ['bytes that are no UTF-8', Buffer.from([0xff, 0xfe, 0x7b, 0x7d])],
  ['a megabyte', 'x'.repeat(1_000_000)],
  ['random bytes', randomBytes(5000)],
]

describe.each(targets)('over %s', (protocol, path, contentType) => {
  test.each(bodies)('%s is the caller\u2019s mistake', async (_name, body) => {
    const { url } = await startService()
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': contentType },
      body: body as string,
    })
    await response.arrayBuffer()
    // gRPC has a status of its own, in trailers; HTTP's is 200 whenever gRPC answers.
    if (protocol.startsWith('gRPC')) expect([200, 400, 415, 505]).toContain(response.status)
    else expect(response.status === 429 || (response.status >= 400 && response.status < 500)).toBe(true)
    expect((await rest(url, '/wallet/nonce', {})).status).toBe(200)
  })
})

test('no JSON at all makes the server fail', async () => {
  const { url } = await startService()
  const field = fc.oneof(fc.string(), fc.jsonValue(), fc.stringMatching(/^[0-9a-f]{64}$/))
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('/wallet/nonce', '/wallet/verify', '/cross-device/start', '/cross-device/claim', '/sign-out'),
      fc.record(
        {
          nonceId: field,
          publicKeyHex: field,
          signatureHex: field,
          address: field,
          appName: field,
          kind: field,
          orderId: field,
        },
        { requiredKeys: [] },
      ),
      async (path, body) => {
        const { status, json } = await rest(url, path, body)
        expect(status).toBeLessThan(500)
        if (status === 200) return
        const { metadata = {}, ...failure } = json
        expect(failure).toEqual({ code: expect.stringMatching(/^[A-Z_]+$/), message: expect.any(String) })
        for (const value of Object.values(metadata)) expect(value).toBeTypeOf('string')
      },
    ),
    { numRuns: 400 },
  )
})

test('the server stays up, for any bytes on its socket', async () => {
  const { url } = await startService()
  const { hostname, port } = new URL(url)
  for (let i = 0; i < 100; i++) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    await once(socket, 'connect')
    const opening = [
      '',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      'POST / HTTP/1.1\r\n',
      'GET /healthz HTTP/1.1\r\nHost: x\r\n',
    ][i % 4]
    socket.write(Buffer.concat([Buffer.from(opening as string), randomBytes(200)]))
    if (i % 3 === 0) socket.destroy()
    else socket.end()
  }
  const wallet = makeWallet()
  const { json } = await rest(url, '/wallet/nonce', {})
  expect((await rest(url, '/wallet/verify', proofOf(wallet, json))).status).toBe(200)
})

test('queries, odd paths and odd methods are answered', async () => {
  const { url } = await startService()
  for (const path of [
    '/api/auth/wallet/nonce?x=1',
    '//',
    '/%',
    '/..%2f..%2f',
    '/api/auth/cross-device/challenge',
    '/?x',
  ]) {
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'HEAD']) {
      const response = await fetch(url + path, { method })
      expect(response.status, `${method} ${path}`).toBeLessThan(500)
    }
  }
})

test('health is told without a session, readiness asks the store', async () => {
  const { url, service } = await startService()
  expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'ok' })
  expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: 'ready' })
  expect(service.description).toMatchObject({ adapters: ['nimiq', 'ed25519'], verifier: 'native' })
})

test.each(['abc', '12345678901', '-1'])('a deadline that is malformed (%s) leaves the call undone', async (timeout) => {
  const { url } = await startService()
  const wallet = makeWallet()
  const { json } = await rest(url, '/wallet/nonce', {})
  const proof = proofOf(wallet, json)
  const response = await fetch(url + rpc, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'connect-timeout-ms': timeout },
    body: JSON.stringify(proof),
  })
  expect(response.status).toBe(400)
  expect((await rest(url, '/wallet/verify', proof)).status).toBe(200)
})

test('a deadline beyond 15 minutes is cut to them, over Connect and gRPC', async () => {
  const { url } = await startService()
  for (const timeout of ['1200000', '9999999999']) {
    const response = await fetch(`${url}/countersign.v1.SignInService/IssueNonce`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'connect-timeout-ms': timeout },
      body: '{}',
    })
    expect([response.status, timeout]).toEqual([200, timeout])
  }
  const response = await fetch(`${url}/countersign.v1.SignInService/IssueNonce`, {
    method: 'POST',
    headers: { 'content-type': 'application/grpc-web+proto', 'grpc-timeout': '99999999H' },
    body: new Uint8Array(5),
  })
  expect(Buffer.from(await response.arrayBuffer()).toString('latin1')).toContain('grpc-status: 0')
})

test('a malformed Host header is the caller\u2019s mistake over every protocol', async () => {
  const { url } = await startService()
  for (const host of ['[', 'a b', '%', 'a:99999']) {
    const status = await new Promise<number>((resolve, reject) => {
      const headers = { host, 'content-type': 'application/grpc-web+proto' }
      const call = request(url + rpc, { method: 'POST', headers }, (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      call.on('error', reject)
      call.end()
    })
    expect(status, host).toBe(400)
  }
})
