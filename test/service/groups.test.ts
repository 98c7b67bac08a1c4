import { createServer } from 'node:http'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import express from 'express'
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { requireSession as expressGuard } from '../../src/integrations/backend/express.ts'
import { requireSession as honoGuard } from '../../src/integrations/backend/hono.ts'
import { createSessionVerifier, verifyAccessToken } from '../../src/integrations/backend/index.ts'
import { fileWith } from '../oidc/support.ts'
import { signIn } from '../support/flows.ts'
import { listening } from '../support/listening.ts'
import { bearer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'

const groups = ['staff', 'a:b.c_d-1']
const audience = 'https://api.example'

/** A service, and a user whom the people file has in groups. */
async function start() {
  const wallet = makeWallet()
  const people = fileWith({ [`nimiq:${wallet.address}`]: { groups, name: 'Ada' } })
  const { url, service } = await startService({ people, accessTokens: { audiences: [audience] } })
  const { token } = await signIn(url, wallet)
  return { url, service, token, other: (await signIn(url)).token }
}

test('the groups of the people file come with a session, wherever it is asked for, and no claim beside them', async () => {
  const { url, service, token, other } = await start()
  const { json } = await rest(url, '/session', undefined, bearer(token))
  expect(json).toEqual({ session: expect.objectContaining({ adapterId: 'nimiq' }), groups })
  expect((await rest(url, '/session', undefined, bearer(other))).json.groups ?? []).toEqual([])
  const sessions = createClient(SessionService, createConnectTransport({ baseUrl: url, httpVersion: '1.1' }))
  expect((await sessions.introspectSession({ token })).groups).toEqual(groups)
  expect((await sessions.introspectSession({ token: other })).groups).toEqual([])
  for (const source of [{ url }, { countersign: service }]) {
    const verifier = createSessionVerifier({ ...source, cacheSeconds: 0 })
    expect((await verifier.verify(token))?.groups).toEqual(groups)
    expect((await verifier.verify(other))?.groups).toEqual([])
    expect(Object.keys((await verifier.verify(token)) ?? {})).not.toContain('subject')
  }
  for (const [each, own] of [
    [token, groups],
    [other, []],
  ] as const) {
    const { accessToken } = (await rest(url, '/access-token', { audience }, bearer(each))).json
    expect((await verifyAccessToken(accessToken, { issuer: url, audience })).groups).toEqual(own)
  }
})

describe('a guard that takes groups', () => {
  test('lets users of any of them pass, and answers others with 403', async () => {
    const { url, token, other } = await start()
    const verifier = createSessionVerifier({ url })
    const app = new Hono()
    for (const [path, wanted] of [
      ['/staff', ['admins', 'staff']],
      ['/admins', ['admins']],
    ] as const) {
      app.get(path, honoGuard(verifier, { groups: wanted }), (c) => c.json({ groups: c.var.session.groups }))
    }
    const ask = async (path: string, of: string) => {
      const response = await app.request(path, { headers: bearer(of) })
      return { status: response.status, json: await response.json() }
    }
    expect(await ask('/staff', token)).toEqual({ status: 200, json: { groups } })
    const refusal = {
      code: 'GROUP_REQUIRED',
      message: expect.stringContaining('admins'),
      metadata: { groups: 'admins' },
    }
    expect(await ask('/admins', token)).toEqual({ status: 403, json: refusal })
    expect((await ask('/staff', other)).status).toBe(403)
    expect((await ask('/staff', 'css_x.y')).status).toBe(401)
  })

  test('answers like the service itself, in Express', async () => {
    const { url, other } = await start()
    const app = express().get(
      '/',
      expressGuard(createSessionVerifier({ url }), { groups: ['staff'] }),
      (_, response) => void response.json(response.locals.session),
    )
    const server = createServer(app)
    const response = await fetch(`${await listening(server)}/`, {
      headers: bearer(other),
    })
    expect([response.status, (await response.json()).code]).toEqual([403, 'GROUP_REQUIRED'])
  })

  test.each([[[]], [['']], ['staff'], [['a b']], [[1]]])('does not take %j', (wanted) => {
    const verifier = createSessionVerifier({ url: 'http://localhost:1' })
    expect(() => honoGuard(verifier, { groups: wanted as never })).toThrow(TypeError)
  })
})
