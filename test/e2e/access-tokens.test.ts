import { createPublicKey } from 'node:crypto'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { betterAuthHost } from '../../src/better-auth/index.ts'
import { verifyAccessToken } from '../../src/integrations/backend/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { startAuth } from '../better-auth/support.ts'
import { decoded, isSignedBy, thumbprintOf } from '../integrations/backend/forge.ts'
import { signIn } from '../support/flows.ts'
import { memoryStore } from '../support/memory-store.ts'
import { inMemory } from '../support/ordinary-store.ts'
import { bearer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const audience = 'https://api.example'
const options = { accessTokens: { audiences: ['orders', audience] } }

async function issue(url: string, token: string, body: object = { audience }) {
  return await rest(url, '/access-token', body, bearer(token))
}

/** A backend's view of a token, with a cache of keys of its own. */
function backendOf(url: string) {
  const ownFetch: typeof fetch = (...call) => fetch(...call)
  return async (token: string) =>
    await verifyAccessToken(token, { issuer: url, audience, fetch: ownFetch }).catch(({ reason }) => reason as string)
}

describe('an access token', () => {
  test('is one that a library and node’s own crypto verify, with the key set alone', async () => {
    const { url } = await startService(options)
    const { wallet, token, session } = await signIn(url)
    const { status, json } = await issue(url, token)
    expect([status, Object.keys(json).sort()]).toEqual([200, ['accessToken', 'expiresAt']])

    const keySet = await (await fetch(`${url}/.well-known/jwks.json`)).json()
    const { payload } = await jwtVerify(json.accessToken, createLocalJWKSet(keySet), {
      typ: 'at+jwt',
      algorithms: ['ES256'],
      issuer: url,
      audience,
    })
    const [jwk] = keySet.keys
    expect(isSignedBy(json.accessToken, createPublicKey({ key: jwk, format: 'jwk' }))).toBe(true)
    expect(decoded(json.accessToken).header).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: thumbprintOf(jwk) })

    expect(payload).toEqual({
      groups: [],
      iss: url,
      sub: session.userId,
      aud: audience,
      sid: session.id,
      iat: expect.any(Number),
      exp: payload.iat! + 300,
      jti: expect.any(String),
      wallet: { adapter_id: 'nimiq', address: wallet.address, public_key_hex: wallet.publicKeyHex },
    })
    expect(json.expiresAt).toBe(payload.exp! * 1000)
    expect(Math.abs(payload.iat! * 1000 - Date.now())).toBeLessThan(30_000)
    expect(await backendOf(url)(json.accessToken)).toMatchObject({ userId: session.userId, sessionId: session.id })
  })

  test('is issued over Connect and gRPC too, each of its own', async () => {
    const { url } = await startService(options)
    const { token, session } = await signIn(url)
    const ids = new Set<unknown>()
    for (const createTransport of [createConnectTransport, createGrpcTransport]) {
      const client = createClient(SessionService, createTransport({ baseUrl: url, httpVersion: '2' }))
      const { accessToken, expiresAt } = await client.issueAccessToken({ audience }, { headers: bearer(token) })
      const found = await backendOf(url)(accessToken)
      expect(found).toMatchObject({ sessionId: session.id, expiresAt: Number(expiresAt) })
      ids.add(typeof found === 'object' ? found.id : undefined)
    }
    expect(ids.size).toBe(2)
  })
})

describe('the session that an access token is issued to', () => {
  test('is named by a cookie too, from a trusted page only', async () => {
    const page = 'https://app.example'
    const { url } = await startService({ ...options, trustedOrigins: [page] })
    const { json: challenge } = await rest(url, '/wallet/nonce', {}, { origin: page })
    const { headers } = await rest(url, '/wallet/verify', proofOf(makeWallet(), challenge), { origin: page })
    const cookie = headers.getSetCookie()[0]!.split(';')[0]!
    const from = async (origin: string) =>
      (await rest(url, '/access-token', { audience }, { cookie, origin })).json.code ?? 'issued'
    expect(await from(page)).toBe('issued')
    expect(await from('https://evil.example')).toBe('ORIGIN_NOT_TRUSTED')
  })

  test('must be live', async () => {
    const { url } = await startService(options)
    expect((await rest(url, '/access-token', { audience })).json.code).toBe('SESSION_REQUIRED')
    const { token } = await signIn(url)
    expect((await issue(url, `${token}x`)).json.code).toBe('SESSION_INVALID')
    const { accessToken } = (await issue(url, token)).json
    // No access token is good for a call of the service itself.
    for (const path of ['/session', '/sessions']) {
      expect((await rest(url, path, undefined, bearer(accessToken))).json.code).toBe('SESSION_INVALID')
    }
    expect((await issue(url, accessToken)).json.code).toBe('SESSION_INVALID')
    await rest(url, '/sign-out', {}, bearer(token))
    expect((await issue(url, token)).json.code).toBe('SESSION_INVALID')
  })

  test('can be that of a host of the application’s own', async () => {
    const { auth } = await startAuth()
    const { url } = await startService({ ...options, sessionHost: betterAuthHost(auth) })
    const { token, session } = await signIn(url)
    const { accessToken } = (await issue(url, token)).json
    expect(await backendOf(url)(accessToken)).toMatchObject({ userId: session.userId, sessionId: session.id })
    await rest(url, '/sign-out', {}, bearer(token))
    expect((await issue(url, token)).json.code).toBe('SESSION_INVALID')
  })
})

test.each<[string, object, string]>([
  ['another one', { audience: 'https://other.example' }, 'AUDIENCE_UNKNOWN'],
  ['one that begins like one of them', { audience: `${audience}/` }, 'AUDIENCE_UNKNOWN'],
  ['none', {}, 'INVALID_REQUEST'],
  ['an empty one', { audience: '' }, 'INVALID_REQUEST'],
  ['one that is too long', { audience: 'x'.repeat(201) }, 'INVALID_REQUEST'],
  ['several', { audience: [audience] }, 'INVALID_REQUEST'],
])('no token is issued for an audience that is not configured: %s', async (_name, body, code) => {
  const { url } = await startService(options)
  const { token } = await signIn(url)
  const { status, json } = await issue(url, token, body)
  expect([status, json.code, json.accessToken]).toEqual([400, code, undefined])
})

test('a token for one audience is refused by another’s backend', async () => {
  const { url } = await startService(options)
  const { token } = await signIn(url)
  expect(await backendOf(url)((await issue(url, token, { audience: 'orders' })).json.accessToken)).toBe('TOKEN_INVALID')
})

describe('the key set', () => {
  const paths = ['/.well-known/jwks.json', '/api/auth/.well-known/jwks.json']
  const secret = ['a first secret for tests and nothing else', 'a second secret for tests and nothing else']

  test('is the same at both paths, may be cached for five minutes, and read by any page', async () => {
    const { url } = await startService({ ...options, secret })
    const texts = await Promise.all(
      paths.map(async (path) => {
        const answer = await fetch(url + path, { headers: { origin: 'https://page.example' } })
        expect(answer.status).toBe(200)
        expect(Object.fromEntries(answer.headers)).toMatchObject({
          'content-type': 'application/json',
          'cache-control': 'public, max-age=300',
          'access-control-allow-origin': 'https://page.example',
          vary: expect.stringContaining('Origin'),
          'x-content-type-options': 'nosniff',
        })
        expect(answer.headers.has('access-control-allow-credentials')).toBe(false)
        return await answer.text()
      }),
    )
    expect(texts[0]).toBe(texts[1])
    expect(JSON.parse(texts[0]!).keys).toHaveLength(2 * secret.length)
    for (const name of ['"d"', ...secret]) expect(texts[0]).not.toContain(name)
    expect((await fetch(url + paths[0])).headers.get('access-control-allow-origin')).toBe('*')
    // A trusted page may send its cookies along.
    const { headers } = await fetch(url + paths[0], { headers: { origin: url } })
    expect([headers.get('access-control-allow-origin'), headers.get('access-control-allow-credentials')]).toEqual([
      url,
      'true',
    ])
  })

  test('is for GET and HEAD', async () => {
    const { url } = await startService({ ...options, secret })
    for (const path of paths) {
      const head = await fetch(url + path, { method: 'HEAD' })
      expect([head.status, await head.text()]).toEqual([200, ''])
      const post = await fetch(url + path, { method: 'POST' })
      expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    }
  })

  test('is not there if no audiences are configured, and neither are access tokens', async () => {
    const { url } = await startService()
    for (const path of paths) expect((await fetch(url + path)).status).toBe(404)
    const { token } = await signIn(url)
    const { status, json } = await issue(url, token)
    expect([status, json.code]).toEqual([404, 'NOT_ENABLED'])
  })
})

describe('in the course of time', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
  afterEach(() => void vi.useRealTimers())
  const pass = (seconds: number) => void vi.setSystemTime(Date.now() + seconds * 1000)

  test('a revoked session gets no more tokens, and those that it has are dead five minutes after; introspection knows at once', async () => {
    const { url, service } = await startService({ ...inMemory, ...options })
    const wallet = makeWallet()
    const [stolen, own] = [await signIn(url, wallet), await signIn(url, wallet)]
    const verify = backendOf(url)
    const { accessToken } = (await issue(url, stolen.token)).json
    expect(decoded(accessToken).payload.exp - decoded(accessToken).payload.iat).toBe(300)
    expect(await service.introspect(stolen.token)).toBeDefined()

    const client = createClient(SessionService, createConnectTransport({ baseUrl: url, httpVersion: '2' }))
    await client.revokeSession({ sessionId: stolen.session.id }, { headers: bearer(own.token) })
    expect(await service.introspect(stolen.token)).toBeUndefined()
    expect(await client.introspectSession({ token: stolen.token })).toMatchObject({ active: false })
    expect((await issue(url, stolen.token)).json.code).toBe('SESSION_INVALID')

    pass(299)
    expect(await verify(accessToken)).toMatchObject({ sessionId: stolen.session.id })
    // Backends tolerate by default that their clock is five seconds ahead.
    pass(6)
    expect(await verify(accessToken)).toBe('TOKEN_EXPIRED')
  })

  test('a token does not outlive its session', async () => {
    const { url } = await startService({
      ...inMemory,
      ...options,
      sessionTtlSeconds: 100,
      sessionAbsoluteTtlSeconds: 100,
    })
    const { token, session } = await signIn(url)
    pass(70)
    const { accessToken, expiresAt } = (await issue(url, token)).json
    expect(expiresAt).toBeLessThanOrEqual(session.expiresAt)
    expect(session.expiresAt - expiresAt).toBeLessThan(1000)
    pass(36)
    expect(await backendOf(url)(accessToken)).toBe('TOKEN_EXPIRED')
    expect((await issue(url, token)).json.code).toBe('SESSION_INVALID')
  })

  test('its lifetime is the one that is set, and issuing one extends the session as any use does', async () => {
    const { url } = await startService({ ...inMemory, accessTokens: { ...options.accessTokens, ttlSeconds: 30 } })
    const { token, session } = await signIn(url)
    const day = 24 * 3600
    pass(day)
    const { accessToken } = (await issue(url, token)).json
    const { payload } = decoded(accessToken)
    expect(payload.exp - payload.iat).toBe(30)
    const { json } = await rest(url, '/session', undefined, bearer(token))
    expect(json.session.expiresAt - session.expiresAt).toBe(day * 1000)
  })
})

describe('while the secret is rotated', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
  afterEach(() => void vi.useRealTimers())
  const pass = (seconds: number) => void vi.setSystemTime(Date.now() + seconds * 1000)
  const [old, fresh] = ['the old secret of a rotation, for tests', 'the new secret of a rotation, for tests']
  const issuer = 'https://auth.example'

  /** Two instances on one store behind a balancer, and two backends that verify tokens. */
  async function startAll() {
    const store = await memoryStore()
    const accessTokens = { ...options.accessTokens, ttlSeconds: 3600 }
    const rules: CountersignOptions = { store, publicUrl: issuer, accessTokens }
    const start = async (secret: readonly string[]) => await startService({ ...rules, secret })
    const instances = [await start([old]), await start([old])]
    const any = (): string => instances[Math.floor(Math.random() * instances.length)]!.url

    const newSession = async (): Promise<string> => {
      const origin = { origin: issuer }
      const { json: challenge } = await rest(any(), '/wallet/nonce', {}, origin)
      return (await rest(any(), '/wallet/verify', proofOf(makeWallet(), challenge), origin)).json.token
    }
    const newToken = async (session: string): Promise<string> => {
      const { json } = await rest(any(), '/access-token', { audience }, bearer(session))
      if (json.code !== undefined) throw new Error(json.code)
      return json.accessToken
    }
    const newBackend = () => {
      const balanced: typeof fetch = (input, init) => fetch(any() + new URL(String(input)).pathname, init)
      return (token: string) => verifyAccessToken(token, { issuer, audience, fetch: balanced })
    }
    const backends = [newBackend(), newBackend()] as const

    const seen = { served: 0, lost: [] as unknown[], kids: new Set<string>() }
    /** Has tokens issued and verified all the time while something happens, and for a while after. */
    const underLoad = async (session: string, step: () => Promise<unknown>): Promise<void> => {
      let stopped = false
      const work = async (verify: (typeof backends)[number]): Promise<void> => {
        while (!stopped) {
          try {
            const token = await newToken(session)
            seen.kids.add(decoded(token).header.kid)
            await verify(token)
            seen.served++
          } catch (thrown) {
            seen.lost.push(thrown)
          }
        }
      }
      const workers = [...backends, ...backends, ...backends].map(work)
      await step()
      await goOn()
      stopped = true
      await Promise.all(workers)
    }
    const goOn = async (): Promise<void> => {
      const total = () => seen.served + seen.lost.length
      const enough = total() + 50
      await expect.poll(total).toBeGreaterThan(enough)
    }
    /** Restarts the instances with other secrets, one after the other, without letting go of a request. */
    const restart = async (...secret: string[]): Promise<void> => {
      for (let count = instances.length; count > 0; count--) {
        instances.push(await start(secret))
        const leaving = instances.shift()
        await goOn()
        await leaving?.service.close()
      }
    }
    return { newSession, newToken, backends, seen, underLoad, restart }
  }

  test('in the documented order, under load, no request is lost; the old key’s tokens are once its secret is gone', async () => {
    const { newSession, newToken, backends, seen, underLoad, restart } = await startAll()
    const before = await newSession()
    const ofOldKey = await newToken(before)
    await underLoad(before, () => restart(old, fresh))
    expect(seen.kids.size).toBe(1)
    pass(300)
    await underLoad(before, () => restart(fresh, old))
    expect(seen.kids.size).toBe(2)
    const after = await newSession()
    for (const verify of backends) expect(await verify(ofOldKey)).toMatchObject({ audience })
    await underLoad(after, () => restart(fresh))
    pass(300)
    for (const verify of backends) await expect(verify(ofOldKey)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
    await underLoad(after, async () => {})
    expect(seen.lost).toEqual([])
    expect(seen.served).toBeGreaterThan(300)
  })

  test('without the first step, tokens of the new key are refused by backends with the keys from before', async () => {
    const { newSession, seen, underLoad, restart } = await startAll()
    const session = await newSession()
    await underLoad(session, async () => {})
    expect(seen.lost).toEqual([])
    await underLoad(session, () => restart(fresh, old))
    expect(seen.lost.map((thrown) => (thrown as { reason?: string }).reason)).toContain('TOKEN_INVALID')
  })
})
