import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { RequestContext } from '../../src/base/request.ts'
import type { Host } from '../../src/core/users/host.ts'
import { makeInstance } from '../core/order/support.ts'
import { memoryStore } from '../support/memory-store.ts'
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
  authorization: string,
) => Promise<RpcAnswer>

test.each<[string, Send]>([
  [
    'Connect',
    (url, method, json, authorization) =>
      callRaw(url, method, 'application/json', Buffer.from(json), { authorization }),
  ],
  [
    'Connect, gzipped',
    (url, method, json, authorization) =>
      callRaw(url, method, 'application/json', gzipSync(json), { authorization, 'content-encoding': 'gzip' }),
  ],
  [
    'gRPC-Web',
    (url, method, json, authorization) =>
      callRaw(url, method, 'application/grpc-web+json', envelope(Buffer.from(json)), { authorization }),
  ],
])('a call that fails sets no cookie, over %s', async (_name, send) => {
  const store = await memoryStore()
  // The host of an application sets a cookie with each look at a session.
  const sessionHost = new Proxy(makeInstance(store).host as Host, {
    get(host, name: keyof Host) {
      if (name !== 'currentSession') return (host[name] as () => unknown).bind(host)
      return async (request: RequestContext) => ({ ...(await host.currentSession(request)), cookies: ['again=1'] })
    },
  })
  const { url } = await startService({ store, sessionHost })
  const tokens = await Promise.all(
    [1, 2].map(async () => {
      const { json } = await rest(url, '/wallet/nonce', {})
      const verified = await rest(url, '/wallet/verify', proofOf(makeWallet(), json))
      return `Bearer ${verified.json.token}`
    }),
  )
  const served = await send(url, getCurrentSession, '{}', tokens[0]!)
  expect(served.failure).toBeUndefined()
  expect(served.headers.getSetCookie()).toHaveLength(1)
  const failed = await send(url, revokeSession, '{"sessionId":"unknown"}', tokens[1]!)
  expect(failed.failure?.reason).toBe('SESSION_NOT_FOUND')
  expect(failed.headers.getSetCookie()).toEqual([])
})
