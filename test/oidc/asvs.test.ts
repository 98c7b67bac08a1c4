import * as client from 'openid-client'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  asked,
  Browser,
  connect,
  decide,
  discover,
  redirectUri,
  refusalOf,
  request,
  shop,
  startIssuer,
} from './support.ts'

// What OWASP's ASVS 5 asks of an authorization server, as far as no other file shows it: see SECURITY.md.

const { metadata } = shop

/** What a browser that is signed in gets for a request of the client with this id. */
async function answerTo(url: string, parameters: Record<string, string>): Promise<URLSearchParams> {
  const browser = await Browser.signedIn(url)
  const query = new URLSearchParams({ ...asked, ...parameters })
  return (await browser.open(`/api/auth/oidc/authorize?${query}`)).address.searchParams
}

describe('10.4.3: a code', () => {
  afterEach(() => void vi.useRealTimers())

  test('is dead after a minute', async () => {
    const { url } = await startIssuer()
    const [browser, config] = [new Browser(url), await discover(url)]
    await browser.signIn()
    const { address, redeem } = await request(config)
    const answer = await decide(browser, await browser.open(address))
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 66_000 })
    expect(await refusalOf(redeem(answer))).toBe('invalid_grant')
  })
})

describe('10.4.6: PKCE', () => {
  test('with the method plain is refused', async () => {
    const { url } = await startIssuer()
    expect((await answerTo(url, { code_challenge_method: 'plain' })).get('error')).toBe('invalid_request')
  })

  test('without the right verifier gives no token', async () => {
    const { url } = await startIssuer()
    const [browser, config] = [new Browser(url), await discover(url)]
    await browser.signIn()
    const { address } = await request(config)
    const { searchParams } = await decide(browser, await browser.open(address))
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: metadata.client_id,
      client_secret: metadata.client_secret,
      redirect_uri: redirectUri,
      code: searchParams.get('code') ?? '',
    })
    const { status } = await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body })
    expect(status).toBe(400)
  })
})

test.each(['token', 'id_token', 'id_token token', 'code token', 'code id_token'])(
  '10.4.4, 10.6.1: the response type %s is refused',
  async (type) => {
    const { url } = await startIssuer()
    const answer = await answerTo(url, { response_type: type, nonce: 'nonce' })
    expect(answer.get('code')).toBe(null)
    expect(new URLSearchParams(answer).has('access_token')).toBe(false)
  },
)

test.each(['password', 'client_credentials', 'urn:ietf:params:oauth:grant-type:device_code'])(
  '10.4.4: the grant %s is refused',
  async (grant) => {
    const { url } = await startIssuer()
    const body = new URLSearchParams({ grant_type: grant, ...credentials, username: 'a', password: 'b' })
    const response = await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body })
    expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([
      400,
      'unsupported_grant_type',
    ])
  },
)

const credentials = { client_id: metadata.client_id, client_secret: metadata.client_secret }

test.each(['token', 'introspect', 'revoke', 'par'])(
  '10.4.10: a confidential client without its secret is refused at %s',
  async (endpoint) => {
    const { url } = await startIssuer()
    const post = async (more: Record<string, string>) => {
      const body = new URLSearchParams({ client_id: 'shop', token: 'x', grant_type: 'refresh_token', ...more })
      return (await fetch(`${url}/api/auth/oidc/${endpoint}`, { method: 'POST', body })).status
    }
    // Without any credential, and with a wrong one.
    expect([await post({}), await post({ client_secret: 'wrong' })]).toEqual([401, 401])
  },
)

test('10.4.12: a client that is bound to a response mode gets no answer in another', async () => {
  const { url } = await startIssuer([{ metadata: { ...metadata, response_modes: ['query'] } }])
  expect((await answerTo(url, { response_mode: 'fragment' })).has('code')).toBe(false)
})

test('10.4.13: a client that is bound to pushed requests gets no code by another', async () => {
  const { url } = await startIssuer([{ metadata: { ...metadata, require_pushed_authorization_requests: true } }])
  expect((await answerTo(url, {})).get('error')).toBe('invalid_request')
})

test('10.4.14: a client that is bound to a key gets no token without a proof of it', async () => {
  const { url } = await startIssuer([{ metadata: { ...metadata, dpop_bound_access_tokens: true } }])
  expect(await refusalOf(connect(url))).toBe('invalid_grant')
})

test('10.4.16: a client that proves itself by a key needs no secret, and none of its keys is fetched', async () => {
  const { publicKey, privateKey } = await client.randomDPoPKeyPair('ES256', { extractable: true })
  const jwk = { ...(await crypto.subtle.exportKey('jwk', publicKey)), kid: 'one', use: 'sig', alg: 'ES256' }
  const { client_secret: _, ...others } = metadata
  const { url } = await startIssuer([
    { metadata: { ...others, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] } } },
  ])
  const config = await client.discovery(
    new URL(url),
    'shop',
    undefined,
    client.PrivateKeyJwt({ key: privateKey, kid: 'one' }),
    { execute: [client.allowInsecureRequests] },
  )
  const browser = await Browser.signedIn(url)
  const { address, redeem } = await request(config)
  const tokens = await redeem(await decide(browser, await browser.open(address)))
  expect(tokens.claims()?.aud).toBe('shop')
})
