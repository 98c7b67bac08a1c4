import { createServer } from 'node:http'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  createSessionVerifier,
  type Fetcher,
  type Session,
  SessionCheckError,
  type SessionVerifier,
  type SessionVerifierOptions,
} from '../../../src/integrations/backend/index.ts'
import { listening } from '../../support/listening.ts'
import { hasPart } from '../../support/optional.ts'
import { RedisServer } from '../../support/redis-server.ts'
import { startService } from '../../support/service.ts'
import { signIn } from './support.ts'

/** `fetch` that counts its calls and can hold their answers back. */
class CountingFetch {
  calls = 0
  /** How many of them the service has answered. */
  answered = 0
  /** Answers wait for it once they are here. */
  held: Promise<void> = Promise.resolve()
  readonly fetch: Fetcher = async (url, init) => {
    this.calls++
    const response = await fetch(url, init)
    this.answered++
    await this.held
    return response
  }

  /** Holds answers back from now on. Returns what lets them go. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.held = promise
    return resolve
  }
}

/** A server that takes connections and says nothing. */
async function serveSilence(): Promise<{ readonly url: string; readonly sockets: Set<Socket> }> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => sockets.add(socket.on('error', () => {})))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  return { url: await listening(server), sockets }
}

/** The error that a check rejects with. */
async function failureOf(check: Promise<unknown>): Promise<SessionCheckError> {
  const error = await check.then(
    (session) => expect.fail(`no failure, but ${JSON.stringify(session)}`),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(SessionCheckError)
  return error as SessionCheckError
}

/** A session that a service of our own makes up. */
function madeUp(id: string, expiresAt = Date.now() + 60_000): Session {
  const wallet = { adapterId: 'nimiq', publicKeyHex: 'aa', address: 'NQ' }
  return { id, userId: 'user', ...wallet, createdAt: 1, expiresAt, ip: '', userAgent: '', groups: [] }
}

describe('what a token or a request says', () => {
  test('over HTTP and in the same process: the same session, as the service tells it to its user', async () => {
    const { url, service } = await startService()
    const { token, session } = await signIn(url)
    const { current: _, ...shown } = session
    const fields = { ...shown, groups: [] }
    const [remote, local] = [createSessionVerifier({ url }), createSessionVerifier({ countersign: service })]
    for (const verifier of [remote, local]) {
      const found = await verifier.verify(token)
      expect(found).toEqual(fields)
      // All who ask share it.
      expect(Object.isFrozen(found)).toBe(true)
      expect(await verifier.verify(`${token}x`)).toBeUndefined()
      expect(await verifier.verify(new Headers({ authorization: `Bearer ${token}` }))).toEqual(fields)
      const ofPage = { method: 'POST', headers: { authorization: `bearer  ${token}`, origin: 'https://evil.example' } }
      expect(await verifier.verify(new Request('https://app.example/', ofPage))).toEqual(fields)
      expect(await verifier.verify(new Request('https://app.example/'))).toBeUndefined()
    }
  })

  test('what a host of sessions keeps for itself stays out', async () => {
    const countersign = {
      introspect: async () => ({ ...madeUp('s'), computerId: 'computer', orderId: 'order' }),
      publicUrl: 'https://app.example',
    }
    const session = await createSessionVerifier({ countersign }).verify('token')
    expect(session).toEqual({ ...madeUp('s', session!.expiresAt), orderId: 'order' })
  })

  test.each<[string, string]>([
    ['nothing', ''],
    ['a space', 'css_a b'],
    ['a line break', 'css_a\nb'],
    ['a control character', 'css_a\u0000b'],
    ['other letters than ASCII', 'css_ä'],
    ['more than 512 characters', 'a'.repeat(513)],
    ['a megabyte', 'a'.repeat(1_000_000)],
  ])('a token with %s is refused without asking', async (_what, token) => {
    const counting = new CountingFetch()
    const verifier = createSessionVerifier({ url: 'http://127.0.0.1:1', fetch: counting.fetch })
    expect(await verifier.verify(token)).toBeUndefined()
    const header = { get: (name: string) => (name === 'authorization' ? `Bearer ${token}` : null) }
    expect(await verifier.verify(header)).toBeUndefined()
    expect(counting.calls).toBe(0)
  })

  test('the longest token that is looked up has 512 characters', async () => {
    const { url } = await startService()
    expect(await createSessionVerifier({ url }).verify('a'.repeat(512))).toBeUndefined()
  })

  test('what is no request is a mistake of the developer', async () => {
    const verifier = createSessionVerifier({ url: 'http://127.0.0.1:1' })
    for (const input of [undefined, null, 1, {}, { headers: null }]) {
      await expect(verifier.verify(input as never)).rejects.toThrow(TypeError)
    }
  })
})

describe('a cookie', () => {
  const page = 'https://app.example'
  /** A service that people reach by https, and a user of it. */
  async function startHttps() {
    const { url } = await startService({ publicUrl: page })
    const { cookie, token } = await signIn(url, { origin: page })
    expect(cookie).toMatch(/^__Host-countersign_session=/)
    return { cookie, token, url, verifier: createSessionVerifier({ url, publicUrl: page }) }
  }
  const get = (verifier: SessionVerifier, cookie: string) => verifier.verify(new Request(page, { headers: { cookie } }))
  const post = (verifier: SessionVerifier, cookie: string, origin?: string, url = page) =>
    verifier.verify(
      new Request(url, { method: 'POST', headers: { cookie, ...(origin === undefined ? {} : { origin }) } }),
    )

  test('counts under the name that the service sets, and under no other', async () => {
    const { cookie, verifier, url } = await startHttps()
    expect(await get(verifier, cookie)).toBeDefined()
    expect(await get(verifier, `a=1; ${cookie}; b=2`)).toBeDefined()
    const plain = cookie.replace('__Host-', '')
    for (const fake of [
      plain,
      cookie.replace('__Host-countersign_', ''),
      `x${cookie}`,
      cookie.toLowerCase(),
      cookie.replace('=', ' ='),
    ]) {
      expect(await get(verifier, fake), fake).toBeUndefined()
    }
    // A service by http: the other way round.
    const http = createSessionVerifier({ url })
    expect(await get(http, plain)).toBeDefined()
    expect(await get(http, cookie)).toBeUndefined()
  })

  test('is no bearer token, nor is a token its value, also if both were just checked where they belong', async () => {
    const { service, url } = await startService({ publicUrl: page })
    const { cookie, token } = await signIn(url, { origin: page })
    const [name, value] = cookie.split('=') as [string, string]
    expect(value).not.toBe(token)
    for (const verifier of [
      createSessionVerifier({ url, publicUrl: page }),
      createSessionVerifier({ countersign: service }),
    ]) {
      for (let time = 0; time < 2; time++) {
        expect(await verifier.verify(token)).toBeDefined()
        expect(await get(verifier, cookie)).toEqual(await verifier.verify(token))
        expect(await verifier.verify(value)).toBeUndefined()
        expect(await verifier.verify(new Headers({ authorization: `Bearer ${value}` }))).toBeUndefined()
        expect(await get(verifier, `${name}=${token}`)).toBeUndefined()
      }
    }
  })

  test('counts only if there is one of its name', async () => {
    const { cookie, verifier } = await startHttps()
    const planted = '__Host-countersign_session=css_planted'
    expect(await get(verifier, `${cookie}; ${planted}`)).toBeUndefined()
    expect(await get(verifier, `${planted}; ${cookie}`)).toBeUndefined()
    expect(await get(verifier, `${cookie}; ${cookie}`)).toBeUndefined()
  })

  test('does not stand in for a bearer token that is wrong', async () => {
    const { cookie, verifier } = await startHttps()
    const ask = (authorization: string) => verifier.verify(new Request(page, { headers: { cookie, authorization } }))
    expect(await ask('Bearer wrong')).toBeUndefined()
    expect(await ask('Basic dXNlcjpwYXNz')).toBeDefined()
  })

  test('needs a trusted origin, or none and a method that changes nothing', async () => {
    const { cookie, verifier, url } = await startHttps()
    expect(await post(verifier, cookie, page)).toBeDefined()
    expect(await post(verifier, cookie, 'HTTPS://APP.example:443')).toBeDefined()
    for (const origin of ['https://evil.example', 'http://app.example', 'https://app.example:8443', 'null', '']) {
      expect(await post(verifier, cookie, origin), origin).toBeUndefined()
    }
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      expect(await verifier.verify(new Request(page, { method, headers: { cookie } })), method).toBeUndefined()
    }
    expect(await verifier.verify(new Request(page, { method: 'HEAD', headers: { cookie } }))).toBeDefined()
    const foreign = { cookie, origin: 'https://evil.example' }
    expect(await verifier.verify(new Request(page, { headers: foreign }))).toBeUndefined()
    // By the request's own address.
    const api = 'https://api.app.example'
    expect(await post(verifier, cookie, api, `${api}/orders`)).toBeDefined()
    expect(await post(verifier, cookie, api)).toBeUndefined()
    // A list takes the place of both defaults.
    const trustedOrigins = ['https://shop.example']
    const listed = createSessionVerifier({ url, publicUrl: page, trustedOrigins })
    expect(await post(listed, cookie, 'https://shop.example')).toBeDefined()
    expect(await post(listed, cookie, page)).toBeUndefined()
  })

  test('in headers alone needs a trusted origin, because the method is not known', async () => {
    const { cookie, verifier } = await startHttps()
    expect(await verifier.verify(new Headers({ cookie }))).toBeUndefined()
    expect(await verifier.verify(new Headers({ cookie, origin: page }))).toBeDefined()
    expect(await verifier.verify(new Headers({ cookie, origin: 'https://evil.example' }))).toBeUndefined()
  })

  test("of a request of Node's: by the scheme of its connection, and with headers that came twice", async () => {
    const { cookie, verifier } = await startHttps()
    const ask = (headers: Record<string, string | string[]>, encrypted: boolean, method = 'POST') =>
      verifier.verify({ method, headers, socket: { encrypted } })
    const [host, origin] = ['api.app.example', 'https://api.app.example']
    expect(await ask({ cookie, host, origin }, true)).toBeDefined()
    expect(await ask({ cookie, ':authority': host, origin }, true)).toBeDefined()
    expect(await ask({ cookie, host, origin }, false)).toBeUndefined()
    expect(await ask({ cookie, host, origin: 'https://evil.example' }, true)).toBeUndefined()
    expect(await ask({ cookie, host, origin: [origin, origin] }, true)).toBeUndefined()
    expect(await ask({ cookie: [cookie, 'a=1'], host }, true, 'GET')).toBeDefined()
    expect(await ask({ cookie, host }, true)).toBeUndefined()
  })

  test('has the name that a service in the same process sets', async () => {
    const { url, service } = await startService({ publicUrl: page })
    const { cookie } = await signIn(url, { origin: page })
    const verifier = createSessionVerifier({ countersign: service })
    expect(await get(verifier, cookie)).toBeDefined()
    expect(await get(verifier, cookie.replace('__Host-', ''))).toBeUndefined()
    expect(await post(verifier, cookie, page, 'https://api.app.example')).toBeDefined()
  })
})

describe('the cache', () => {
  test('checks of one token share a call, and a session is believed for its time', async () => {
    const { url } = await startService()
    const { token, session } = await signIn(url)
    const counting = new CountingFetch()
    const verifier = createSessionVerifier({ url, cacheSeconds: 60, fetch: counting.fetch })
    const letGo = counting.hold()
    const early = Array.from({ length: 100 }, () => verifier.verify(token))
    await pause(50)
    const late = Array.from({ length: 100 }, () => verifier.verify(token))
    letGo()
    for (const found of await Promise.all([...early, ...late])) expect(found?.id).toBe(session.id)
    expect(counting.calls).toBe(1)
    await verifier.verify(token)
    expect(counting.calls).toBe(1)
  })

  test('without time, checks that are made at once still share a call', async () => {
    const { url } = await startService()
    const { token } = await signIn(url)
    const counting = new CountingFetch()
    const verifier = createSessionVerifier({ url, cacheSeconds: 0, fetch: counting.fetch })
    await Promise.all(Array.from({ length: 100 }, () => verifier.verify(token)))
    expect(counting.calls).toBe(1)
    // Whoever asks while a call is under way does not get its answer, but all of them share the next one.
    const letGo = counting.hold()
    const first = verifier.verify(token)
    await expect.poll(() => counting.calls).toBe(2)
    const later = [verifier.verify(token), pause(20).then(() => verifier.verify(token))]
    await pause(50)
    expect(counting.calls).toBe(2)
    letGo()
    expect(await Promise.all([first, ...later])).not.toContain(undefined)
    expect(counting.calls).toBe(3)
  })

  test('a revoked session is refused at the latest when its time in the cache is over', async () => {
    const { url, service } = await startService()
    const cached = [{ url }, { countersign: service }].map((where) =>
      createSessionVerifier({ ...where, cacheSeconds: 0.5 } as SessionVerifierOptions),
    )
    const exact = createSessionVerifier({ url, cacheSeconds: 0 })
    const { token, signOut } = await signIn(url)
    for (const verifier of [...cached, exact]) expect(await verifier.verify(token)).toBeDefined()
    await signOut()
    expect(await exact.verify(token)).toBeUndefined()
    await pause(500)
    for (const verifier of cached) expect(await verifier.verify(token)).toBeUndefined()
  })

  /** A check whose answer is held back, until `letGo`; the session was revoked after the service answered. */
  async function heldCheck(cacheSeconds: number) {
    const { url } = await startService()
    const { token, signOut } = await signIn(url)
    const counting = new CountingFetch()
    const verifier = createSessionVerifier({ url, cacheSeconds, fetch: counting.fetch })
    const letGo = counting.hold()
    const before = verifier.verify(token)
    await expect.poll(() => counting.answered).toBe(1)
    await signOut()
    return { before, letGo, verify: () => verifier.verify(token) }
  }

  test('an answer that was under way while the session was revoked is not given to later callers', async () => {
    const { before, letGo, verify } = await heldCheck(0)
    const after = verify()
    letGo()
    // The first one was told that the session is live.
    expect(await before).toBeDefined()
    expect(await after).toBeUndefined()
  })

  test('the time in the cache is counted from the start of the call, not from its answer', async () => {
    const { before, letGo, verify } = await heldCheck(0.5)
    await pause(500)
    letGo()
    expect(await before).toBeDefined()
    expect(await verify()).toBeUndefined()
  })

  test('a call that is older than its answer may be is not shared any more', async () => {
    const { before, letGo, verify } = await heldCheck(0.5)
    await pause(500)
    const after = verify()
    letGo()
    expect(await before).toBeDefined()
    expect(await after).toBeUndefined()
  })

  test("never keeps a session beyond its end, by the service's clock if this machine's is behind", async () => {
    const { url } = await startService({ sessionTtlSeconds: 3 })
    const { token, session } = await signIn(url)
    const hour = 3_600_000
    // All times of the service are an hour ahead, and its `Date` is late by a second, as a busy Node.js writes it.
    const ahead: Fetcher = async (address, init) => {
      const response = await fetch(address, init)
      const text = (await response.text()).replace(String(session.expiresAt), String(session.expiresAt + hour))
      const date = new Date(Date.parse(response.headers.get('date') ?? '') + hour - 1000).toUTCString()
      return new Response(text, { headers: { 'content-type': 'application/json', date } })
    }
    const sameClock = createSessionVerifier({ url, cacheSeconds: 60 })
    const behind = createSessionVerifier({ url, cacheSeconds: 60, fetch: ahead })
    expect((await sameClock.verify(token))?.expiresAt).toBe(session.expiresAt)
    expect((await behind.verify(token))?.expiresAt).toBe(session.expiresAt + hour)
    await pause(session.expiresAt - Date.now() + 1)
    expect(await sameClock.verify(token)).toBeUndefined()
    expect(await behind.verify(token)).toBeUndefined()
  })

  test('does not keep that a token is not valid', async () => {
    const { url } = await startService()
    const counting = new CountingFetch()
    const verifier = createSessionVerifier({ url, cacheSeconds: 60, fetch: counting.fetch })
    expect(await verifier.verify('made-up')).toBeUndefined()
    expect(await verifier.verify('made-up')).toBeUndefined()
    expect(counting.calls).toBe(2)
  })

  test('has at most 10,000 sessions: a further one takes the place of the oldest, and made-up tokens take none', async () => {
    const asked: string[] = []
    const countersign = {
      publicUrl: 'https://app.example',
      introspect: async (token: string) => {
        asked.push(token)
        return token.startsWith('live') ? madeUp(token) : undefined
      },
    }
    const verifier = createSessionVerifier({ countersign, cacheSeconds: 60 })
    const check = (tokens: string[]) => Promise.all(tokens.map((token) => verifier.verify(token)))
    const range = (beginning: string, count: number) => Array.from({ length: count }, (_, i) => `${beginning}-${i}`)
    await check(range('live', 10_000))
    await check(range('made-up', 1000))
    asked.length = 0
    await check(range('live', 10_000))
    expect(asked).toEqual([])
    await verifier.verify('live-one-more')
    expect((await verifier.verify('live-0'))?.id).toBe('live-0')
    expect((await verifier.verify('live-9999'))?.id).toBe('live-9999')
    expect(asked).toEqual(['live-one-more', 'live-0'])
  })
})

describe('an outage is never "signed out"', () => {
  test('the service is away: a check rejects, and a session in the cache is still believed', async () => {
    const { url, service } = await startService()
    const { token } = await signIn(url)
    const cached = createSessionVerifier({ url, cacheSeconds: 60 })
    expect(await cached.verify(token)).toBeDefined()
    await service.close(0)
    const { reason, message } = await failureOf(createSessionVerifier({ url }).verify(token))
    expect(reason).toBe('SERVICE_UNAVAILABLE')
    expect(message).not.toContain(token)
    expect(await cached.verify(token)).toBeDefined()
  })

  test.skipIf(!hasPart('redis-server'))(
    "the service's store is away: a check rejects, with the service's advice",
    async () => {
      await using redis = await RedisServer.start()
      const { url, service } = await startService({
        store: redis.url,
        secret: 'a secret for tests and for nothing else',
      })
      const { token } = await signIn(url)
      const verifiers = [createSessionVerifier({ url }), createSessionVerifier({ countersign: service })]
      await redis.kill()
      for (const verifier of verifiers) {
        const failure = await failureOf(verifier.verify(token))
        expect(failure.reason).toBe('SERVICE_UNAVAILABLE')
        expect(failure.retryAfterMs).toBeGreaterThan(0)
      }
      await redis.start()
    },
  )

  test('a service that hangs: a check rejects in time, and has a limited number of connections', async () => {
    const { url, sockets } = await serveSilence()
    const verifier = createSessionVerifier({ url, timeoutMs: 2000 })
    const startedAt = performance.now()
    const checks = Array.from({ length: 500 }, (_, i) => failureOf(verifier.verify(`token-${i % 250}`)))
    await expect.poll(() => sockets.size).toBe(100)
    await pause(200)
    expect(sockets.size).toBe(100)
    const failures = await Promise.all(checks)
    expect(new Set(failures.map(({ reason }) => reason))).toEqual(new Set(['SERVICE_UNAVAILABLE']))
    expect(performance.now() - startedAt).toBeGreaterThan(1900)
    // The places are free again.
    const after = sockets.size
    await failureOf(verifier.verify('one-more'))
    expect(sockets.size).toBeGreaterThan(after)
  })

  test('checks that wait behind a call that fails do not ask again', async () => {
    const { url } = await serveSilence()
    const counting = new CountingFetch()
    const verifier = createSessionVerifier({ url, cacheSeconds: 0, timeoutMs: 1500, fetch: counting.fetch })
    const first = failureOf(verifier.verify('token'))
    await expect.poll(() => counting.calls, { interval: 5 }).toBe(1)
    const others = Array.from({ length: 50 }, () => failureOf(verifier.verify('token')))
    await Promise.all([first, ...others])
    expect(counting.calls).toBe(1)
  })

  test('a fetch that heeds no signal is given up in time', async () => {
    const never: Fetcher = () => new Promise(() => {})
    const verifier = createSessionVerifier({ url: 'http://127.0.0.1:1', timeoutMs: 100, fetch: never })
    expect((await failureOf(verifier.verify('token'))).reason).toBe('SERVICE_UNAVAILABLE')
  })

  test('a service in this process that hangs is given up in time', async () => {
    const countersign = { introspect: () => new Promise<undefined>(() => {}), publicUrl: 'https://app.example' }
    const verifier = createSessionVerifier({ countersign, timeoutMs: 100 })
    expect((await failureOf(verifier.verify('token'))).reason).toBe('SERVICE_UNAVAILABLE')
  })

  const live = JSON.stringify({ active: true, session: { id: 's', userId: 'u', createdAt: '1', expiresAt: '2' } })
  test.each<[string, number, Record<string, string>, string, string]>([
    ['HTML', 200, { 'content-type': 'text/html' }, '<h1>Welcome</h1>', 'UNEXPECTED_ANSWER'],
    ['JSON that calls itself text', 200, { 'content-type': 'text/plain' }, live, 'UNEXPECTED_ANSWER'],
    ['half of its JSON', 200, { 'content-type': 'application/json' }, live.slice(0, 30), 'UNEXPECTED_ANSWER'],
    ['a list', 200, { 'content-type': 'application/json' }, '[]', 'UNEXPECTED_ANSWER'],
    ['no session', 200, { 'content-type': 'application/json' }, '{"active":true}', 'UNEXPECTED_ANSWER'],
    ['text for active', 200, { 'content-type': 'application/json' }, '{"active":"false"}', 'UNEXPECTED_ANSWER'],
    ['half a session', 200, { 'content-type': 'application/json' }, live.replace('"u"', '""'), 'UNEXPECTED_ANSWER'],
    ['no times', 200, { 'content-type': 'application/json' }, live.replace('"2"', '"x"'), 'UNEXPECTED_ANSWER'],
    ['not found', 404, { 'content-type': 'application/json' }, '{}', 'UNEXPECTED_ANSWER'],
    ['unauthorized', 401, { 'content-type': 'application/json' }, '{}', 'UNEXPECTED_ANSWER'],
    ['a redirect', 307, { location: '/elsewhere' }, '', 'UNEXPECTED_ANSWER'],
    ['bad gateway', 502, {}, '', 'SERVICE_UNAVAILABLE'],
    ['too many requests', 429, {}, '', 'SERVICE_UNAVAILABLE'],
  ])('what answers with %s', async (_what, status, headers, body, reason) => {
    const paths: string[] = []
    const server = createServer((request, response) => {
      paths.push(request.url ?? '')
      response.writeHead(status, headers).end(body)
    })
    const url = await listening(server)
    expect((await failureOf(createSessionVerifier({ url: `${url}/sso/` }).verify('token'))).reason).toBe(reason)
    // The token went to this path and, after a redirect, nowhere else.
    expect(paths).toEqual(['/sso/countersign.v1.SessionService/IntrospectSession'])
  })
})

test.each<[string, object]>([
  ['no service', {}],
  ['an address without http', { url: 'localhost:8080' }],
  ['an address with a password', { url: 'http://user:secret@localhost' }],
  ['an address with a query', { url: 'http://localhost/?a=1' }],
  ['a public address that is none', { url: 'http://localhost', publicUrl: 'app.example' }],
  ['a service that is none', { countersign: {} }],
  ['a negative time', { url: 'http://localhost', cacheSeconds: -1 }],
  ['more than a minute', { url: 'http://localhost', cacheSeconds: 61 }],
  ['no number', { url: 'http://localhost', cacheSeconds: Number.NaN }],
  ['text for a number', { url: 'http://localhost', cacheSeconds: '5' }],
  ['no time limit', { url: 'http://localhost', timeoutMs: 0 }],
  ['an origin with a path', { url: 'http://localhost', trustedOrigins: ['https://app.example/login'] }],
  ['one origin that is no list', { url: 'http://localhost', trustedOrigins: 'https://app.example' }],
])('%s is a TypeError of one line', (_what, options) => {
  const make = () => createSessionVerifier(options as SessionVerifierOptions)
  expect(make).toThrow(TypeError)
  expect(make).not.toThrow(/\n|secret/)
})
