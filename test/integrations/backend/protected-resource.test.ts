import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { describe, expect, onTestFinished, test } from 'vitest'
import { requireToken as ofExpress, type TokenRequest } from '../../../src/integrations/backend/express.ts'
import { authOf, requireToken as ofFastify } from '../../../src/integrations/backend/fastify.ts'
import { requireToken as ofHono } from '../../../src/integrations/backend/hono.ts'
import {
  type AuthInfo,
  type ProtectedResource,
  type ProtectedResourceOptions,
  protectedResource,
} from '../../../src/integrations/backend/index.ts'
import { ed25519, jwt, keySetOf, makeKey } from './forge.ts'

const key = makeKey()
const issuer = 'https://auth.example'
const resource = 'https://notes.example/mcp'
const options: ProtectedResourceOptions = {
  issuer,
  resource,
  scopes: ['notes:read'],
  offered: ['notes:read', 'notes:write'],
  keys: keySetOf(key),
}
const path = '/.well-known/oauth-protected-resource/mcp'
const challenge = `resource_metadata="https://notes.example${path}", scope="notes:read"`
const expiry = Math.floor(Date.now() / 1000) + 300

function tokenOf(changes: object = {}): string {
  const times = { iat: expiry - 300, exp: expiry }
  const of = { iss: issuer, sub: 'u1', aud: resource, client_id: 'agent', scope: 'notes:read', jti: 'j1', ...times }
  return jwt({ alg: 'EdDSA', typ: 'at+jwt', kid: key.kid }, { ...of, ...changes }, ed25519(key))
}

/** Where a server listens, until the test ends. */
async function addressOf(server: Server): Promise<string> {
  if (!server.listening) await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Servers that answer with what a token says, each in the way of its framework. */
const servers: Readonly<Record<string, (notes: ProtectedResource) => Promise<string>>> = {
  'node:http': async (notes) => {
    const server = createServer((request: IncomingMessage & { auth?: AuthInfo }, response) => {
      void notes.handle(request, response, () => response.end(JSON.stringify(request.auth)))
    })
    return await addressOf(server.listen(0, '127.0.0.1'))
  },
  Express: async (notes) => {
    const app = express()
    app.use(ofExpress(notes))
    app.post('/mcp', (request: TokenRequest, response) => void response.json(request.auth))
    return await addressOf(app.listen(0, '127.0.0.1'))
  },
  'Express, in a router': async (notes) => {
    const app = express()
    app.use(['/mcp', '/.well-known'], ofExpress(notes))
    app.post('/mcp', (request: TokenRequest, response) => void response.json(request.auth))
    return await addressOf(app.listen(0, '127.0.0.1'))
  },
  Fastify: async (notes) => {
    const app = fastify()
    app.addHook('onRequest', ofFastify(notes))
    app.post('/mcp', async (request) => authOf(request))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return await addressOf(app.server)
  },
  'Fastify, by the raw response': async (notes) => {
    const app = fastify()
    app.addHook('onRequest', ofFastify(notes))
    app.post('/mcp', (request, reply) => {
      reply.hijack()
      reply.raw.end(JSON.stringify((request.raw as { auth?: AuthInfo }).auth))
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return await addressOf(app.server)
  },
  Hono: async (notes) => {
    const app = new Hono().use(ofHono(notes)).post('/mcp', (c) => c.json(c.var.auth))
    return await addressOf(serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server)
  },
  'Hono, by a Response of its own': async (notes) => {
    const app = new Hono().use(ofHono(notes)).post('/mcp', (c) => Response.json(c.var.auth))
    return await addressOf(serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server)
  },
  fetch: async (notes) => {
    const app = async (request: Request): Promise<Response> => {
      const { answer, auth, headers } = await notes.check(request)
      return answer ? new Response(answer.body, answer) : Response.json(auth, { headers })
    }
    return await addressOf(serve({ fetch: app, port: 0, hostname: '127.0.0.1' }) as Server)
  },
}

const authorized = (token: string, scheme = 'Bearer ') => ({ headers: { authorization: `${scheme}${token}` } })

describe.each(Object.entries(servers))('a resource on %s', (_, start) => {
  const call = async (address: string, init: RequestInit = {}) => await fetch(address, { method: 'POST', ...init })

  test('lets a client’s token through, with what it says as MCP’s SDK has it', async () => {
    const url = await start(protectedResource(options))
    const token = tokenOf({ scope: 'notes:read notes:write', groups: ['staff'] })
    for (const scheme of ['Bearer ', 'bearer  ']) {
      const called = await call(`${url}/mcp`, authorized(token, scheme))
      expect(called.status).toBe(200)
      expect(await called.json()).toEqual({
        token,
        clientId: 'agent',
        scopes: ['notes:read', 'notes:write'],
        expiresAt: expiry,
        resource,
        extra: { userId: 'u1', groups: ['staff'] },
      })
      expect(called.headers.get('access-control-allow-origin')).toBe('*')
      expect(called.headers.get('access-control-expose-headers')).toBe('WWW-Authenticate, Mcp-Session-Id')
    }
  })

  test('refuses all else with the address of the metadata, which pages can read', async () => {
    const url = await start(protectedResource(options))
    const refused = async (init?: RequestInit) => {
      const { status, headers } = await call(`${url}/mcp`, init)
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-credentials')).toBeNull()
      expect(headers.get('access-control-expose-headers')).toContain('WWW-Authenticate')
      return [status, headers.get('www-authenticate')]
    }
    const invalid = [401, `Bearer error="invalid_token", ${challenge}`]
    expect(await refused()).toEqual([401, `Bearer ${challenge}`])
    expect(await refused(authorized(tokenOf(), 'Basic '))).toEqual([401, `Bearer ${challenge}`])
    expect(await refused(authorized('wrong'))).toEqual(invalid)
    expect(await refused(authorized(tokenOf({ aud: 'https://notes.example/' })))).toEqual(invalid)
    expect(await refused(authorized(tokenOf({ exp: expiry - 320 })))).toEqual(invalid)
    expect(await refused(authorized(tokenOf({ cnf: { jkt: 'x' } })))).toEqual(invalid)
    const ofSession = { client_id: undefined, scope: undefined, sid: 's1', wallet: walletClaim }
    expect(await refused(authorized(tokenOf(ofSession)))).toEqual(invalid)
    const insufficient = [403, `Bearer error="insufficient_scope", ${challenge}`]
    expect(await refused(authorized(tokenOf({ scope: 'notes:write' })))).toEqual(insufficient)
    expect(await refused(authorized(tokenOf({ scope: undefined })))).toEqual(insufficient)
  })

  test('serves its metadata to pages of all origins, at its own address only', async () => {
    const url = await start(protectedResource(options))
    const read = await fetch(`${url}${path}?x=1`)
    expect(read.headers.get('access-control-allow-origin')).toBe('*')
    const metadata = { resource, authorization_servers: [issuer], scopes_supported: ['notes:read', 'notes:write'] }
    expect(await read.json()).toEqual(metadata)
    expect(await (await fetch(`${url}${path}/`)).json()).toEqual(metadata)
    const root = '/.well-known/oauth-protected-resource'
    for (const other of [root, `${root}/`, `${root}?x`, `${root}/other`, `${path}/x`]) {
      const { status, headers } = await fetch(`${url}${other}`)
      expect([other, status, headers.get('access-control-allow-origin')]).toEqual([other, 404, '*'])
    }
    expect((await fetch(`${url}${path}`, { method: 'POST', ...authorized(tokenOf()) })).status).toBe(404)
    expect((await fetch(`${url}${path}`, { method: 'HEAD' })).status).toBe(200)
  })

  test('answers a preflight without a token, and lets a page send the headers of an MCP client', async () => {
    const url = await start(protectedResource(options))
    const preflight = async (at: string, asked: string) => {
      const headers = {
        origin: 'https://page.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': asked,
      }
      // fetch sends none of these headers.
      const sent = send(`${url}${at}`, { method: 'OPTIONS', headers, agent: false }).end()
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      response.resume()
      const { 'access-control-allow-origin': origin, 'access-control-allow-credentials': credentials } =
        response.headers
      expect([response.statusCode, origin, credentials]).toEqual([204, '*', undefined])
      return response.headers['access-control-allow-headers']
    }
    const allowed = 'authorization, content-type, mcp-protocol-version, mcp-session-id'
    expect(await preflight('/mcp', 'authorization,content-type')).toBe(allowed)
    expect(await preflight(path, 'mcp-protocol-version')).toBe(allowed)
    expect(await preflight('/mcp', 'accept,last-event-id')).toBe(`${allowed}, last-event-id`)
    expect((await call(`${url}/mcp`, { method: 'OPTIONS' })).status).toBe(401)
  })

  test('answers 503, and nothing about the token, while the issuer’s keys cannot be fetched', async () => {
    const { keys: _, ...rest } = options
    const fetch = async () => new Response('', { status: 500 })
    const url = await start(protectedResource({ ...rest, fetch }))
    const called = await call(`${url}/mcp`, authorized(tokenOf()))
    expect([called.status, called.headers.get('www-authenticate'), called.headers.get('retry-after')]).toEqual([
      503,
      null,
      '5',
    ])
  })
})

const walletClaim = { adapter_id: 'nimiq', address: 'NQ07', public_key_hex: 'ab' }

test('the metadata of a resource without a path is at the well-known address itself', async () => {
  const [root, slash] = ['https://notes.example', 'https://notes.example/'].map((each) =>
    protectedResource({ ...options, resource: each }),
  )
  for (const each of [root, slash]) {
    const { answer } = await each!.check(new Request('https://notes.example/.well-known/oauth-protected-resource'))
    expect([answer?.status, JSON.parse(answer?.body ?? '')]).toEqual([200, each!.metadata])
    const refused = await each!.check(new Request('https://notes.example/'))
    expect(refused.answer?.headers['www-authenticate']).toContain(
      'resource_metadata="https://notes.example/.well-known/oauth-protected-resource"',
    )
  }
})

test('a wallet is there if the user has allowed it', async () => {
  const headers = { authorization: `Bearer ${tokenOf({ wallet: walletClaim })}` }
  const { auth } = await protectedResource(options).check({ headers, method: 'POST', url: '/mcp' })
  expect(auth?.extra.wallet).toEqual({ adapterId: 'nimiq', address: 'NQ07', publicKeyHex: 'ab' })
})

test.each([
  [{ issuer: 'https://auth.example/' }, /^issuer must be/],
  [{ resource: 'notes.example' }, /^resource must be/],
  [{ resource: 'https://notes.example/#mcp' }, /^resource must be/],
  [{ resource: 'https://user@notes.example/' }, /^resource must be/],
  [{ resource: 'https://notes.example/a b' }, /^resource must be/],
  [{ scopes: [] }, /^scopes must be/],
  [{ scopes: ['a b'] }, /^scopes must be/],
  [{ offered: ['notes:write'] }, /^offered must contain/],
  [{ offered: ['notes:read', 'a"b'] }, /^scopes must be/],
  [{ clockToleranceSeconds: 61 }, /^clockToleranceSeconds must be/],
])('options that do not fit, %j, are a TypeError', (changes, message) => {
  expect(() => protectedResource({ ...options, ...changes })).toThrow(message)
  expect(() => protectedResource({ ...options, ...changes })).toThrow(TypeError)
})
