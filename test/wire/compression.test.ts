import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { rest } from '../support/rest.ts'
import { callRaw, envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

/** A user whose list of sessions is long enough to be compressed. */
async function manySessions(url: string): Promise<string> {
  const wallet = makeWallet()
  let token = ''
  for (let each = 0; each < 5; each++) {
    const challenge = (await rest(url, '/wallet/nonce', {})).json
    token = (await rest(url, '/wallet/verify', proofOf(wallet, challenge))).json.token
  }
  return token
}

const { listSessions } = SessionService.method

test.each([
  ['br, gzip', 'gzip'],
  ['gzip;q=0.5, br', 'gzip'],
  ['br', null],
  ['gzip;q=0, br', null],
])(
  'an answer to a client that takes %s has the compression %s: Brotli would cost the server too much',
  async (takes, used) => {
    const { url } = await startService()
    const authorization = `Bearer ${await manySessions(url)}`
    const connect = await callRaw(url, listSessions, 'application/json', Buffer.from('{}'), {
      authorization,
      'accept-encoding': takes,
    })
    expect([connect.status, connect.headers.get('content-encoding')]).toEqual([200, used])
    const grpc = await callRaw(url, listSessions, 'application/grpc-web+proto', envelope(Buffer.alloc(0)), {
      authorization,
      'grpc-accept-encoding': takes,
    })
    expect([grpc.headers.get('grpc-status'), grpc.headers.get('grpc-encoding')]).toEqual(['0', used])
    for (const answer of [connect, grpc]) expect(JSON.stringify(answer.messages).length).toBeGreaterThan(1024)
  },
)

const { watchOrder } = OrderService.method
const zstd = envelope(Buffer.from('zstd'), 1)

/**
 * Clients try again without compression on this code only. Sources: https://connectrpc.com/docs/protocol (unary
 * requests, streaming requests), https://github.com/grpc/grpc/blob/master/doc/compression.md (section "Compression
 * Method Asymmetry").
 */
test.each([
  ['Connect', listSessions, 'application/json', Buffer.from('{}'), 'content-encoding', 'accept-encoding'],
  [
    'a Connect stream',
    watchOrder,
    'application/connect+proto',
    zstd,
    'connect-content-encoding',
    'connect-accept-encoding',
  ],
  ['gRPC-Web', listSessions, 'application/grpc-web+proto', zstd, 'grpc-encoding', 'grpc-accept-encoding'],
  ['a gRPC-Web stream', watchOrder, 'application/grpc-web+proto', zstd, 'grpc-encoding', 'grpc-accept-encoding'],
  [
    'gRPC-Web text',
    listSessions,
    'application/grpc-web-text',
    Buffer.from(zstd.toString('base64')),
    'grpc-encoding',
    'grpc-accept-encoding',
  ],
  ['gRPC', listSessions, 'application/grpc', zstd, 'grpc-encoding', 'grpc-accept-encoding'],
] as const)(
  '%s: an unknown compression is unimplemented, and the answer names those that are known',
  async (...call) => {
    const [, method, contentType, body, header, accepted] = call
    const { url } = await startService()
    const answer = await callRaw(url, method, contentType, body, { [header]: 'zstd' })
    expect(answer.failure).toMatchObject({
      code: 'unimplemented',
      reason: 'COMPRESSION_UNSUPPORTED',
      metadata: { encodings: 'gzip, br' },
    })
    expect(answer.headers.get(accepted)).toBe('gzip, br')
  },
)

test('REST: an unknown compression is 415 with Accept-Encoding (RFC 9110, 15.5.16), and gzip is read', async () => {
  const { url } = await startService()
  const post = (encoding: string, body: Buffer): Promise<Response> =>
    fetch(`${url}/api/auth/wallet/nonce`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': encoding },
      body: new Uint8Array(body),
    })
  const refused = await post('zstd', Buffer.from('{}'))
  expect([refused.status, refused.headers.get('accept-encoding')]).toEqual([415, 'gzip, br'])
  expect(await refused.json()).toEqual({
    code: 'COMPRESSION_UNSUPPORTED',
    message: expect.any(String),
    metadata: { encodings: 'gzip, br' },
  })
  expect((await post('gzip', gzipSync('{}'))).status).toBe(200)
  expect((await post('gzip', gzipSync(Buffer.alloc(1_000_000, ' ')))).status).toBe(413)
})
