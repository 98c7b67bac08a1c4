import * as client from 'openid-client'
import { describe, expect, test, vi } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { navigate } from '../support/navigate.ts'
import { startService } from '../support/service.ts'
import {
  asked,
  Browser,
  bearer,
  clientsFile,
  connect,
  contentOf,
  decide,
  discover,
  redirectUri,
  refusalOf,
  request,
  shop,
  signedIn,
  startIssuer,
} from './support.ts'

test('a code that is redeemed a second time takes with it what the first redemption gave, and the audit tells', async () => {
  const told: object[] = []
  const { url } = await startIssuer([shop], { onAuditEvent: (event) => void told.push(event) })
  const { browser, config, session } = await signedIn(url)
  const { address, redeem } = await request(config)
  const answer = await decide(browser, await browser.open(address))
  const tokens = await redeem(new URL(answer))
  expect(await client.fetchUserInfo(config, tokens.access_token, session.userId)).toMatchObject({
    sub: session.userId,
  })
  expect(await refusalOf(redeem(new URL(answer)))).toBe('invalid_grant')
  expect(await refusalOf(client.fetchUserInfo(config, tokens.access_token, session.userId))).toBe(401)
  expect(await refusalOf(client.refreshTokenGrant(config, tokens.refresh_token ?? ''))).toBe('invalid_grant')
  const { userId } = session
  expect(told).toContainEqual(
    expect.objectContaining({ type: 'app.token_replayed', userId, clientId: 'shop', what: 'code', ip: '127.0.0.1' }),
  )
})

test('a refresh token that is used a second time takes with it what the first use gave', async () => {
  const told: object[] = []
  const { url } = await startIssuer([shop], { onAuditEvent: (event) => void told.push(event) })
  const { config, tokens, session } = await connect(url)
  const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
  expect(await refusalOf(client.refreshTokenGrant(config, tokens.refresh_token ?? ''))).toBe('invalid_grant')
  expect(told).toContainEqual(expect.objectContaining({ type: 'app.token_replayed', what: 'refresh token' }))
  expect(await refusalOf(client.refreshTokenGrant(config, next.refresh_token ?? ''))).toBe('invalid_grant')
  expect(await refusalOf(client.fetchUserInfo(config, next.access_token, session.userId))).toBe(401)
})

describe('an interaction', () => {
  test('ends only in the browser that began it', async () => {
    const { url } = await startIssuer()
    const [attacker, victim, config] = [new Browser(url), new Browser(url), await discover(url)]
    await victim.signIn()
    const { address } = await request(config)
    const began = (await attacker.open(address)).address.searchParams.get('returnTo') ?? ''
    const path = began.split('?')[0] ?? ''
    const resumed = path.replace('/interaction/', '/authorize/')
    for (const each of [path, resumed]) {
      expect(contentOf((await victim.open(each)).text), each).toEqual({ kind: 'over' })
    }
    // With the library's own cookies planted, too.
    for (const [name, cookie] of attacker.cookies) {
      if (!name.startsWith('countersign_oidc_browser')) victim.cookies.set(name, cookie)
    }
    expect(contentOf((await victim.open(path)).text)).toEqual({ kind: 'over' })
  })

  test('is of the browser with a cookie that no other host can set', async () => {
    const { url } = await startIssuer([shop], { publicUrl: 'https://auth.example' })
    const query = new URLSearchParams(asked)
    const set = async (cookie: string) => {
      const headers = { cookie, host: 'auth.example' }
      const answer = await navigate(`${url}/api/auth/oidc/authorize?${query}`, { headers })
      return answer.headers.getSetCookie()
    }
    const attributes = 'Max-Age=600; Path=/; HttpOnly; Secure; SameSite=Lax'
    const [own = '', ...others] = await set('countersign_oidc_browser_x=planted')
    expect(own).toMatch(new RegExp(`^__Host-countersign_oidc_browser_[\\w-]{12}=[\\w-]{43}; ${attributes}$`))
    expect(others).toEqual([])
    // The same one lives on.
    expect(await set(own.split(';')[0] ?? '')).toEqual([own])
  })

  test('takes an answer from pages of the service alone, also with other trusted origins', async () => {
    const other = 'https://other.example'
    const { url } = await startIssuer([shop], { enforceOrigin: false, trustedOrigins: [other] })
    const browser = new Browser(url)
    const { session } = await browser.signIn()
    const { address } = await request(await discover(url))
    const page = await browser.open(address)
    const input = { allow: true, sessionId: session.id, scopes: contentOf(page.text).scopes }
    for (const origin of [other, 'null', 'https://evil.example']) {
      const { status, json } = await browser.post(page.address.pathname, input, origin)
      expect([status, json.code], origin).toEqual([403, 'ORIGIN_NOT_TRUSTED'])
    }
    expect((await decide(browser, page)).searchParams.has('code')).toBe(true)
  })

  test('takes no answer that was given in another session', async () => {
    const { url } = await startIssuer()
    const browser = await Browser.signedIn(url)
    const { address } = await request(await discover(url))
    const page = await browser.open(address)
    await browser.signIn()
    await expect(decide(browser, page)).rejects.toThrow(/load the page again/)
  })
})

describe('who is signed in', () => {
  test('is not said by a bearer token in any place, nor by the library’s own cookie', async () => {
    const { url } = await startIssuer([{ ...shop, first_party: true }])
    const { token, session } = await new Browser(url).signIn()
    const { address } = await request(await discover(url), { prompt: 'none' })
    for (const headers of [
      bearer(token),
      { cookie: `countersign_session=${token}` },
      { cookie: `countersign_oidc_session=${session.id}` },
    ]) {
      const response = await navigate(address, { headers: headers as Record<string, string> })
      expect(new URL(response.headers.get('location') ?? '').searchParams.get('error')).toBe('login_required')
    }
  })

  test.each([[{ prompt: 'login' }], [{ max_age: '0' }]])('%o needs a sign-in after the request', async (parameters) => {
    const { url } = await startIssuer([{ ...shop, first_party: true }])
    const { browser, config, wallet } = await signedIn(url)
    const { address, redeem } = await request(config, parameters)
    const page = await browser.open(address)
    expect(page.address.pathname).toBe('/api/auth/sign-in')
    expect(page.address.searchParams.get('again')).toBe('1')
    const back = page.address.searchParams.get('returnTo') ?? ''
    expect((await browser.open(back)).address.pathname).toBe('/api/auth/sign-in')
    const { session } = await browser.signIn(wallet)
    const tokens = await redeem((await browser.open(back)).address)
    expect(tokens.claims()?.sub).toBe(session.userId)
  })
})

describe('consent', () => {
  test.each([
    ['a loopback address', 'http://127.0.0.1/callback', 'http://127.0.0.1:1234/callback', 'native'],
    ['a loopback address and the type of a website', 'http://127.0.0.1:1234/', 'http://127.0.0.1:1234/', 'web'],
    ['a scheme of its own', 'com.example.shop:/callback', 'com.example.shop:/callback', 'native'],
  ])(
    'for an application on the device with %s is asked for each time, first_party or not',
    async (_name, uri, redirect, type) => {
      const native = {
        metadata: {
          client_id: 'native',
          redirect_uris: [uri],
          application_type: type,
          token_endpoint_auth_method: 'none',
        },
      }
      const { url } = await startIssuer([native])
      const browser = await Browser.signedIn(url)
      const config = await client.discovery(new URL(url), 'native', undefined, client.None(), {
        execute: [client.allowInsecureRequests],
      })
      for (let time = 0; time < 2; time++) {
        const { address } = await request(config, { redirect_uri: redirect })
        const page = await browser.open(address)
        expect(contentOf(page.text)).toMatchObject({ kind: 'consent' })
        expect(contentOf(page.text).host).toBeUndefined()
        expect((await decide(browser, page)).searchParams.has('code')).toBe(true)
      }
      const { address } = await request(config, { redirect_uri: redirect, prompt: 'none' })
      expect((await browser.open(address)).address.searchParams.get('error')).toBe('consent_required')
      await expect(startIssuer([{ ...native, first_party: true }])).rejects.toThrow(/first_party needs https/)
    },
  )

  test('to another scope is asked for', async () => {
    const { url } = await startIssuer()
    const { browser, config } = await connect(url, { scope: 'openid' })
    const { address } = await request(config, { scope: 'openid groups' })
    expect(contentOf((await browser.open(address)).text)).toMatchObject({ kind: 'consent' })
  })
})

test('nothing in the store is a code, a token or a secret of a browser', async () => {
  const store = await openStore('sqlite::memory:')
  const written: string[] = []
  for (const step of ['create', 'compareAndSet'] as const) {
    const own = store[step].bind(store) as (...args: unknown[]) => Promise<boolean>
    vi.spyOn(store, step).mockImplementation((...args: unknown[]) => {
      written.push(JSON.stringify(args))
      return own(...args)
    })
  }
  const { url } = await startIssuer([shop], { store })
  const { browser, config } = await signedIn(url)
  const { address, redeem } = await request(config)
  const answer = await decide(browser, await browser.open(address))
  const tokens = await redeem(answer)
  const all = written.join('\n')
  expect(all).toContain('oidc:')
  const secrets = [answer.searchParams.get('code'), tokens.access_token, tokens.refresh_token, redirectUri]
  for (const secret of [...secrets, ...[...browser.cookies.values()].map(({ value }) => value)]) {
    expect(all).not.toContain(secret)
  }
})

test('a new secret in front of the old one leaves refresh tokens, keys and interactions in force', async () => {
  const store = await openStore('sqlite::memory:')
  const [one, two] = ['one '.repeat(10), 'two '.repeat(10)]
  const { url, service } = await startIssuer([shop], { store, secret: one })
  const { config, tokens } = await connect(url)
  const kids = async () =>
    (await (await fetch(`${url}/.well-known/jwks.json`)).json()).keys
      .filter(({ alg }: { alg: string }) => alg === 'RS256')
      .map(({ kid }: { kid: string }) => kid)
  const before = await kids()
  await service.reload({ secret: [two, one] })
  const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
  expect(await kids()).toEqual(before)
  await service.reload({ secret: [two] })
  expect(await kids()).toEqual(before)
  // The session's grant went with the secret.
  expect(await refusalOf(client.refreshTokenGrant(config, next.refresh_token ?? ''))).toBe('invalid_grant')
  const unknown = startIssuer([shop], { store, secret: 'three '.repeat(10) })
  await expect(unknown).rejects.toThrow(/^the RSA key [^\n]+$/)
})

test('instances that start at once agree on one key', async () => {
  const store = await openStore('sqlite::memory:')
  const file = clientsFile(shop)
  const options = { store, secret: 'one '.repeat(10), oidc: { clients: file } }
  const all = await Promise.all(Array.from({ length: 8 }, () => startService(options)))
  const sets = await Promise.all(all.map(async ({ url }) => await (await fetch(`${url}/.well-known/jwks.json`)).text()))
  expect(new Set(sets).size).toBe(1)
})

test('an application signs its user out: a page asks, the session ends, and the way leads back', async () => {
  const { url } = await startIssuer()
  const { browser, config, tokens, session } = await connect(url)
  const address = client.buildEndSessionUrl(config, {
    id_token_hint: tokens.id_token ?? '',
    post_logout_redirect_uri: 'https://shop.example/bye',
    state: 'x y',
  }).href
  const page = await browser.open(address)
  const { kind, ticket } = contentOf(page.text)
  expect(kind).toBe('logout')
  const evil = await browser.post(page.address.pathname, { ticket }, 'https://evil.example')
  expect(evil.status).toBe(403)
  const { json } = await browser.post(page.address.pathname, { ticket })
  expect(json.redirectTo).toBe('https://shop.example/bye?state=x+y')
  expect(await refusalOf(client.fetchUserInfo(config, tokens.access_token, session.userId))).toBe(401)
  const foreign = `${url}/api/auth/oidc/logout?post_logout_redirect_uri=https://evil.example/&client_id=shop`
  expect(contentOf((await browser.open(foreign)).text)).toMatchObject({ kind: 'error' })
})
