import { setTimeout as pause } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { rest } from '../support/rest.ts'
import type { RpcAnswer } from '../support/rpc-answer.ts'
import { callRaw, envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const { getCurrentSession, revokeSession } = SessionService.method

type Send = (
  url: string,
  method: typeof getCurrentSession | typeof revokeSession,
  json: string,
  cookie: string,
) => Promise<RpcAnswer>

test.each<[string, Send]>([
  ['Connect', (url, method, json, cookie) => callRaw(url, method, 'application/json', Buffer.from(json), { cookie })],
  [
    'Connect, gzipped',
    (url, method, json, cookie) =>
      callRaw(url, method, 'application/json', gzipSync(json), { cookie, 'content-encoding': 'gzip' }),
  ],
  [
    'gRPC-Web',
    (url, method, json, cookie) =>
      callRaw(url, method, 'application/grpc-web+json', envelope(Buffer.from(json)), { cookie }),
  ],
])('a call that fails sets no cookie, over %s', async (_name, send) => {
  // A session is extended, and its cookie set anew, once a tenth of its life has gone by.
  const { url } = await startService({ sessionTtlSeconds: 3 })
  const cookies = await Promise.all(
    [1, 2].map(async () => {
      const { json } = await rest(url, '/wallet/nonce', {})
      const { headers } = await rest(url, '/wallet/verify', proofOf(makeWallet(), json))
      return headers.getSetCookie()[0]?.split(';')[0] ?? ''
    }),
  )
  await pause(400)
  const served = await send(url, getCurrentSession, '{}', cookies[0]!)
  expect(served.failure).toBeUndefined()
  expect(served.headers.getSetCookie()).toHaveLength(1)
  const failed = await send(url, revokeSession, '{"sessionId":"unknown"}', cookies[1]!)
  expect(failed.failure?.reason).toBe('SESSION_NOT_FOUND')
  expect(failed.headers.getSetCookie()).toEqual([])
})
