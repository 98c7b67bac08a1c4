import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Store } from '../../src/index.ts'
import { type CountersignError, type ErrorReason, reasons, refused } from '../../src/shared/errors.ts'
import { mapStore } from '../../src/store/map-store.ts'
import { memoryStore } from '../support/memory-store.ts'
import type { Navigation } from '../support/navigate.ts'
import { freePort } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { stores } from '../support/stores.ts'
import { makeWallet } from '../support/wallet.ts'
import {
  afterSignIn,
  allowCode,
  answerDevice,
  askCode,
  deviceGrant,
  poll,
  pollError,
  startDevices,
  terminal,
  typeAndSignIn,
  typeCode,
} from './devices.ts'
import {
  asked,
  Browser,
  clientsFile,
  contentOf,
  fileWith,
  pass,
  postForm,
  signInByOrder,
  startIssuer,
} from './support.ts'

const { metadata } = terminal

/** What a code asks for, unless something else is said. */
const scopes = ['openid', 'profile']

/** An issuer, and a code of a terminal. */
async function startWithCode() {
  const { url } = await startDevices()
  return { url, ...(await askCode(url)) }
}

test('a terminal gets tokens for the person who typed its code, signed in and allowed it', async () => {
  const events: object[] = []
  const { url } = await startDevices({ onAuditEvent: (event) => void events.push(event) })
  const { userCode, deviceCode } = await askCode(url, {}, { 'user-agent': 'tulip/1.2' })
  expect(userCode).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')

  const browser = new Browser(url)
  expect(contentOf((await browser.open('/device')).text)).toEqual({ kind: 'device-code' })
  const typed = await typeCode(browser, userCode)
  expect(typed).toEqual({
    status: 200,
    json: { redirectTo: '/api/auth/sign-in?returnTo=%2Fdevice%3Fback%3D1&again=1' },
  })
  const { session, wallet } = await browser.signIn()
  const shown = await afterSignIn(browser)
  expect(shown).toMatchObject({
    kind: 'consent',
    client: { name: 'Tulip CLI' },
    scopes: ['openid', 'profile'],
    wallet: { adapterId: 'nimiq', address: wallet.address },
    device: { code: userCode.replace('-', ''), userAgent: 'tulip/1.2', ip: expect.any(String) },
  })
  expect(shown).not.toHaveProperty('host')
  expect(await answerDevice(browser, shown)).toEqual({ status: 200, json: {} })
  pass(5)
  const { status, json } = await poll(url, deviceCode)
  expect([status, json.scope, json.token_type]).toEqual([200, 'openid profile', 'Bearer'])
  const claims = JSON.parse(Buffer.from(json.id_token.split('.')[1], 'base64url').toString())
  expect(claims).toMatchObject({ sub: session.userId, aud: 'tulip-cli', amr: ['swk'], auth_time: expect.any(Number) })
  const authorization = `Bearer ${json.access_token}`
  const userinfo = await fetch(`${url}/api/auth/oidc/userinfo`, { headers: { authorization } })
  expect(await userinfo.json()).toMatchObject({ sub: session.userId })
  const refreshed = await refresh(url, json.refresh_token)
  expect(refreshed.status).toBe(200)
  const { userId, id: sessionId } = session
  expect(events).toContainEqual(
    expect.objectContaining({
      type: 'app.connected',
      userId,
      sessionId,
      clientId: 'tulip-cli',
      scope: 'openid profile',
    }),
  )
})

const refresh = (url: string, token: string) =>
  postForm(url, 'token', { grant_type: 'refresh_token', refresh_token: token, client_id: 'tulip-cli' })

test('a terminal gets no address with the code in it, and the pages of the library are not there', async () => {
  const { url } = await startDevices()
  const asked = await postForm(url, 'device/auth', { client_id: 'tulip-cli', scope: 'openid' })
  expect(asked.json).toEqual({
    device_code: expect.any(String),
    user_code: expect.any(String),
    verification_uri: `${url}/device`,
    expires_in: 600,
    interval: 5,
  })
  const discovery = await (await fetch(`${url}/.well-known/oauth-authorization-server`)).json()
  expect(discovery.device_authorization_endpoint).toBe(`${url}/api/auth/oidc/device/auth`)
  expect(discovery.grant_types_supported).toContain(deviceGrant)
  const browser = new Browser(url)
  const filled = await browser.open(`/device?user_code=${asked.json.user_code}&back=1`)
  expect(contentOf(filled.text)).toEqual({ kind: 'device-code' })
  const form = { method: 'POST', body: new URLSearchParams({ user_code: asked.json.user_code, xsrf: 'x' }) }
  const posted = await browser.fetch('/device', { ...form, headers: { origin: url } })
  expect(posted.status).toBe(400)
  for (const path of ['/device/x', '/api/auth/oidc/device', '/api/auth/device', '/api/auth/oidc/device/x']) {
    expect((await browser.fetch(path)).status, path).toBe(404)
  }
})

test('without the setting, nothing of it is there, and a client that needs it stops the start', async () => {
  const { url } = await startIssuer()
  expect((await new Browser(url).fetch('/device')).status).toBe(404)
  expect((await fetch(`${url}/api/auth/oidc/device/auth`, { method: 'POST' })).status).toBe(404)
  const discovery = await (await fetch(`${url}/.well-known/openid-configuration`)).json()
  expect(discovery).not.toHaveProperty('device_authorization_endpoint')
  await expect(startIssuer([terminal])).rejects.toThrow('client tulip-cli: its grant for devices needs oidc.device')
})

test.each([
  [{ ...terminal, first_party: true }, 'first_party needs https for every redirect URI, and not the device grant'],
  [
    { first_party: true, metadata: { ...metadata, redirect_uris: ['https://tulip.example/callback'] } },
    'first_party needs https for every redirect URI, and not the device grant',
  ],
  [{ metadata: { ...metadata, grant_types: ['refresh_token'] } }, 'redirect_uris must be a list of addresses'],
  [{ ...terminal, default_resource: 'https://orders.example' }, 'default_resource must be the address of one of its'],
  [{ ...terminal, default_resource: 1 }, 'default_resource must be the address of a resource'],
])('a client of the file that does not fit stops the start: %o', async (client, message) => {
  await expect(startDevices({}, [client])).rejects.toThrow(message)
})

test('a code may be typed in small letters, with spaces, and as copies have it; a wrong one is refused', async () => {
  const { url, userCode } = await startWithCode()
  const browser = new Browser(url)
  const wide = userCode.replace(/[A-Z]/g, (letter) => String.fromCodePoint(letter.charCodeAt(0) + 0xfe_e0))
  for (const text of [
    ...[userCode.toLowerCase(), ` ${userCode.replace('-', ' ')} `, userCode.replace('-', '')],
    ...[wide, wide.toLowerCase(), `${userCode}.`, `“${userCode}”`, `\u2068${userCode}\u2069`],
    ...['–', '‑', '—', '−', '－', '_', '.', '\u00a0', '\u200b'].map((sign) => userCode.replace('-', sign)),
  ]) {
    expect((await typeCode(browser, text)).status, text).toBe(200)
  }
  const ess = `${userCode.slice(0, 7)}ß`
  for (const text of ['BBBB-BBBB', '', userCode.slice(1), `${userCode}B`, 'AEIO-UY12', `Code: ${userCode}`, ess]) {
    const { status, json } = await typeCode(browser, text)
    expect([status, json.code], text).toEqual([400, 'INVALID_REQUEST'])
  }
})

test('a poll within four seconds of the last is slowed down, and one of an unknown code is not', async () => {
  const { url, deviceCode } = await startWithCode()
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')
  expect(await poll(url, deviceCode)).toMatchObject({ status: 400, json: { error: 'slow_down' } })
  pass(3)
  expect(await pollError(url, deviceCode)).toBe('slow_down')
  pass(2)
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')
  expect(await pollError(url, 'unknown')).toBe('invalid_grant')
  expect(await pollError(url, 'unknown')).toBe('invalid_grant')
})

test('a code that was not typed in ten minutes has expired, and ten minutes later it is not found', async () => {
  const { url, userCode, deviceCode } = await startWithCode()
  pass(601)
  expect(await pollError(url, deviceCode)).toBe('expired_token')
  expect((await typeCode(new Browser(url), userCode)).status).toBe(400)
  // The polls of its device do not keep it.
  pass(590)
  expect(await pollError(url, deviceCode)).toBe('expired_token')
  pass(10)
  expect(await pollError(url, deviceCode)).toBe('invalid_grant')
})

test('a no is access_denied, once, and the code is over', async () => {
  const { url, userCode, deviceCode } = await startWithCode()
  const { browser, token, shown } = await typeAndSignIn(url, userCode)
  expect((await answerDevice(browser, shown, false)).status).toBe(200)
  expect((await answerDevice(browser, shown)).status).toBe(400)
  expect((await typeCode(new Browser(url), userCode)).status).toBe(400)
  expect(await pollError(url, deviceCode)).toBe('access_denied')
  pass(5)
  expect(await pollError(url, deviceCode)).toBe('invalid_grant')
  expect((await rest(url, '/apps', undefined, { authorization: `Bearer ${token}` })).json.apps).toEqual([])
})

test('a used code is not found, and what it brought lives', async () => {
  const { url, userCode, deviceCode } = await startWithCode()
  await allowCode(url, userCode)
  const { json: tokens } = await poll(url, deviceCode)
  pass(5)
  expect(await pollError(url, deviceCode)).toBe('invalid_grant')
  expect((await refresh(url, tokens.refresh_token)).status).toBe(200)
})

test.each(stores)('of twenty polls at once one wins, and nothing is revoked, on $name', async ({ open }) => {
  const { url } = await startDevices({ secret: 'one secret for all of the instances', ...(await open()) })
  const { userCode, deviceCode } = await askCode(url)
  await allowCode(url, userCode)
  const polls = await Promise.all(Array.from({ length: 20 }, () => poll(url, deviceCode)))
  const won = polls.filter(({ status }) => status === 200)
  expect(won).toHaveLength(1)
  // Those that come when the code is used do not find it.
  for (const { json } of polls) expect([undefined, 'slow_down', 'invalid_grant']).toContain(json.error)
  expect((await refresh(url, won[0]?.json.refresh_token)).status).toBe(200)
})

/** A store in which a poll's turn to look at its code, once that is decided, is what `turn` says. */
async function storeWithTurns(turn: () => Promise<boolean>): Promise<Store> {
  const store = await memoryStore()
  let isDecided = false
  return {
    ...mapStore(store, {}),
    take(key) {
      // A decision takes the code that people type, once it is written.
      isDecided ||= key.startsWith('oidc:DeviceUserCode:')
      return store.take(key)
    },
    compareAndSet(key, ...change) {
      return isDecided && key.startsWith('oidc:DeviceCode:') ? turn() : store.compareAndSet(key, ...change)
    },
  }
}

const secret = 'a secret of 32 characters or more'

test('of twenty polls that all look at the code at once one wins, and nothing is revoked', async () => {
  // Those that the time of the last look would keep apart all look.
  const { url } = await startDevices({ store: await storeWithTurns(async () => true), secret })
  const { userCode, deviceCode } = await askCode(url)
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')
  pass(5)
  await allowCode(url, userCode)
  const polls = await Promise.all(Array.from({ length: 20 }, () => poll(url, deviceCode)))
  expect(polls.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(new Set(polls.map(({ json }) => json.error))).toEqual(new Set([undefined, 'invalid_grant']))
  const tokens = polls.find(({ status }) => status === 200)?.json
  expect((await refresh(url, tokens.refresh_token)).status).toBe(200)
})

/** A service whose next look at a device code meets a failure. */
async function startFailing(reason: ErrorReason) {
  let failure: CountersignError | undefined = refused(reason, { retryAfterMs: 1000 })
  const turn = async () => {
    if (failure !== undefined) throw failure
    return true
  }
  const heal = () => {
    failure = undefined
  }
  return { ...(await startDevices({ store: await storeWithTurns(turn), secret })), heal }
}

const passing = Object.entries(reasons).flatMap(([reason, { retry }]) => (retry === 'after a time' ? [reason] : []))

test.each(passing as ErrorReason[])(
  'a poll that meets %s is slowed down, which no device takes for the end, and its code stays good',
  async (reason) => {
    const { url, heal } = await startFailing(reason)
    const { userCode, deviceCode } = await askCode(url)
    await allowCode(url, userCode)
    expect(await poll(url, deviceCode)).toMatchObject({ status: 400, json: { error: 'slow_down' } })
    heal()
    expect((await poll(url, deviceCode)).status).toBe(200)
  },
)

test.each(['NOT_ENABLED', 'LOGIN_REFUSED', 'SESSION_NOT_FRESH', 'INTERNAL'] as const)(
  'a poll that meets %s, which no later poll changes, is told so',
  async (reason) => {
    const { url } = await startFailing(reason)
    const { userCode, deviceCode } = await askCode(url)
    await allowCode(url, userCode)
    const { status, json } = await poll(url, deviceCode)
    expect([status, json.error]).toEqual(reason === 'INTERNAL' ? [500, 'server_error'] : [400, 'invalid_request'])
  },
)

test('of two answers of a person at once one counts', async () => {
  const { url, userCode, deviceCode } = await startWithCode()
  const { browser, shown } = await typeAndSignIn(url, userCode)
  const answers = await Promise.all([true, false].map((allow) => answerDevice(browser, shown, allow)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
  const { status } = await poll(url, deviceCode)
  expect(status === 200).toBe(answers[0]?.status === 200)
})

test('a code is for its own client', async () => {
  const other = { metadata: { ...metadata, client_id: 'other-cli' } }
  const { url } = await startDevices({}, [terminal, other])
  const { userCode, deviceCode } = await askCode(url)
  await allowCode(url, userCode)
  expect(await pollError(url, deviceCode, 'other-cli')).toBe('invalid_grant')
  pass(5)
  expect((await poll(url, deviceCode)).status).toBe(200)
})

test.each([
  ['openid', 'invalid_grant', 401],
  ['openid offline_access', undefined, 200],
])('after a sign-out, a code and its tokens with the scope %s', async (scope, error, userinfoStatus) => {
  const { url } = await startDevices()
  const [first, second] = [await askCode(url, { scope }), await askCode(url, { scope })]
  const { token } = await allowCode(url, first.userCode)
  const { json: tokens } = await poll(url, first.deviceCode)
  await rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` })
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  expect((await fetch(`${url}/api/auth/oidc/userinfo`, { headers })).status).toBe(userinfoStatus)
  expect((await refresh(url, tokens.refresh_token)).json.error).toBe(error)
  const { token: secondToken } = await allowCode(url, second.userCode)
  await rest(url, '/sign-out', {}, { authorization: `Bearer ${secondToken}` })
  expect(await pollError(url, second.deviceCode)).toBe(error)
})

test('a session from before the code was typed decides nothing', async () => {
  const { url, userCode, deviceCode } = await startWithCode()
  const browser = new Browser(url)
  const { session } = await browser.signIn()
  pass(1)
  await typeCode(browser, userCode)
  expect((await afterSignIn(browser)).path).toBe('/api/auth/sign-in')
  const answer = { allow: true, sessionId: session.id, scopes, code: userCode.replace('-', '') }
  expect(await browser.post('/device', answer)).toMatchObject({ status: 403, json: { code: 'SESSION_NOT_FRESH' } })
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')
})

test('a session that an order made decides nothing', async () => {
  const { url, userCode, deviceCode } = await startWithCode()
  const browser = new Browser(url)
  await typeCode(browser, userCode)
  await signInByOrder(browser, makeWallet())
  const shown = await afterSignIn(browser)
  expect(shown).toMatchObject({ status: 403, kind: 'device-direct', client: { name: 'Tulip CLI' } })
  const session = await browser.fetch('/api/auth/session')
  const { id: sessionId } = (await session.json()).session
  const answer = { allow: true, sessionId, scopes, code: userCode.replace('-', '') }
  expect(await browser.post('/device', answer)).toMatchObject({ status: 403, json: { code: 'SESSION_NOT_FRESH' } })
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')
})

test('what another browser typed, another session, or another code decides nothing', async () => {
  const { url, userCode, deviceCode } = await startWithCode()
  const victim = await Browser.signedIn(url)
  const { browser: attacker, shown } = await typeAndSignIn(url, userCode)
  // The address that the attacker's browser is at has nothing in it.
  expect(await afterSignIn(victim)).toMatchObject({ kind: 'device-code' })
  const own = { allow: true, sessionId: shown.sessionId, scopes, code: userCode.replace('-', '') }
  expect((await victim.post('/device', own)).status).toBe(400)
  for (const wrong of [{ code: 'BBBBBBBB' }, { code: undefined }, { sessionId: 'another' }]) {
    expect((await attacker.post('/device', { ...own, ...wrong })).status, JSON.stringify(wrong)).toBe(400)
  }
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')
})

test('a cookie that the service did not sign is ignored', async () => {
  const { url, userCode } = await startWithCode()
  const browser = new Browser(url)
  await typeCode(browser, userCode)
  const [cookie] = [...browser.cookies.values()]
  const [body = '', signature] = cookie?.value.split('.') ?? []
  const typed = JSON.parse(Buffer.from(body, 'base64url').toString())
  const forged = Buffer.from(JSON.stringify({ ...typed, at: 0 })).toString('base64url')
  browser.cookies.set('forged', { name: String(cookie?.name), value: `${forged}.${signature}`, path: '/' })
  browser.cookies.delete(`${cookie?.name} /`)
  expect(await afterSignIn(browser)).toMatchObject({ kind: 'device-code' })
})

test('no foreign page, frame, prefetch or form decides', async () => {
  const port = await freePort()
  const own = `http://localhost:${port}`
  const { url } = await startDevices({ port, publicUrl: own, trustedOrigins: [own, 'https://trusted.example'] })
  const { userCode, deviceCode } = await askCode(url)
  const { browser, shown } = await typeAndSignIn(url, userCode)
  const answer = { allow: true, sessionId: shown.sessionId, scopes, code: userCode.replace('-', '') }
  for (const origin of ['https://evil.example', 'https://trusted.example', 'null']) {
    expect(await browser.post('/device', answer, origin)).toMatchObject({
      status: 403,
      json: { code: 'ORIGIN_NOT_TRUSTED' },
    })
    expect((await browser.post('/device', { code: userCode }, origin)).status).toBe(403)
  }
  const headers = { origin: url, 'content-type': 'text/plain' }
  expect((await browser.fetch('/device', { method: 'POST', headers, body: JSON.stringify(answer) })).status).toBe(400)
  const withoutOrigin = { 'content-type': 'application/json' }
  const sent = await browser.fetch('/device', { method: 'POST', headers: withoutOrigin, body: JSON.stringify(answer) })
  expect(sent.status).toBe(403)
  const framed = await browser.fetch('/device?back=1', { headers: { 'sec-fetch-dest': 'iframe' } })
  expect(framed.status).toBe(403)
  const page = await browser.fetch('/device?back=1', { headers: { 'sec-purpose': 'prefetch;prerender' } })
  expect(page.headers.get('x-frame-options')).toBe('DENY')
  expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')
})

test('what a person has allowed is not remembered, for the next code and for a request by redirect', async () => {
  const web = {
    metadata: {
      ...metadata,
      redirect_uris: ['https://tulip.example/callback'],
      grant_types: [deviceGrant, 'refresh_token', 'authorization_code'],
    },
  }
  const { url } = await startDevices({}, [web])
  const first = await askCode(url)
  const { wallet, browser } = await allowCode(url, first.userCode)
  expect((await poll(url, first.deviceCode)).status).toBe(200)
  const second = await askCode(url)
  const { shown } = await allowCode(url, second.userCode, wallet)
  expect(shown.kind).toBe('consent')
  const own = { client_id: 'tulip-cli', redirect_uri: 'https://tulip.example/callback', scope: 'openid profile' }
  const query = new URLSearchParams({ ...asked, ...own })
  const { text } = await browser.open(`/api/auth/oidc/authorize?${query}`)
  expect(contentOf(text).kind).toBe('consent')
  expect(contentOf(text)).not.toHaveProperty('host')
  const { address } = await browser.open(`/api/auth/oidc/authorize?${query}&prompt=none`)
  expect(address.searchParams.get('error')).toBe('consent_required')
})

test('a client for groups is for their people, at the decision and at the poll', async () => {
  const [ada, bob] = [makeWallet(), makeWallet()]
  const people = fileWith({ [`nimiq:${ada.address}`]: { groups: ['staff'] } })
  const { url, service } = await startDevices({ people }, [{ ...terminal, groups: ['staff'] }])
  const first = await askCode(url)
  const { browser, shown: page } = await typeAndSignIn(url, first.userCode, bob)
  const { code, sessionId, ...shown } = page
  expect(shown).toMatchObject({ status: 403, kind: 'not-for-account', wallet: `nimiq:${bob.address}` })
  expect((await browser.post('/device', { allow: true, sessionId, scopes, code })).status).toBe(400)
  expect(await pollError(url, first.deviceCode)).toBe('authorization_pending')
  expect((await browser.post('/device', { allow: false, sessionId, code })).status).toBe(200)
  pass(5)
  expect(await pollError(url, first.deviceCode)).toBe('access_denied')

  const [second, third] = [await askCode(url), await askCode(url)]
  await allowCode(url, second.userCode, ada)
  await allowCode(url, third.userCode, ada)
  const { json: tokens } = await poll(url, second.deviceCode)
  writeFileSync(people, JSON.stringify({ [`nimiq:${ada.address}`]: { groups: ['guests'] } }))
  await service.reload()
  expect(await pollError(url, third.deviceCode)).toBe('access_denied')
  expect((await refresh(url, tokens.refresh_token)).json.error).toBe('access_denied')
})

/** A browser at an address, behind a proxy. */
class BrowserAt extends Browser {
  ip: string

  constructor(url: string, ip: string) {
    super(url)
    this.ip = ip
  }

  protected override async send(target: URL, { headers, ...others }: Navigation): Promise<Response> {
    return await super.send(target, { ...others, headers: { ...headers, ...forwardedFrom(this.ip, this.url) } })
  }
}

const forwardedFrom = (ip: string, url: string) => ({ 'x-forwarded-for': ip, 'x-forwarded-host': new URL(url).host })
const mismatch = { status: 403, json: { code: 'NETWORK_MISMATCH' } }

test('with proximity enforce, a code is typed and allowed in the network of its terminal alone', async () => {
  const { url } = await startDevices({ proximity: 'enforce', trustProxy: 1 })
  const { userCode, deviceCode } = await askCode(url, {}, forwardedFrom('8.8.8.7', url))
  expect(await typeCode(new BrowserAt(url, '9.9.9.9'), userCode)).toMatchObject(mismatch)
  const browser = new BrowserAt(url, '8.8.8.9')
  expect((await typeCode(browser, userCode)).status).toBe(200)
  await browser.signIn()
  const shown = await afterSignIn(browser)
  browser.ip = '9.9.9.9'
  expect(await answerDevice(browser, shown)).toMatchObject(mismatch)
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')
  browser.ip = '8.8.8.9'
  expect((await answerDevice(browser, shown)).status).toBe(200)
  pass(5)
  expect((await poll(url, deviceCode)).status).toBe(200)
})

/** Types codes at an address. */
async function startLimited(options = {}) {
  const { url } = await startDevices({ trustProxy: 1, rateLimit: true, ...options })
  const browser = new BrowserAt(url, '')
  const type = async (ip: string, code: string) => {
    browser.ip = ip
    return (await browser.post('/device', { code })).status
  }
  return { url, type }
}

test('ten wrong codes of a network in ten minutes are the most; then right ones are refused there, too', async () => {
  const { url, type } = await startLimited()
  const { userCode } = await askCode(url)
  // Right ones take nothing, and neither do texts that cannot be a code.
  for (let time = 0; time < 15; time++) expect(await type('8.8.8.7', userCode)).toBe(200)
  for (let time = 0; time < 15; time++) expect(await type('8.8.8.7', `Code: ${userCode}`)).toBe(400)
  const wrong = await Promise.all(Array.from({ length: 30 }, () => type('8.8.8.7', 'BBBB-BBBB')))
  expect(wrong.filter((status) => status === 400)).toHaveLength(10)
  expect(wrong.filter((status) => status === 429)).toHaveLength(20)
  expect(await type('8.8.8.7', userCode)).toBe(429)
  expect(await type('9.9.9.7', userCode)).toBe(200)
  pass(50)
  expect(await type('8.8.8.7', 'BBBB-BBBB')).toBe(429)
  pass(551)
  const later = await askCode(url)
  expect(await type('8.8.8.7', later.userCode)).toBe(200)
})

test('wrong codes of one IPv6 subscriber count together, whatever addresses they come from', async () => {
  const { type } = await startLimited()
  const statuses = []
  for (let index = 0; index < 60; index++)
    statuses.push(await type(`2a00:1450:4001:${index.toString(16)}::1`, 'BBBB-BBBB'))
  expect(statuses.filter((status) => status === 400).length).toBeLessThanOrEqual(40)
})

test('codes, too, are counted: a caller that proves nothing counts for its network', async () => {
  const { url } = await startDevices({ rateLimit: true, limits: { rates: { 'sign-in': 3 } } })
  for (let time = 0; time < 3; time++) await askCode(url)
  const { status, json } = await postForm(url, 'device/auth', { client_id: 'tulip-cli', scope: 'openid' })
  expect([status, json.error]).toEqual([429, 'temporarily_unavailable'])
})

test('a client with a resource by default gets a JWT for it, which userinfo refuses, for its requests of both kinds', async () => {
  const resource = 'https://orders.example'
  const clients = fileWith({
    clients: [{ ...terminal, default_resource: resource }],
    resources: [{ resource, scopes: ['orders:read'] }],
  })
  const { url } = await startDevices({ oidc: { clients } })
  const { userCode, deviceCode } = await askCode(url, { scope: 'openid orders:read groups unknown' })
  const { shown } = await allowCode(url, userCode)
  expect(shown.scopes).toEqual(['openid', 'groups', `orders:read ${resource}`])
  const { json } = await poll(url, deviceCode)
  const payload = JSON.parse(Buffer.from(json.access_token.split('.')[1], 'base64url').toString())
  expect(payload).toMatchObject({ aud: resource, scope: 'orders:read', client_id: 'tulip-cli' })
  const headers = { authorization: `Bearer ${json.access_token}` }
  expect((await fetch(`${url}/api/auth/oidc/userinfo`, { headers })).status).toBe(401)
  const refreshed = await refresh(url, json.refresh_token)
  const again = JSON.parse(Buffer.from(refreshed.json.access_token.split('.')[1], 'base64url').toString())
  expect(again.aud).toBe(resource)
})

test('parameters for a sign-in by redirect do nothing, and a request for nothing is refused', async () => {
  const { url } = await startDevices()
  const nothing = { prompt: 'none', max_age: '0', login_hint: 'nimiq:NQ07', claims: '{"id_token":{"sid":null}}' }
  const { userCode, deviceCode } = await askCode(url, { scope: 'openid', ...nothing })
  await allowCode(url, userCode)
  expect((await poll(url, deviceCode)).status).toBe(200)
  for (const scope of ['unknown', '']) {
    const { status, json } = await postForm(url, 'device/auth', { client_id: 'tulip-cli', scope })
    expect([status, json.error], scope).toEqual([400, 'invalid_scope'])
  }
})

test('what the page has not shown is not given: it is shown again, or the code is over if nothing of it is left', async () => {
  const file = clientsFile(terminal)
  const { url, service } = await startDevices({ oidc: { clients: file } })
  const bound = async (scope?: string) => {
    writeFileSync(file, JSON.stringify({ clients: [{ metadata: { ...metadata, scope } }] }))
    await service.reload()
  }
  const { userCode, deviceCode } = await askCode(url)
  await bound('openid')
  const { browser, shown } = await typeAndSignIn(url, userCode)
  expect(shown.scopes).toEqual(['openid'])
  await bound()
  for (const page of [shown, { ...shown, scopes: undefined }]) {
    expect((await answerDevice(browser, page)).status).toBe(400)
  }
  expect(await pollError(url, deviceCode)).toBe('authorization_pending')
  await bound('groups')
  expect((await afterSignIn(browser)).kind).toBe('over')
  await bound()
  const again = await afterSignIn(browser)
  expect(again.scopes).toEqual(scopes)
  expect((await answerDevice(browser, again)).status).toBe(200)
  pass(5)
  expect((await poll(url, deviceCode)).json.scope).toBe('openid profile')
})
