import { CompactSign, decodeJwt, exportJWK, generateKeyPair } from 'jose'
import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { pageValues } from '../support/page-values.ts'
import {
  Browser,
  connect,
  contentOf,
  discover,
  fileWith,
  redirectUri,
  refusalOf,
  request,
  shop,
  startIssuer,
} from './support.ts'

/** An issuer, and a client and a browser that is signed in; the user is not asked. */
async function start() {
  const other = { ...shop, first_party: true, metadata: { ...shop.metadata, client_id: 'other' } }
  const { url } = await startIssuer([{ ...shop, first_party: true }, other])
  const browser = new Browser(url)
  const { session } = await browser.signIn()
  return { url, browser, session, config: await discover(url), other: await discover(url, other.metadata) }
}

describe('an address to which answers go', () => {
  const { host } = new URL(redirectUri)
  const others = [
    `${redirectUri}/`,
    `${redirectUri}?x=1`,
    `${redirectUri}#x`,
    `${redirectUri}/../evil`,
    `${redirectUri}%2e`,
    `${redirectUri} `,
    redirectUri.toUpperCase(),
    redirectUri.replace('callback', 'Callback'),
    redirectUri.replace('callback', '/callback'),
    redirectUri.replace('callback', './callback'),
    redirectUri.replace('callback', '%63allback'),
    redirectUri.replace('https:', 'http:'),
    redirectUri.replace('https:', ''),
    redirectUri.replace(host, host.toUpperCase()),
    redirectUri.replace(host, `${host}.`),
    redirectUri.replace(host, `${host}:443`),
    redirectUri.replace(host, `${host}@evil.example`),
    redirectUri.replace(host, `${host}.evil.example`),
    redirectUri.replace(host, `evil.example\\@${host}`),
    redirectUri.replace(host, `user@${host}`),
    redirectUri.replace(host, `evil.example/${host}`),
    'javascript:alert(1)//',
    'data:text/html,x',
    '/callback',
    'callback',
    'null',
    '*',
    '',
  ]

  test('is the registered one to the letter, in a request, a pushed request and a sign-out', async () => {
    const { url, browser, config } = await start()
    for (const uri of others) {
      const { address } = await request(config, { redirect_uri: uri })
      const opened = await browser.open(address)
      expect([uri, opened.address.origin, opened.response.status]).toEqual([uri, url, 400])
      expect(contentOf(opened.text).kind).toBe('error')

      const pushed = client.buildAuthorizationUrlWithPAR(config, new URL(address).searchParams)
      expect([uri, await refusalOf(pushed)]).toEqual([uri, expect.stringMatching(/^invalid_(request|redirect_uri)$/)])

      const out = client.buildEndSessionUrl(config, { post_logout_redirect_uri: uri.replace('callback', 'bye') })
      const page = await browser.open(out.href)
      if (uri === '') continue
      expect([uri, page.address.origin, contentOf(page.text).kind]).toEqual([uri, url, 'error'])
    }
  })

  test('is there once', async () => {
    const { url, browser, config } = await start()
    for (const uri of [redirectUri, 'https://evil.example/']) {
      const { address } = await request(config)
      const opened = await browser.open(`${address}&redirect_uri=${encodeURIComponent(uri)}`)
      expect([opened.address.origin, opened.response.status]).toEqual([url, 400])
    }
  })

  test('is the same where the code is redeemed', async () => {
    const { browser, config } = await start()
    const { address, redeem } = await request(config)
    const answer = (await browser.open(address)).address
    const elsewhere = new URL(answer)
    elsewhere.pathname = '/other'
    expect(await refusalOf(redeem(elsewhere))).toBe('invalid_grant')
  })
})

describe('state', () => {
  test.each([
    'x y+z&a=b%20#;/?:@',
    '<script>"\'',
    'ümläut ☃',
    'a'.repeat(2_000),
    '\r\nlocation: https://evil.example/',
  ])('comes back to the letter, with a code and with an error: %j', async (state) => {
    const { url, browser, config } = await start()
    for (const parameters of [{}, { prompt: 'none', scope: 'openid', max_age: '0' }]) {
      const { address } = await request(config, { state, ...parameters })
      const answer = (await browser.open(address)).address
      expect(answer.origin + answer.pathname).toBe(redirectUri)
      expect(answer.searchParams.get('state')).toBe(state)
      expect(answer.searchParams.get('iss')).toBe(url)
    }
    const { address } = await request(config, { state, response_mode: 'form_post' })
    expect((await browser.open(address)).text).not.toContain('<script>"')
  })

  test('of another request is refused by the client, which then sends no code', async () => {
    const { browser, config } = await start()
    const [mine, other] = [await request(config), await request(config)]
    const answer = (await browser.open(other.address)).address
    const refused = await mine.redeem(answer).catch((thrown) => thrown)
    expect(refused).toMatchObject({ cause: { message: expect.stringContaining('state') } })
    // The code is still good where it belongs.
    expect((await other.redeem(answer)).claims()?.aud).toBe('shop')
  })
})

describe('a code', () => {
  test('counts with its own verifier only', async () => {
    const { browser, config } = await start()
    const [mine, injected] = [await request(config), await request(config)]
    const state = new URL(mine.address).searchParams.get('state') ?? ''
    const answer = (await browser.open(injected.address)).address
    answer.searchParams.set('state', state)
    expect(await refusalOf(mine.redeem(answer))).toBe('invalid_grant')
  })

  test('counts for its own client only', async () => {
    const { browser, config, other } = await start()
    const foreign = await request(other)
    const answer = (await browser.open(foreign.address)).address
    const parameters = { pkceCodeVerifier: client.randomPKCECodeVerifier() }
    const redeemed = client.authorizationCodeGrant(config, answer, {
      ...parameters,
      expectedState: String(answer.searchParams.get('state')),
    })
    expect(await refusalOf(redeemed)).toBe('invalid_grant')
    expect((await foreign.redeem(answer)).claims()?.aud).toBe('other')
  })

  test('has the nonce of its own request, also after a refresh none but that', async () => {
    const { browser, config } = await start()
    const nonce = 'n-"&<>é ☃'
    const pkceCodeVerifier = client.randomPKCECodeVerifier()
    const code_challenge = await client.calculatePKCECodeChallenge(pkceCodeVerifier)
    const { address } = await request(config, { nonce, code_challenge })
    const answer = (await browser.open(address)).address
    const expectedState = String(answer.searchParams.get('state'))
    const tokens = await client.authorizationCodeGrant(config, answer, {
      pkceCodeVerifier,
      expectedState,
      expectedNonce: nonce,
    })
    expect(tokens.claims()?.nonce).toBe(nonce)
    const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(next.claims()?.nonce ?? nonce).toBe(nonce)
  })
})

test('an answer of another issuer is refused by its name, before its code is sent anywhere', async () => {
  const [honest, attacker] = [await start(), await startIssuer([shop])]
  const config = await discover(attacker.url)
  const sent: string[] = []
  config[client.customFetch] = async (address, init) => {
    sent.push(address)
    return await fetch(address, init as RequestInit)
  }
  // The user wanted to sign in at the attacker's issuer, which sends the browser on to the honest one.
  const { address, redeem } = await request(config)
  const query = new URL(address).searchParams
  const answer = (await honest.browser.open(`/api/auth/oidc/authorize?${query}`)).address
  expect(answer.searchParams.has('code')).toBe(true)
  const refused = await redeem(answer).catch((thrown) => thrown)
  expect(refused).toMatchObject({ cause: { message: expect.stringContaining('iss') } })
  expect(sent).toEqual([])
})

describe('claims of the protocol', () => {
  const names =
    'sub iss aud exp iat nbf jti nonce sid auth_time amr acr azp cnf events client_id scope at_hash c_hash s_hash wallets'
  const forged = Object.fromEntries(names.split(' ').map((name) => [name, 'forged']))
  const hidden = JSON.parse(`{"__proto__": ${JSON.stringify(forged)}, "constructor": "forged", "toString": "forged"}`)

  test('are not the application’s to say', async () => {
    const { url } = await startIssuer([shop], {
      oidc: { claims: async ({ clientId }) => ({ ...forged, groups: [clientId], ...hidden }) },
    })
    const scope = 'openid profile email groups wallet'
    const { config, tokens, session } = await connect(url, { scope })
    const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    const said = [
      decodeJwt(tokens.id_token ?? ''),
      decodeJwt(next.id_token ?? ''),
      await client.fetchUserInfo(config, next.access_token, session.userId),
      await client.tokenIntrospection(config, next.access_token),
    ]
    for (const claims of said) {
      expect(JSON.stringify(claims)).not.toContain('forged')
      expect(claims.sub).toBe(session.userId)
    }
    expect(said[0]).toMatchObject({ iss: url, aud: 'shop', groups: ['shop'], amr: ['swk'] })
    expect(said[2]).not.toHaveProperty('amr')
  })

  test.each(Object.keys({ ...forged, ...hidden }))('%s is refused in a people file', async (name) => {
    const people = fileWith(`{"usr_x": {"name": "Ada", "${name}": "forged"}}`)
    await expect(startIssuer([shop], { people })).rejects.toThrow(`"${name}" is reserved`)
  })
})

test('a page is never compressed: it has secrets beside what the request says', async () => {
  const { url } = await startIssuer()
  for (const [path, said] of [
    ['authorize?client_id=%3C%22%F0%9F%8C%B7', { kind: 'error', error: 'invalid_client' }],
    ['authorize?client_id=shop&redirect_uri=https://%F0%9F%8C%B7', { kind: 'error', client: { name: 'Tulip Shop' } }],
    ['interaction/unknown', { kind: 'over' }],
    ['logout?id_token_hint=x', { kind: 'error', error: 'invalid_request' }],
  ] as const) {
    const headers = { 'accept-encoding': 'br, gzip' }
    const answer = await new Browser(url).fetch(`/api/auth/oidc/${path}`, { headers })
    expect([path, answer.status, answer.headers.get('content-encoding')]).toEqual([path, 400, null])
    expect(contentOf(await answer.text())).toMatchObject(said)
  }
})

test('a page has only its own of the operator’s texts', async () => {
  const textsFile = fileWith({ fr: { 'issuer.allow': 'Autoriser', 'demo.title': 'Bonjour' } })
  const { url } = await startIssuer([shop], { pages: { textsFile } })
  const { text } = await new Browser(url).open('/api/auth/oidc/interaction/unknown')
  expect(pageValues(text)).toMatchObject({ texts: { fr: { 'issuer.allow': 'Autoriser' } }, content: { kind: 'over' } })
  expect(text).not.toContain('Bonjour')
})

describe('a public client', () => {
  const { client_secret: _, ...others } = shop.metadata
  const agent = { ...others, client_id: 'agent', token_endpoint_auth_method: 'none' }
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

  /** How a form with an Authorization header is refused. Nothing is at its code. */
  async function refusal(url: string, authorization: string, form: Record<string, string> = {}) {
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'unknown', ...form })
    const answer = await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', headers: { authorization }, body })
    return [answer.status, (await answer.json()).error]
  }

  test('may send its id with an empty secret, which proves nothing', async () => {
    const { url } = await startIssuer([{ metadata: agent }, shop])
    // The refresh token is looked up, so the client was known.
    expect(await refusal(url, basic('agent:'))).toEqual([400, 'invalid_grant'])
    expect(await refusal(url, basic('agent:'), { client_id: 'agent' })).toEqual([400, 'invalid_grant'])
    expect(await refusal(url, basic('%61gent:'))).toEqual([400, 'invalid_grant'])
    expect(await refusal(url, basic('agent:'), { client_id: 'shop' })).toEqual([400, 'invalid_request'])
    expect(await refusal(url, basic('agent:x'))).toEqual([401, 'invalid_client'])
    expect(await refusal(url, basic('eve:'))).toEqual([401, 'invalid_client'])
    expect(await refusal(url, basic('shop:'))).toEqual([400, 'invalid_request'])
    expect(await refusal(url, basic('shop:'), { client_secret: shop.metadata.client_secret })).toEqual([
      400,
      'invalid_request',
    ])
  })
})

test('the end of a client assertion may have a fraction, and is a time in seconds of at most a day ahead', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' }] }
  const { client_secret: _, ...others } = shop.metadata
  const { url } = await startIssuer([{ metadata: { ...others, token_endpoint_auth_method: 'private_key_jwt', jwks } }])
  const now = Date.now() / 1000
  const refusal = async (exp: string) => {
    const text = JSON.stringify({ iss: 'shop', sub: 'shop', aud: url, jti: exp }).replace('}', `,"exp":${exp}}`)
    const assertion = await new CompactSign(Buffer.from(text))
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .sign(privateKey)
    const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
    const proven = { client_assertion_type, client_assertion: assertion }
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'unknown', ...proven })
    const answer = await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body })
    return [answer.status, (await answer.json()).error]
  }
  // The refresh token is looked up, so the client was known.
  const known = [400, 'invalid_grant']
  for (const seconds of [60, 60.4567, 0.0001, -3.21, 86_000.5]) {
    expect([seconds, ...(await refusal(String(now + seconds)))]).toEqual([seconds, ...known])
  }
  for (const exp of [now + 86_500, now + 400 * 86_400, now * 1000, 1e300, '1e400', Number.MAX_SAFE_INTEGER]) {
    expect([exp, ...(await refusal(String(exp)))]).toEqual([exp, 400, 'invalid_request'])
  }
  for (const exp of [now - 60, 0, -1, '"soon"', 'null']) {
    expect([exp, ...(await refusal(String(exp)))]).toEqual([exp, 401, 'invalid_client'])
  }
})
