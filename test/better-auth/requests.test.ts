import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { describe, expect, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { betterAuthHost } from '../../src/better-auth/index.ts'
import { reasons } from '../../src/shared/errors.ts'
import { appOrigin, type ContractDriver } from '../contract/driver.ts'
import { restCalls } from '../contract/rest-driver.ts'
import { ok, untilWaiting } from '../contract/support.ts'
import { startService } from '../support/service.ts'
import { bearerOf, call, cookieOf, ownOrigin, signIn } from './calls.ts'
import { makeAuth, startAuth } from './support.ts'

describe('the origin of a request', () => {
  const originOf = async (auth: Awaited<ReturnType<typeof makeAuth>>, headers: Record<string, string>) => {
    const request = new Request(`${ownOrigin}/api/auth/wallet/nonce`, { method: 'POST', headers })
    const json = (await (await auth.handler(request)).json()) as { origin?: string; code?: string }
    return json.origin ?? json.code
  }
  const forwarded = { 'x-forwarded-host': 'app.example', 'x-forwarded-proto': 'https' }

  test('is the Origin header, else the address that the request was sent to', async () => {
    const auth = await makeAuth({ auth: { trustedOrigins: [appOrigin] } })
    expect(await originOf(auth, { origin: appOrigin })).toBe(appOrigin)
    expect(await originOf(auth, {})).toBe(ownOrigin)
    // Anyone could have written them.
    expect(await originOf(auth, forwarded)).toBe(ownOrigin)
  })

  test('is what a trusted proxy forwards, where Better Auth is told so', async () => {
    const auth = await makeAuth({ auth: { trustedOrigins: [appOrigin], advanced: { trustedProxyHeaders: true } } })
    expect(await originOf(auth, forwarded)).toBe(appOrigin)
  })

  test('may match a pattern among Better Auth’s trusted ones', async () => {
    const auth = await makeAuth({ auth: { trustedOrigins: ['https://*.example.com'] } })
    expect(await originOf(auth, { origin: 'https://one.example.com' })).toBe('https://one.example.com')
    expect(await originOf(auth, { origin: 'https://one.example.com.evil.example' })).toBe('ORIGIN_NOT_TRUSTED')
  })

  test('of an order may also be one that the plugin alone trusts', async () => {
    const auth = await makeAuth({ orders: { trustedOrigins: ['https://till.example'] } })
    const start = (origin: string) => call(auth, '/cross-device/start', { kind: 'sign' }, { origin })
    expect((await start('https://till.example')).status).toBe(200)
    expect((await start('https://evil.example')).json.code).toBe('ORIGIN_NOT_TRUSTED')
    expect(await originOf(auth, { origin: 'https://till.example' })).toBe('ORIGIN_NOT_TRUSTED')
  })
})

test('the address of a client is what Better Auth makes out', async () => {
  const auth = await makeAuth({ auth: { advanced: { ipAddress: { ipAddressHeaders: ['x-client'] } } } })
  const { json } = await signIn(auth, undefined, { 'x-client': '203.0.113.9', 'user-agent': 'Test/1' })
  expect(json.session).toMatchObject({ ip: '203.0.113.9', userAgent: 'Test/1' })
})

test('every reason is among the error codes', async () => {
  const auth = await makeAuth()
  for (const reason of Object.keys(reasons)) {
    // Some of Better Auth's own codes have the same name, and more fields.
    const entry = { code: reason, message: expect.stringMatching(/^[A-Z][a-z ]+$/) }
    expect(auth.$ERROR_CODES).toHaveProperty(reason, expect.objectContaining(entry))
  }
})

test('with Better Auth’s cookie cache, a revoked session is over for Countersign at once', async () => {
  const { auth } = await startAuth({ auth: { session: { cookieCache: { enabled: true } }, baseURL: ownOrigin } })
  const { url } = await startService({ trustedOrigins: [ownOrigin], sessionHost: betterAuthHost(auth) })
  const signedIn = await signIn(auth)
  const cookie = signedIn.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ')
  expect(cookie).toContain('session_data')
  const sessions = createClient(SessionService, createConnectTransport({ baseUrl: url }))
  const options = { headers: { cookie, origin: ownOrigin } }
  const { session } = await sessions.getCurrentSession({}, options)
  expect(session).toMatchObject({ id: signedIn.json.session.id, adapterId: 'ed25519' })
  await auth.api.signOut({ headers: new Headers(bearerOf(signedIn)) })
  await expect(sessions.getCurrentSession({}, options)).rejects.toThrow(/expired or revoked/)
  expect(cookieOf(signedIn)).not.toBe('')
})

test('watchers that leave are no longer served', async () => {
  const { url } = await startAuth({ auth: { trustedOrigins: [appOrigin] } })
  const driver = restCalls(url) as ContractDriver
  const order = await untilWaiting(driver)
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  const leaving = new AbortController()
  const watches = Array.from({ length: 20 }, () => driver.watch(order.desktop, leaving.signal)[Symbol.asyncIterator]())
  for (const watch of watches) expect((await watch.next()).value).toMatchObject({ status: 'waiting_user' })
  // Each has one for its next sign of life, and one to read the order again.
  expect(timers()).toBeGreaterThanOrEqual(before + 35)
  leaving.abort()
  // Without a timer of its own, which would count; the HTTP client may have some.
  const deadline = performance.now() + 5_000
  while (timers() > before + 10 && performance.now() < deadline) await new Promise(setImmediate)
  expect(timers()).toBeLessThanOrEqual(before + 10)
  await ok(driver.call('rejectOrder', order.phone))
})
