import * as oauth from 'oauth4webapi'
import { expect, test } from 'vitest'
import { Browser, contentOf, decide, redirectUri, shop, startIssuer } from './support.ts'

const insecure = { [oauth.allowInsecureRequests]: true }

/** An issuer, a client of it, and a browser that is signed in. */
async function start() {
  const metadata = { ...shop.metadata, id_token_signed_response_alg: 'ES256' }
  const { url } = await startIssuer([{ ...shop, metadata }])
  const issuer = new URL(url)
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
  const browser = new Browser(url)
  const { session } = await browser.signIn()
  const client: oauth.Client = { client_id: metadata.client_id, id_token_signed_response_alg: 'ES256' }
  return { as, client, secret: oauth.ClientSecretBasic(metadata.client_secret), browser, session }
}

type Started = Awaited<ReturnType<typeof start>>

/** The parameters of an authorization request, and what the client remembers of it. */
async function newRequest({ client }: Started) {
  const [verifier, state, nonce] = [
    oauth.generateRandomCodeVerifier(),
    oauth.generateRandomState(),
    oauth.generateRandomNonce(),
  ]
  const parameters = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'openid profile',
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    nonce,
  })
  return { parameters, verifier, state, nonce }
}

/** Opens an authorization request, which is allowed if there is a question. */
async function open({ as, browser }: Started, parameters: URLSearchParams): Promise<URL> {
  const opened = await browser.open(`${as.authorization_endpoint}?${parameters}`)
  return contentOf(opened.text).kind === 'consent' ? await decide(browser, opened) : opened.address
}

/** Has a client sign the user in: code with PKCE, ID token with nonce and signature. */
async function signIn(started: Started, DPoP?: oauth.DPoPHandle) {
  const { as, client, secret } = started
  const { parameters, verifier, state, nonce } = await newRequest(started)
  const answer = oauth.validateAuthResponse(as, client, await open(started, parameters), state)
  const options = { ...insecure, ...(DPoP === undefined ? {} : { DPoP }) }
  const response = await oauth.authorizationCodeGrantRequest(as, client, secret, answer, redirectUri, verifier, options)
  const checks = { expectedNonce: nonce, requireIdToken: true }
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, response, checks)
  await oauth.validateApplicationLevelSignature(as, response, insecure)
  return tokens
}

async function refresh({ as, client, secret }: Started, token: string | undefined, options: object = {}) {
  const all = { ...insecure, ...options }
  const response = await oauth.refreshTokenGrantRequest(as, client, secret, String(token), all)
  return await oauth.processRefreshTokenResponse(as, client, response)
}

async function userinfo({ as, client, session }: Started, token: string, options: object = {}) {
  const response = await oauth.userInfoRequest(as, client, token, { ...insecure, ...options })
  return await oauth.processUserInfoResponse(as, client, session.userId, response)
}

async function introspect({ as, client, secret }: Started, token: string) {
  const response = await oauth.introspectionRequest(as, client, secret, token, insecure)
  return await oauth.processIntrospectionResponse(as, client, response)
}

test('oauth4webapi signs a user in with PKCE, and refreshes with rotation', async () => {
  const started = await start()
  const tokens = await signIn(started)
  const { sub, amr } = oauth.getValidatedIdTokenClaims(tokens) ?? expect.fail('there is no ID token')
  expect({ sub, amr }).toEqual({ sub: started.session.userId, amr: ['swk'] })
  expect(await userinfo(started, tokens.access_token)).toMatchObject({ name: expect.stringMatching(/^NQ/) })

  const next = await refresh(started, tokens.refresh_token)
  expect(oauth.getValidatedIdTokenClaims(next)?.sub).toBe(sub)
  expect(await userinfo(started, next.access_token)).toMatchObject({ sub })
  // The first refresh token once more ends all of it.
  await expect(refresh(started, tokens.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
  await expect(refresh(started, next.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
  await expect(userinfo(started, next.access_token)).rejects.toMatchObject({ status: 401 })
})

test('oauth4webapi pushes its request, and looks up and revokes what it got', async () => {
  const started = await start()
  const { as, client, secret, session } = started
  const { parameters, verifier, state, nonce } = await newRequest(started)
  const pushed = await oauth.processPushedAuthorizationResponse(
    as,
    client,
    await oauth.pushedAuthorizationRequest(as, client, secret, parameters, insecure),
  )
  const short = new URLSearchParams({ client_id: client.client_id, request_uri: pushed.request_uri })
  const answer = oauth.validateAuthResponse(as, client, await open(started, short), state)
  const tokens = await oauth.processAuthorizationCodeResponse(
    as,
    client,
    await oauth.authorizationCodeGrantRequest(as, client, secret, answer, redirectUri, verifier, insecure),
    { expectedNonce: nonce, requireIdToken: true },
  )
  expect(await introspect(started, tokens.access_token)).toMatchObject({
    active: true,
    client_id: 'shop',
    sub: session.userId,
    scope: 'openid profile',
    token_type: 'Bearer',
  })
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(as, client, secret, tokens.access_token, insecure),
  )
  expect(await introspect(started, tokens.access_token)).toEqual({ active: false })
  await expect(userinfo(started, tokens.access_token)).rejects.toMatchObject({ status: 401 })
})

test('oauth4webapi binds its tokens to a key: a proof of it counts once, and no other key’s', async () => {
  const started = await start()
  const { as, client, session } = started
  const keys = () => oauth.generateKeyPair('ES256')
  const DPoP = oauth.DPoP(client, await keys())
  const tokens = await signIn(started, DPoP)
  expect(tokens.token_type).toBe('dpop')
  expect(await introspect(started, tokens.access_token)).toMatchObject({
    token_type: 'DPoP',
    cnf: { jkt: await DPoP.calculateThumbprint() },
  })
  expect(await userinfo(started, tokens.access_token, { DPoP })).toMatchObject({ sub: session.userId })
  const other = oauth.DPoP(client, await keys())
  for (const options of [{}, { DPoP: other }]) {
    await expect(userinfo(started, tokens.access_token, options)).rejects.toMatchObject({ status: 401 })
  }

  const next = await refresh(started, tokens.refresh_token, { DPoP })
  expect(next.token_type).toBe('dpop')
  let copy = new Headers()
  const keep = async (address: string, init: { headers: Record<string, string> }) => {
    copy = new Headers(init.headers)
    return await fetch(address, init)
  }
  expect(await userinfo(started, next.access_token, { DPoP, [oauth.customFetch]: keep })).toMatchObject({
    sub: session.userId,
  })
  expect((await fetch(String(as.userinfo_endpoint), { headers: copy })).status).toBe(401)
  // Of 20 at once, too.
  const unsent = async (_: string, init: { headers: Record<string, string> }) => {
    copy = new Headers(init.headers)
    return new Response()
  }
  await userinfo(started, next.access_token, { DPoP, [oauth.customFetch]: unsent }).catch(() => {})
  const all = Array.from({ length: 20 }, async () => await fetch(String(as.userinfo_endpoint), { headers: copy }))
  expect((await Promise.all(all)).filter(({ status }) => status === 200)).toHaveLength(1)
})

test('oauth4webapi with a clock that is an hour slow is told a nonce, with which its proofs count', async () => {
  const started = await start()
  const { session } = started
  const slow = { ...started.client, [oauth.clockSkew]: -3600 }
  const DPoP = oauth.DPoP(slow, await oauth.generateKeyPair('ES256'))
  const refused = await signIn(started, DPoP).catch((thrown) => thrown)
  expect(oauth.isDPoPNonceError(refused)).toBe(true)
  const tokens = await signIn(started, DPoP)
  expect(await userinfo(started, tokens.access_token, { DPoP })).toMatchObject({ sub: session.userId })
})
