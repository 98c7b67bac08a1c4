import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { WalletAdapter } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { mapStore } from '../../src/store/map-store.ts'
import { makeInstance } from '../core/order/support.ts'
import { fileWith } from '../oidc/support.ts'
import { signIn } from '../support/flows.ts'
import { keptLog } from '../support/log-lines.ts'
import { memoryStore } from '../support/memory-store.ts'
import { bearer, rest } from '../support/rest.ts'
import { hostileReturnPaths, returnPaths } from '../support/return-paths.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'

const origin = 'https://app.example'
const proxied = { trustProxy: true, trustedOrigins: [origin] } as const satisfies CountersignOptions
const get = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/report' }

/** A service behind a proxy, and somebody who has signed in. */
async function signedIn(options: CountersignOptions = {}) {
  const started = await startService({ ...proxied, ...options })
  const { url } = started
  const { cookie, token, session } = await signIn(url, makeWallet(), { origin })
  return { ...started, cookie, bearer: bearer(token), session }
}

/** What a proxy is answered that asks whether a request with these headers may pass. */
async function ask(url: string, headers: Record<string, string>, query = '', method = 'GET') {
  const response = await fetch(`${url}/api/auth/forward-auth${query}`, { method, headers, redirect: 'manual' })
  const text = await response.text()
  return { status: response.status, headers: response.headers, code: text === '' ? undefined : JSON.parse(text).code }
}

const identityOf = (headers: Headers) =>
  ['user', 'address', 'adapter', 'session', 'groups'].map((name) => headers.get(`x-countersign-${name}`))

describe('a request with a session passes', () => {
  test('by the cookie or the token, each where it belongs', async () => {
    const { url, cookie, bearer } = await signedIn()
    const [name, value] = cookie.split('=') as [string, string]
    const token = bearer.authorization.replace('Bearer ', '')
    const status = async (headers: Record<string, string>) => (await ask(url, { ...get, ...headers })).status
    expect([await status({ cookie }), await status(bearer)]).toEqual([200, 200])
    expect(await status({ authorization: `Bearer ${value}` })).toBe(401)
    expect(await status({ cookie: `${name}=${token}` })).toBe(401)
  })

  test('and the proxy is told whose it is, by cookie and by token, and no cache keeps it', async () => {
    const { url, cookie, bearer, session } = await signedIn()
    for (const sent of [{ cookie }, bearer]) {
      const { status, headers, code } = await ask(url, { ...get, ...sent })
      expect([status, code]).toEqual([200, undefined])
      expect(identityOf(headers)).toEqual([session.userId, session.address, 'nimiq', session.id, ''])
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.getSetCookie()).toEqual([])
    }
    expect((await ask(url, { ...get, cookie }, '', 'HEAD')).headers.get('x-countersign-user')).toBe(session.userId)
  })

  test('until it is revoked', async () => {
    const { url, cookie, bearer } = await signedIn()
    await rest(url, '/sign-out', {}, bearer)
    expect(await ask(url, { ...get, cookie })).toMatchObject({ status: 401, code: 'SESSION_INVALID' })
  })

  test.each(['cookie', 'token'])('and is a use of the session, by its %s, up to its absolute limit', async (form) => {
    const lives = { sessionTtlSeconds: 1000, sessionAbsoluteTtlSeconds: 2500 }
    const { url, cookie, bearer, session } = await signedIn(lives)
    const sent = { ...get, ...(form === 'cookie' ? { cookie } : bearer) }
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    for (const seconds of [500, 1400, 2300, 2499]) {
      vi.setSystemTime(session.createdAt + seconds * 1000)
      const { status, headers } = await ask(url, sent)
      expect([seconds, status, headers.getSetCookie()]).toEqual([seconds, 200, []])
    }
    vi.setSystemTime(session.createdAt + 2_500_000)
    expect((await ask(url, sent)).status).toBe(401)
  })

  test('and is no use of the session if it is refused', async () => {
    const { url, cookie, session } = await signedIn({ sessionTtlSeconds: 1000 })
    vi.useFakeTimers({ toFake: ['Date'], now: session.createdAt + 500_000 })
    onTestFinished(() => void vi.useRealTimers())
    expect((await ask(url, { ...get, cookie }, '?groups=staff')).status).toBe(403)
    expect((await ask(url, { cookie })).status).toBe(403)
    vi.setSystemTime(session.createdAt + 1_000_001)
    expect((await ask(url, { ...get, cookie })).status).toBe(401)
  })

  test('with at most one write in each tenth of the session’s life', async () => {
    const opened = await memoryStore()
    const writes: string[] = []
    const store = mapStore(opened, {
      around(operation, step) {
        if (operation !== 'get') writes.push(operation)
        return step()
      },
    })
    const { url, cookie, session } = await signedIn({ store, secret: 's'.repeat(40), sessionTtlSeconds: 1000 })
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    writes.length = 0
    for (let seconds = 10; seconds <= 990; seconds += 10) {
      vi.setSystemTime(session.createdAt + seconds * 1000)
      expect((await ask(url, { ...get, cookie })).status).toBe(200)
    }
    const extensions = writes.filter((each) => each === 'compareAndSet').length
    expect(extensions).toBeGreaterThan(8)
    expect(extensions).toBeLessThanOrEqual(10)
    expect(writes.filter((each) => each !== 'compareAndSet' && each !== 'addMember')).toEqual([])
  })

  test('however often it is asked for', async () => {
    const { url, cookie } = await signedIn({ rateLimit: true })
    // One connection, and more than the allowance of a minute for other calls with a session.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const statuses = new Set<number | undefined>()
    for (let asked = 0; asked < 2_450; asked++) {
      const call = request(`${url}/api/auth/forward-auth`, { agent, headers: { ...get, cookie } }).end()
      const [answer] = (await once(call, 'response')) as [IncomingMessage]
      statuses.add(answer.resume().statusCode)
    }
    expect(statuses).toEqual(new Set([200]))
    expect((await rest(url, '/session', undefined, { cookie, origin })).status).toBe(200)
  })

  test('with any characters in the id of the user, and with no header beside the five', async () => {
    const id = 'Zoë / 狐 %41\r\nX-Countersign-Adapter: admin'
    const { url, cookie } = await signedIn({ resolveLogin: () => ({ id }) })
    const { status, headers } = await ask(url, { ...get, cookie })
    expect(status).toBe(200)
    expect(headers.get('x-countersign-user')).toMatch(/^[!-~]+$/)
    expect(decodeURIComponent(headers.get('x-countersign-user') ?? '')).toBe(id)
    expect(headers.get('x-countersign-adapter')).toBe('nimiq')
  })

  test('among many other cookies; with two of its name none counts', async () => {
    const { url, cookie } = await signedIn()
    const others = Array.from({ length: 100 }, (_, i) => `theme${i}=${'x'.repeat(100)}`).join('; ')
    const other = cookie.replace(/=.*/, '=css_other.x')
    const status = async (cookies: string) => (await ask(url, { ...get, cookie: cookies })).status
    expect(await status(`${others}; ${cookie}`)).toBe(200)
    expect(await status(`${cookie}; ${other}`)).toBe(401)
    expect(await status(`${other}; ${cookie}`)).toBe(401)
    expect(await status(`x${cookie}`)).toBe(401)
    // Longer than the service reads.
    expect(await status(`${others}; ${others}; ${cookie}`)).toBe(431)
  })

  test('on https with the cookie that no other host can set, and no other', async () => {
    const { url, cookie } = await signedIn({ publicUrl: 'https://auth.example' })
    expect(cookie).toMatch(/^__Host-countersign_session=/)
    expect((await ask(url, { ...get, cookie })).status).toBe(200)
    expect((await ask(url, { ...get, cookie: cookie.replace('__Host-', '') })).status).toBe(401)
  })
})

describe('a proxy that asks for groups', () => {
  async function start() {
    const started = await signedIn({
      people: fileWith({ 'user-1': { groups: ['staff', 'a:b'] } }),
      resolveLogin: () => ({ id: 'user-1' }),
    })
    const answer = async (query: string, more: Record<string, string> = {}) => {
      const { status, code } = await ask(started.url, { ...get, cookie: started.cookie, ...more }, query)
      return code === undefined ? status : [status, code]
    }
    return { ...started, answer }
  }

  test('lets users of any of them pass, and answers others without a redirect', async () => {
    const { url, cookie, answer } = await start()
    expect(identityOf((await ask(url, { ...get, cookie })).headers).at(-1)).toBe('staff,a:b')
    for (const query of ['?groups=staff', '?groups=admins,staff', '?groups=a:b', '?groups=a%3Ab&redirect=1']) {
      expect([query, await answer(query)]).toEqual([query, 200])
    }
    for (const query of ['?groups=admins', '?groups=Staff', '?groups=staf,a', '?redirect=1&groups=admins']) {
      expect([query, await answer(query)]).toEqual([query, [403, 'GROUP_REQUIRED']])
    }
    const refused = await fetch(`${url}/api/auth/forward-auth?groups=admins,x`, { headers: { ...get, cookie } })
    expect((await refused.json()).metadata).toEqual({ groups: 'admins,x' })
    expect(refused.headers.get('location')).toBeNull()
    expect(await answer('?groups=staff', { cookie: '' })).toEqual([401, 'SESSION_REQUIRED'])
  })

  test.each([
    '?group=staff',
    '?groups=',
    '?groups',
    '?groups=,',
    '?groups=staff,,admins',
    '?groups=staff, admins',
    '?groups=staff&groups=staff',
    '?groups=staff&groups=admins',
    '?groups[]=staff',
    '?groups=staff&redirect=1&redirect=1',
    '?groups=staff&redirect=',
    `?groups=${'x'.repeat(65)}`,
    '?=staff',
    '?groups=staff&x=1',
  ])('is refused with %s, whoever asks', async (query) => {
    const { answer } = await start()
    expect(await answer(query)).toEqual([400, 'INVALID_REQUEST'])
    expect(await answer(query, { cookie: '' })).toEqual([400, 'INVALID_REQUEST'])
  })
})

test.each([
  ['GET of no page', { 'x-forwarded-method': 'GET' }, 200],
  ['HEAD of no page', { 'x-forwarded-method': 'HEAD' }, 200],
  ['GET of no page, behind nginx', { 'x-original-method': 'GET' }, 200],
  ['POST of a trusted page', { 'x-forwarded-method': 'POST', origin }, 200],
  ['any request of a trusted page', { origin }, 200],
  ['POST of no page', { 'x-forwarded-method': 'POST' }, 403],
  ['POST of no page, behind nginx', { 'x-original-method': 'POST' }, 403],
  ['OPTIONS of no page', { 'x-forwarded-method': 'OPTIONS' }, 403],
  ['request whose method no proxy tells', {}, 403],
  ['request with an empty method', { 'x-forwarded-method': '' }, 403],
  ['request with two methods', { 'x-forwarded-method': 'GET, POST' }, 403],
  ['POST whose client calls it GET', { 'x-original-method': 'POST', 'x-forwarded-method': 'GET' }, 403],
  ['POST whose client calls it GET, behind nginx', { 'x-forwarded-method': 'POST', 'x-original-method': 'GET' }, 403],
  ['method that is none', { 'x-forwarded-method': 'get' }, 403],
  ['POST of a foreign page', { 'x-forwarded-method': 'POST', origin: 'https://evil.example' }, 403],
  ['GET of a foreign page', { ...get, origin: 'https://evil.example' }, 403],
  ['GET of a page without an origin', { ...get, origin: 'null' }, 403],
  ['GET of two pages', { ...get, origin: `${origin}, https://evil.example` }, 403],
  ['POST that claims a trusted host', { 'x-forwarded-method': 'POST', 'x-forwarded-host': 'app.example' }, 403],
  [
    'POST of a foreign page that claims its host',
    { 'x-forwarded-method': 'POST', origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' },
    403,
  ],
])('a session cookie with a %s: %o is %i', async (_, headers: Record<string, string>, status) => {
  const { url, cookie, bearer } = await signedIn()
  const answer = await ask(url, { ...headers, cookie }, '?redirect=1')
  expect([answer.status, answer.code]).toEqual([status, status === 403 ? 'ORIGIN_NOT_TRUSTED' : undefined])
  // A page cannot add a token that it does not know.
  expect((await ask(url, { ...headers, ...bearer })).status).toBe(200)
})

describe('a request without a session', () => {
  test('is refused, and is sent to the sign-in page if the proxy asks for that', async () => {
    const { url } = await signedIn()
    const location = '/api/auth/sign-in?returnTo=%2Freport%3Fyear%3D2026%26x%3D%25C3%25A9'
    const sent = { ...get, 'x-forwarded-uri': '/report?year=2026&x=%C3%A9' }
    for (const headers of [
      sent,
      { ...sent, 'x-forwarded-method': 'HEAD' },
      { 'x-original-method': 'GET', 'x-original-uri': sent['x-forwarded-uri'] },
      { ...sent, cookie: 'countersign_session=css_unknown.x' },
      { ...sent, authorization: 'Bearer css_unknown.x' },
    ]) {
      for (const query of ['', '?redirect=0']) {
        const answer = await ask(url, headers, query)
        expect(answer).toMatchObject({ status: 401, code: expect.stringMatching(/^SESSION_(REQUIRED|INVALID)$/) })
        expect(answer.headers.get('location')).toBe(location)
      }
      const answer = await ask(url, headers, '?redirect=1')
      expect([answer.status, answer.headers.get('location')]).toEqual([302, location])
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
  })

  test.each(['POST', 'OPTIONS', ''])('is not sent there if it is a %s', async (method) => {
    const { url } = await signedIn()
    const answer = await ask(url, { ...get, 'x-forwarded-method': method }, '?redirect=1')
    expect([answer.status, answer.headers.get('location')]).toEqual([401, null])
  })

  test('leads back to a path of its own host, for any address it asks for', async () => {
    const { url } = await signedIn()
    const back = async (uri: string): Promise<string | null> => {
      const location = (await ask(url, { ...get, 'x-forwarded-uri': uri })).headers.get('location') ?? ''
      expect(location.startsWith('/api/auth/sign-in?returnTo=')).toBe(true)
      return new URL(location, origin).searchParams.get('returnTo')
    }
    const isAscii = (text: string): boolean => /^[!-~]*$/.test(text)
    for (const uri of [...returnPaths.filter(isAscii), '/\'<>"', `/${'x'.repeat(2047)}`])
      expect(await back(uri)).toBe(uri)
    // What no header can carry does not arrive.
    const sendable = hostileReturnPaths.filter((path) => /^[\t\x20-\xff]*$/.test(path))
    for (const uri of [...sendable, '*', 'evil.example:443', '/é', `/${'x'.repeat(2048)}`]) {
      expect(await back(uri), uri).toBe('/')
    }
    expect((await ask(url, { 'x-forwarded-method': 'GET' })).headers.get('location')).toMatch(/returnTo=%2F$/)
  })
})

test('only GET and HEAD ask: a preflight that a proxy passes on as it is opens nothing', async () => {
  const { url, cookie } = await signedIn()
  const preflight = { origin, 'access-control-request-method': 'POST' }
  for (const [method, headers] of [
    ['OPTIONS', preflight],
    ['OPTIONS', {}],
    ['POST', {}],
  ] as const) {
    expect(await ask(url, { ...get, ...headers, cookie }, '', method)).toMatchObject({ status: 405 })
  }
})

describe('forward auth is not enabled, and says so in answer and log,', () => {
  test('while no proxy is trusted', async () => {
    const { logger, lines } = keptLog()
    const { url, cookie } = await signedIn({ trustProxy: false, logger })
    expect(await ask(url, { ...get, cookie }, '?redirect=1')).toMatchObject({ status: 404, code: 'NOT_ENABLED' })
    expect(lines).toContainEqual(
      expect.objectContaining({
        fields: expect.objectContaining({
          method: 'forward-auth',
          message: expect.stringContaining('COUNTERSIGN_TRUST_PROXY'),
        }),
      }),
    )
  })

  test('if the application keeps the sessions itself', async () => {
    const store = await memoryStore()
    const { url, cookie } = await signedIn({ sessionHost: makeInstance(store).host })
    expect(await ask(url, { ...get, cookie })).toMatchObject({ status: 404, code: 'NOT_ENABLED' })
  })
})

test.each([
  ['a line break', 'A1\r\nX-Countersign-User: admin'],
  ['letters that no header has', 'Кошелёк'],
  ['letters that headers have in an encoding of their own', 'Zoë'],
  ['a space at its end', 'A1 '],
  ['nothing in it', ''],
])('an address with %s is not passed on, and neither is the request', async (_, address) => {
  const adapter: WalletAdapter = {
    id: 'ring',
    displayName: 'Ring',
    verify: () => ({ adapterId: 'ring', subject: 'r1', publicKeyHex: 'aa', address }),
    readAddress: (text) => text,
  }
  const { logger, lines } = keptLog()
  const { url } = await startService({ ...proxied, adapters: [adapter], logger })
  const { nonceId } = (await rest(url, '/wallet/nonce', { adapterId: 'ring' }, { origin })).json
  const proof = { nonceId, adapterId: 'ring', publicKeyHex: 'aa', signatureHex: 'aa' }
  const { json } = await rest(url, '/wallet/verify', proof, { origin })
  const { status, headers, code } = await ask(url, { ...get, authorization: `Bearer ${json.token}` })
  expect([status, code, identityOf(headers)]).toEqual([500, 'INTERNAL', [null, null, null, null, null]])
  expect(JSON.stringify(lines)).toContain('printable ASCII')
})

test('every configuration of a proxy has all five headers, from the answer and in place of the client’s', async () => {
  const read = (file: string) => readFile(new URL(`../../deploy/${file}`, import.meta.url), 'utf8')
  const [nginx, caddy, traefik] = await Promise.all(
    ['nginx/forward-auth.conf', 'caddy/forward-auth.Caddyfile', 'traefik/forward-auth.yml'].map(read),
  )
  for (const name of ['User', 'Address', 'Adapter', 'Session', 'Groups']) {
    const variable = `$countersign_${name.toLowerCase()}`
    expect(nginx).toContain(`auth_request_set ${variable} $upstream_http_x_countersign_${name.toLowerCase()};`)
    expect(nginx).toContain(`proxy_set_header X-Countersign-${name} ${variable};`)
    expect(caddy).toMatch(new RegExp(`copy_headers .*X-Countersign-${name}\\b`))
    // What it drops of the client, and what it takes from the answer.
    expect(traefik).toContain(`          X-Countersign-${name}: ""\n`)
    expect(traefik).toContain(`          - X-Countersign-${name}\n`)
  }
})
