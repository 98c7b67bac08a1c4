import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { Session } from 'node:inspector/promises'
import { connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { refusals } from '../../src/http/refusals.ts'
import { restEndpoints } from '../../src/http/rest/endpoints.ts'
import { streamBody } from '../../src/wire/body.ts'
import { keptLog } from '../support/log-lines.ts'
import { type RawAnswer, type RawRequest, sendRaw } from '../support/raw-http.ts'
import { http2Sender } from '../support/raw-http2.ts'
import { rest } from '../support/rest.ts'
import { readRpcAnswer } from '../support/rpc-answer.ts'
import { envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

/** Largest body of a request. */
const maxBodyBytes = 65_536

const { issueNonce } = SignInService.method
const rpcPath = `/${SignInService.typeName}/${issueNonce.name}`
const restPath = '/api/auth/wallet/nonce'

/** JSON of a message of IssueNonce, in so many bytes. */
const json = (bytes: number): Buffer => Buffer.from('{}'.padEnd(bytes))

/** The same in binary form: one field that the schema does not know. */
function proto(bytes: number): Buffer {
  const head = Buffer.from([0x7a, 0, 0, 0])
  const length = bytes - head.length
  for (let at = 1; at < 4; at++) head[at] = ((length >> (7 * (at - 1))) & 0x7f) | (at < 3 ? 0x80 : 0)
  return Buffer.concat([head, Buffer.alloc(length)])
}

/** How a message of IssueNonce of so many bytes is sent in each form. */
const forms: readonly { name: string; path: string; type: string; body: (bytes: number) => Buffer }[] = [
  { name: 'REST', path: restPath, type: 'application/json', body: json },
  { name: 'Connect JSON', path: rpcPath, type: 'application/json', body: json },
  { name: 'Connect binary', path: rpcPath, type: 'application/proto', body: proto },
  { name: 'gRPC-Web', path: rpcPath, type: 'application/grpc-web+proto', body: (bytes) => envelope(proto(bytes)) },
  {
    name: 'gRPC-Web as text',
    path: rpcPath,
    type: 'application/grpc-web-text+proto',
    body: (bytes) => Buffer.from(envelope(proto(bytes)).toString('base64')),
  },
  { name: 'gRPC', path: rpcPath, type: 'application/grpc+proto', body: (bytes) => envelope(proto(bytes)) },
]

/** The reason for which a call was refused; `undefined` if it was served. */
function refusalIn(answer: RawAnswer | undefined, path: string): string | undefined {
  if (answer === undefined) return 'no answer'
  if (path === rpcPath) return readRpcAnswer(answer, issueNonce).failure?.reason
  return answer.status === 200 ? undefined : JSON.parse(answer.body.toString()).code
}

function requestOf(url: string, path: string, type: string, body: Buffer, more: Record<string, string> = {}) {
  const { host } = new URL(url)
  return {
    method: 'POST',
    target: path,
    version: '1.1',
    headers: [['host', host], ['connection', 'close'], ['content-type', type], ...Object.entries(more)],
    body,
  } as const satisfies RawRequest
}

describe('a body whose length is not announced', () => {
  test.each(forms.filter(({ name }) => name !== 'gRPC'))(
    'may have the largest size and not a byte more, over $name and HTTP/1.1',
    async ({ path, type, body }) => {
      const { url } = await startService()
      const send = (bytes: number) =>
        sendRaw(Number(new URL(url).port), { ...requestOf(url, path, type, body(bytes)), chunked: true })
      expect(refusalIn(await send(maxBodyBytes), path)).toBeUndefined()
      expect(refusalIn(await send(maxBodyBytes + 1), path)).toBe('REQUEST_TOO_LARGE')
    },
  )

  test.each(forms)('nor over $name and HTTP/2', async ({ path, type, body }) => {
    const { url } = await startService()
    const send = http2Sender(url)
    const answerTo = async (bytes: number) => refusalIn(await send(requestOf(url, path, type, body(bytes))), path)
    expect(await answerTo(maxBodyBytes)).toBeUndefined()
    expect(await answerTo(maxBodyBytes + 1)).toBe('REQUEST_TOO_LARGE')
  })

  test.each(forms)('is refused before it ends, over $name', async ({ name, path, type, body }) => {
    const { url } = await startService()
    const tooMuch = Buffer.concat([body(maxBodyBytes), Buffer.alloc(50_000, 'A')])
    const session = connectHttp2(url)
    onTestFinished(() => session.destroy())
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': type, te: 'trailers' })
    stream.on('error', () => {})
    stream.write(tooMuch)
    const [head] = (await once(stream, 'response')) as [Record<string, string>]
    expect(String(head[':status'])).toMatch(name.startsWith('gRPC') ? /^200$/ : /^(413|429)$/)
    if (name === 'gRPC') return

    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    socket.write(`POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`)
    socket.write(Buffer.concat([Buffer.from(`${tooMuch.length.toString(16)}\r\n`), tooMuch, Buffer.from('\r\n')]))
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString('latin1')).toMatch(name.startsWith('gRPC') ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 (413|429) /)
  })
})

test.each(forms.filter(({ name }) => name !== 'gRPC'))(
  'a body whose length is announced may have the largest size and not a byte more, over $name',
  async ({ path, type, body }) => {
    const { url } = await startService()
    const send = (bytes: number) => sendRaw(Number(new URL(url).port), requestOf(url, path, type, body(bytes)))
    expect(refusalIn(await send(maxBodyBytes), path)).toBeUndefined()
    expect(refusalIn(await send(maxBodyBytes + 1), path)).toBe('REQUEST_TOO_LARGE')
  },
)

test.each(forms.filter(({ name }) => name !== 'gRPC'))(
  'a body that is announced as too large is refused before any of it has come, over $name',
  async ({ name, path, type }) => {
    const { url } = await startService()
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(`POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: ${type}\r\ncontent-length: 100000000\r\n\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString('latin1')).toMatch(name.startsWith('gRPC') ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 (413|429) /)
  },
)

test('what comes after the limit of a body is not kept', async () => {
  const inspector = new Session()
  inspector.connect()
  onTestFinished(() => inspector.disconnect())
  const heldBytes = async (): Promise<number> => {
    await inspector.post('HeapProfiler.collectGarbage')
    return process.memoryUsage().arrayBuffers
  }
  const body = new PassThrough()
  const before = await heldBytes()
  const refused = expect(streamBody({ stream: body, headers: {}, refusals }).read(maxBodyBytes)).rejects.toMatchObject({
    reason: 'REQUEST_TOO_LARGE',
  })
  const mebibyte = 1024 * 1024
  for (let i = 0; i < 64; i++) {
    if (!body.write(Buffer.alloc(mebibyte, i))) await once(body, 'drain')
  }
  await refused
  expect((await heldBytes()) - before).toBeLessThan(16 * mebibyte)
  body.end()
})

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
] as const)('a body that is small only as long as it is compressed is too large: %s', async (encoding, compress) => {
  const { url } = await startService()
  const port = Number(new URL(url).port)
  const answerTo = async (type: string, body: Buffer, header: string) =>
    refusalIn(await sendRaw(port, requestOf(url, rpcPath, type, body, { [header]: encoding })), rpcPath)
  for (const [bytes, reason] of [
    [maxBodyBytes, undefined],
    [maxBodyBytes + 1, 'REQUEST_TOO_LARGE'],
    [5_000_000, 'REQUEST_TOO_LARGE'],
  ] as const) {
    expect(await answerTo('application/json', compress(json(bytes)), 'content-encoding')).toBe(reason)
    const enveloped = envelope(compress(json(bytes)), 1)
    expect(await answerTo('application/grpc-web+json', enveloped, 'grpc-encoding')).toBe(reason)
  }
})

/**
 * Content types that a page of any origin can send without asking first (the Fetch standard's CORS-safelisted ones),
 * and kin.
 */
const simpleTypes = [
  'text/plain',
  'text/plain;charset=UTF-8',
  'text/plain; application/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  undefined,
]

describe('a POST of a content type that needs no preflight', () => {
  const send = async (url: string, path: string, type: string | undefined, body: string, cookie: string) => {
    const { host } = new URL(url)
    const headers: [string, string][] = [
      ['host', host],
      ['connection', 'close'],
      ['cookie', cookie],
    ]
    if (type !== undefined) headers.push(['content-type', type])
    const request = { method: 'POST', target: path, version: '1.1', headers, body: Buffer.from(body) } as const
    return await sendRaw(Number(new URL(url).port), request)
  }

  test('does nothing, at any REST endpoint and any RPC', async () => {
    const { url } = await startService()
    const { json: challenge } = await rest(url, '/wallet/nonce', {})
    const signedIn = await rest(url, '/wallet/verify', proofOf(makeWallet(), challenge))
    const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!
    const posts = restEndpoints({ basePath: '/api/auth', endpointPrefix: '/wallet' }).filter(
      ({ httpMethod }) => httpMethod === 'POST',
    )
    expect(posts.length).toBeGreaterThan(8)
    for (const type of simpleTypes) {
      for (const { path } of posts) {
        const answer = await send(url, path, type, '{"kind":"login"}', cookie)
        expect([answer?.status, JSON.parse(String(answer?.body)).code], `${type} ${path}`).toEqual([
          400,
          'INVALID_REQUEST',
        ])
        expect(answer?.headers.getSetCookie()).toEqual([])
      }
      for (const path of [rpcPath, '/countersign.v1.SessionService/SignOut']) {
        expect((await send(url, path, type, '{}', cookie))?.status, `${type} ${path}`).toBe(415)
      }
    }
    expect((await rest(url, '/session', undefined, { cookie })).status).toBe(200)
  })
})

describe('the refusal of a body', () => {
  const secret = 'csd_S3cretTokenOfSomebody'
  const bodies: Record<string, string> = {
    'JSON that breaks off': `{"orderId":"x","desktopToken":"${secret}`,
    'JSON with a value without quotes': `{"desktopToken":${secret}}`,
    'JSON with a comma too many': `{"desktopToken":"${secret}",}`,
    'a text': `"${secret}"`,
    'a list': `["${secret}"]`,
    'no JSON at all': secret,
    'a token of a wrong type': `{"orderId":"x","desktopToken":["${secret}"]}`,
    'a token in an object': `{"orderId":"x","desktopToken":{"a":"${secret}"}}`,
    'a number that is none': `{"orderId":"x","desktopToken":"x","afterSequence":"${secret}"}`,
    'a word that is not one of an enum': `{"kind":"${secret}","displayTitle":7}`,
    'a token as a name': `{"orderId":7,"${secret}":1}`,
    'a name twice': `{"orderId":"${secret}","orderId":["${secret}"]}`,
    'a value that is too long': `{"orderId":"${secret.repeat(100)}","desktopToken":"${secret.repeat(100)}"}`,
    'a proof that is none': `{"orderId":"x","challengeToken":"x","proof":"${secret}"}`,
    'a key that is none': `{"nonceId":"x","publicKeyHex":"${secret}","signatureHex":"${secret}"}`,
  }
  const restPaths = [
    '/api/auth/wallet/verify',
    '/api/auth/cross-device/start',
    '/api/auth/cross-device/approve',
    '/api/auth/cross-device/finalize',
  ]
  const rpcPaths = [
    '/countersign.v1.SignInService/VerifySignIn',
    '/countersign.v1.OrderService/StartOrder',
    '/countersign.v1.OrderService/FinalizeOrder',
    '/countersign.v1.OrderService/WatchOrder',
  ]

  test.each(Object.entries(bodies))('quotes nothing of it, nor does the log: %s', async (_, text) => {
    const { logger, lines } = keptLog()
    const { url } = await startService({ logger })
    const send = async (path: string, type: string, body: Buffer): Promise<string> => {
      const answer = await sendRaw(Number(new URL(url).port), requestOf(url, path, type, body))
      const heads = [answer?.headers ?? [], answer?.trailers ?? []].map((head) => JSON.stringify([...head]))
      return `${answer?.status} ${heads} ${answer?.body.toString('latin1')}`
    }
    const answers: string[] = []
    for (const path of restPaths) answers.push(await send(path, 'application/json', Buffer.from(text)))
    for (const path of rpcPaths) {
      answers.push(await send(path, 'application/json', Buffer.from(text)))
      answers.push(await send(path, 'application/proto', Buffer.from(text)))
      answers.push(await send(path, 'application/grpc-web+json', envelope(Buffer.from(text))))
      answers.push(await send(path, 'application/grpc-web+proto', envelope(Buffer.from(text))))
    }
    const { host } = new URL(url)
    const headers = { authorization: `Bearer ${secret}`, 'last-event-id': secret }
    const watch = await fetch(`http://${host}/api/auth/cross-device/events?orderId=${secret}`, { headers })
    answers.push(`${watch.status} ${JSON.stringify([...watch.headers])} ${await watch.text()}`)
    for (const answer of answers) {
      expect(answer).toMatch(/^(200|4\d\d) /)
      expect(answer).not.toContain('S3cret')
      // Details of an error are base64.
      for (const [encoded] of answer.matchAll(/[A-Za-z0-9+/_-]{20,}/g)) {
        for (const start of [0, 1, 2, 3]) {
          expect(Buffer.from(encoded.slice(start), 'base64').toString('latin1')).not.toContain('S3cret')
        }
      }
    }
    expect(answers.join('')).toContain('INVALID_REQUEST')
    expect(JSON.stringify(lines)).not.toContain('S3cret')
  })
})

// A message without fields has no bytes. Its body may have ended before the service asks for it.
test('empty messages of many calls that arrive at once over HTTP/2 are all read', async () => {
  const { url } = await startService({ rateLimit: true })
  const session = connectHttp2(url)
  onTestFinished(() => session.destroy())
  const statusOf = async (): Promise<unknown> => {
    const stream = session.request({
      ':method': 'POST',
      ':path': rpcPath,
      'content-type': 'application/proto',
      origin: url,
    })
    stream.end()
    const [head] = await once(stream, 'response', { signal: AbortSignal.timeout(10_000) })
    stream.destroy()
    return head[':status']
  }
  const statuses = await Promise.all(Array.from({ length: 40 }, statusOf))
  expect(statuses).toEqual(Array(40).fill(200))
})
