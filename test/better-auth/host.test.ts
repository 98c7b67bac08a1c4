import { Code, ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { expect, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { betterAuthHost } from '../../src/better-auth/index.ts'
import { appOrigin, otherOrigin } from '../contract/driver.ts'
import { credentialHeaders } from '../contract/rest-driver.ts'
import { rpcDriver } from '../contract/rpc-driver.ts'
import { bearerOf, cookieOf, ok, signIn, untilApproved } from '../contract/support.ts'
import { startService } from '../support/service.ts'
import { type AuthServerOptions, startAuth } from './support.ts'

async function startBoth(options: AuthServerOptions = {}) {
  const { auth } = await startAuth({ ...options, auth: { trustedOrigins: [appOrigin], ...options.auth } })
  const { url, service } = await startService({
    appName: 'App',
    trustedOrigins: [appOrigin, otherOrigin],
    sessionHost: betterAuthHost(auth),
  })
  const sessions = createClient(SessionService, createConnectTransport({ baseUrl: url }))
  return { auth, service, driver: rpcDriver(url), sessions }
}

test('Better Auth knows the sessions that came over Connect', async () => {
  const { auth, service, driver } = await startBoth()
  const direct = await signIn(driver)
  const byOrder = await ok(driver.call('finalizeOrder', (await untilApproved(driver)).desktop))
  for (const signedIn of [direct, byOrder]) {
    const { id, userId, address, orderId } = signedIn.json.session
    for (const credential of [bearerOf(signedIn), cookieOf(signedIn)]) {
      const headers = new Headers(credentialHeaders(credential))
      const found = await auth.api.getSession({ headers })
      expect(found?.session).toMatchObject({ id, userId, walletAddress: address, walletOrderId: orderId ?? null })
      expect(found?.user).toMatchObject({ id: userId, name: address })
    }
    expect(await service.introspect(signedIn.json.token)).toMatchObject({ id, userId })
    const [unsigned, signature] = signedIn.json.token.split('.')
    expect(await service.introspect(unsigned)).toBeUndefined()
    expect(await service.introspect(`${unsigned}.${signature.replace(/^./, 'x')}x`)).toBeUndefined()
  }
})

test('sessions are listed, revoked and ended on either side', async () => {
  const { auth, service, driver, sessions } = await startBoth()
  const [one, two, three] = await (async () => {
    const { Signer } = await import('../core/order/support.ts')
    const signer = new Signer()
    return [await signIn(driver, signer), await signIn(driver, signer), await signIn(driver, signer)]
  })()
  const options = { headers: credentialHeaders(bearerOf(one!)) }
  const listed = await sessions.listSessions({}, options)
  expect(listed.sessions.map(({ id }) => id)).toEqual([three, two, one].map((each) => each!.json.session.id))
  expect(listed.sessions.map(({ current }) => current)).toEqual([false, false, true])

  await sessions.revokeSession({ sessionId: two!.json.session.id }, options)
  expect(await service.introspect(two!.json.token)).toBeUndefined()
  const [token] = three!.json.token.split('.')
  await auth.api.revokeSession({ headers: new Headers(options.headers), body: { token } })
  expect(await service.introspect(three!.json.token)).toBeUndefined()
  expect(await driver.sessions(bearerOf(one!))).toEqual([one!.json.session.id])
  await driver.signOut(cookieOf(one!))
  expect(await auth.api.getSession({ headers: new Headers(options.headers) })).toBeNull()
})

test('a session that another way made has no wallet to show', async () => {
  const { auth, driver, sessions } = await startBoth({ auth: { emailAndPassword: { enabled: true } } })
  const { headers } = await auth.api.signUpEmail({
    body: { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' },
    returnHeaders: true,
  })
  const bearer = headers.get('set-auth-token') ?? ''
  expect(await driver.session({ bearer })).toMatchObject({ adapterId: '', publicKeyHex: '', address: '' })
  const { sessions: listed } = await sessions.listSessions({}, { headers: { authorization: `Bearer ${bearer}` } })
  expect(listed).toHaveLength(1)
})

test('a cookie counts from Better Auth’s trusted origins only; a bearer token from anywhere', async () => {
  const { driver, sessions } = await startBoth()
  const signedIn = await signIn(driver)
  const from = (headers: Record<string, string>) =>
    sessions.getCurrentSession({}, { headers }).then(
      () => 'let in',
      (error) => ConnectError.from(error).code,
    )
  expect(await from(credentialHeaders(cookieOf(signedIn), appOrigin))).toBe('let in')
  // The service trusts it, Better Auth does not.
  expect(await from(credentialHeaders(cookieOf(signedIn), otherOrigin))).toBe(Code.PermissionDenied)
  expect(await from({ ...credentialHeaders(bearerOf(signedIn)), origin: otherOrigin })).toBe('let in')
})

test('an unsigned token ends no session', async () => {
  const { driver } = await startBoth()
  const signedIn = await signIn(driver)
  await driver.signOut({ bearer: signedIn.json.token.split('.')[0] })
  expect(await driver.session(bearerOf(signedIn))).toBeDefined()
})

test('a session’s life is extended, and its cookie with it', async () => {
  const { driver, sessions } = await startBoth({ auth: { session: { updateAge: 0 } } })
  const signedIn = await signIn(driver)
  let headers = new Headers()
  await sessions.getCurrentSession(
    {},
    {
      headers: credentialHeaders(cookieOf(signedIn)),
      onHeader: (received) => {
        headers = received
      },
    },
  )
  expect(headers.getSetCookie()[0]).toMatch(/^better-auth\.session_token=css_.*Max-Age=604800/)
})

test('a bearer token is good without Better Auth’s bearer plugin, too', async () => {
  const { driver } = await startBoth({ bearer: false })
  const signedIn = await signIn(driver)
  expect(await driver.session(bearerOf(signedIn))).toMatchObject({ userId: signedIn.json.session.userId })
})

test('the way in is closed to the network', async () => {
  const { url } = await startAuth()
  const response = await fetch(`${url}/api/auth/wallet/host`, { method: 'POST', headers: { origin: url } })
  expect(response.status).toBe(404)
})

test('a server without the plugin is refused at once', () => {
  expect(() => betterAuthHost({ api: {} } as never)).toThrow(/walletSignIn/)
})
