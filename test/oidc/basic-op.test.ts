import { hash } from 'node:crypto'
import { decodeProtectedHeader, UnsecuredJWT } from 'jose'
import * as client from 'openid-client'
import { expect, onTestFinished, test } from 'vitest'
import { answer, basicOp, wait } from './basic-op.ts'
import { bearer, contentOf, redirectUri, refusalOf, shop, startIssuer } from './support.ts'

const { url, firstClient, secondClient, postClient, metadata, newPerson, newRequest, signIn, errorOf } = await basicOp()

/** A request with an ID token as a hint, which may show nothing. */
const hinted = (hint: string | undefined) => newRequest({ prompt: 'none', id_token_hint: hint ?? '' })

// The modules of the OpenID Foundation's plan for a Basic OP: each by its name, and what holds.

// Formerly oidcc-ensure-other-scope-order-succeeds.
test('oidcc-alternate-happy-flow: the order of scopes and of parameters does not matter', async () => {
  const { address, checks } = newRequest({ scope: 'email openid' })
  address.search = String(new URLSearchParams([...address.searchParams].reverse()))
  const { userinfo } = await signIn({ request: { address, checks } })
  expect(userinfo).toMatchObject({ email: expect.any(String) })
})

test('oidcc-claims-essential: claims that are asked for one by one are no error, and come with their scope only', async () => {
  expect(metadata.claims_parameter_supported).toBe(false)
  const claims = JSON.stringify({ userinfo: { name: { essential: true } } })
  const { userinfo } = await signIn({ request: newRequest({ claims }) })
  // The suite warns of it.
  expect(userinfo).not.toHaveProperty('name')
})

test('oidcc-claims-locales: languages of claims are no error', async () => {
  expect((await signIn({ request: newRequest({ claims_locales: 'se' }) })).claims.sub).toMatch(/^usr_/)
})

test('oidcc-codereuse-30seconds: a code that comes again 30 seconds later ends the access token that it gave', async () => {
  const request = newRequest()
  const { answer, tokens, claims } = await signIn({ request })
  wait(30)
  const again = client.authorizationCodeGrant(firstClient, answer, request.checks)
  expect(await refusalOf(again)).toBe('invalid_grant')
  expect(await refusalOf(client.fetchUserInfo(firstClient, tokens.access_token, claims.sub))).toBe(401)
})

test('oidcc-codereuse: a code is good once', async () => {
  const request = newRequest()
  const { answer } = await signIn({ request })
  const again = client.authorizationCodeGrant(firstClient, answer, request.checks)
  expect(await refusalOf(again)).toBe('invalid_grant')
})

test.each(['page', 'popup'])('oidcc-display-%s: shows the sign-in page', async (display) => {
  expect((await signIn({ request: newRequest({ display }) })).shown).toEqual(['sign-in', 'consent'])
})

test('oidcc-ensure-post-request-succeeds: a request may come as a form', async () => {
  const { address, checks } = newRequest()
  const person = newPerson()
  const posted = await person.browser.fetch(address.pathname, { method: 'POST', body: address.searchParams })
  expect(posted.status).toBe(303)
  const next = new URL(posted.headers.get('location') ?? '', address)
  expect((await signIn({ person, request: { address: next, checks } })).shown).toEqual(['sign-in', 'consent'])
})

test('oidcc-ensure-registered-redirect-uri: an address that is not registered gets no answer: the user sees an error here', async () => {
  const { address } = newRequest({ redirect_uri: `${redirectUri}/x7` })
  const opened = await newPerson().browser.open(address.href)
  expect(opened.address.origin).toBe(url)
  expect(opened.response.status).toBe(400)
  expect(contentOf(opened.text)).toMatchObject({ kind: 'error', error: 'invalid_redirect_uri' })
})

test('oidcc-ensure-request-object-with-redirect-uri: a registered address in a request object does not make up for another outside it', async () => {
  const { address } = newRequest()
  const object = new UnsecuredJWT(Object.fromEntries(address.searchParams)).encode()
  address.searchParams.set('request', object)
  address.searchParams.set('redirect_uri', `${redirectUri}/x7`)
  const opened = await newPerson().browser.open(address.href)
  expect(opened.address.origin).toBe(url)
  expect(contentOf(opened.text)).toMatchObject({ kind: 'error', error: 'invalid_redirect_uri' })
})

test('oidcc-ensure-request-with-acr-values-succeeds: classes of sign-ins, of which there are none, are no error', async () => {
  expect(metadata).not.toHaveProperty('acr_values_supported')
  // The suite warns of it.
  expect((await signIn({ request: newRequest({ acr_values: '1 2' }) })).claims).not.toHaveProperty('acr')
})

test('oidcc-ensure-request-with-unknown-parameter-succeeds: a parameter of no specification is ignored', async () => {
  const { answer } = await signIn({ request: newRequest({ extra: 'foobar' }) })
  expect(answer.searchParams.has('extra')).toBe(false)
})

test('oidcc-ensure-request-with-valid-pkce-succeeds: a client may use PKCE, also if it need not', async () => {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const code_challenge = await client.calculatePKCECodeChallenge(pkceCodeVerifier)
  const { address, checks } = newRequest({ code_challenge, code_challenge_method: 'S256' })
  const { claims } = await signIn({ request: { address, checks: { ...checks, pkceCodeVerifier } } })
  expect(claims.aud).toBe('first')
})

test('oidcc-ensure-request-without-nonce-succeeds-for-code-flow: a request without a nonce gets an ID token without one', async () => {
  const { address, checks } = newRequest()
  address.searchParams.delete('nonce')
  const request = { address, checks: { expectedState: checks.expectedState as string } }
  expect((await signIn({ request })).claims).not.toHaveProperty('nonce')
})

test('oidcc-id-token-hint: an ID token as a hint gives the same user, and shows nothing', async () => {
  const person = newPerson()
  const { tokens, claims: before } = await signIn({ person })
  const { claims, shown } = await signIn({ person, request: hinted(tokens.id_token) })
  expect(claims).toMatchObject({ sub: before.sub, auth_time: before.auth_time })
  expect(shown).toEqual([])
})

test('oidcc-id-token-hint: an ID token of another user as a hint gives no one', async () => {
  const person = newPerson()
  await signIn({ person })
  const request = hinted((await signIn()).tokens.id_token)
  expect(errorOf((await answer(request.address, person)).answer, request)).toBe('login_required')
})

test('oidcc-idtoken-signature: an ID token is signed with RS256 by a key of the key set, if the client names no other algorithm', async () => {
  const { tokens } = await signIn()
  const { alg, kid } = decodeProtectedHeader(tokens.id_token ?? '')
  const { keys } = await (await fetch(String(metadata.jwks_uri))).json()
  expect(alg).toBe('RS256')
  expect(keys).toContainEqual(expect.objectContaining({ kid, alg: 'RS256', use: 'sig' }))
})

test('oidcc-idtoken-unsigned: there are no ID tokens without a signature', async () => {
  expect(metadata.id_token_signing_alg_values_supported).toEqual(['RS256', 'ES256'])
  const unsigned = { metadata: { ...shop.metadata, id_token_signed_response_alg: 'none' } }
  await expect(startIssuer([unsigned])).rejects.toThrow(/client shop: id_token_signed_response_alg/)
})

test('oidcc-login-hint: a hint that is no user of the issuer changes nothing for a user who signs in', async () => {
  const person = newPerson()
  const login_hint = 'buffy@localhost'
  const { claims } = await signIn({ person, request: newRequest({ login_hint }) })
  const again = await signIn({ person, request: newRequest({ login_hint }) })
  expect(again.shown).toEqual([])
  expect(again.claims.sub).toBe(claims.sub)
})

test('oidcc-max-age-1: max_age=1 asks for another sign-in after two seconds, and the ID token tells when that was', async () => {
  const person = newPerson()
  const before = await signIn({ person })
  wait(2)
  const after = await signIn({ person, request: newRequest({ max_age: '1' }) })
  expect(after.shown).toContain('sign-in')
  expect(Number(after.claims.auth_time)).toBeGreaterThan(Number(before.claims.auth_time))
  expect(after.claims.auth_time).toBeGreaterThanOrEqual(Math.floor(Date.now() / 1000) - 1)
})

test('oidcc-max-age-10000: max_age=10000 shows nothing in a new session, and the ID token tells when the sign-in was', async () => {
  const person = newPerson()
  const { claims: before } = await signIn({ person, request: newRequest({ max_age: '15000' }) })
  const { claims, shown } = await signIn({ person, request: newRequest({ max_age: '10000' }) })
  expect(before.auth_time).toEqual(expect.any(Number))
  expect(claims).toMatchObject({ sub: before.sub, auth_time: before.auth_time })
  expect(shown).toEqual([])
})

test('oidcc-prompt-login: prompt=login asks for another sign-in, which the ID token tells', async () => {
  const person = newPerson()
  const before = await signIn({ person })
  wait(1)
  const after = await signIn({ person, request: newRequest({ prompt: 'login' }) })
  expect(after.shown).toContain('sign-in')
  expect(after.claims.sub).toBe(before.claims.sub)
  expect(Number(after.claims.auth_time)).toBeGreaterThan(Number(before.claims.auth_time))
})

test('oidcc-prompt-none-logged-in: prompt=none in a session gives the same user and the time of the same sign-in, and shows nothing', async () => {
  const person = newPerson()
  const { claims: before } = await signIn({ person })
  const { claims, shown } = await signIn({ person, request: newRequest({ prompt: 'none' }) })
  expect(claims).toMatchObject({ sub: before.sub, auth_time: before.auth_time })
  expect(shown).toEqual([])
})

test('oidcc-prompt-none-not-logged-in: prompt=none without a session is an error that the client gets, with the whole of a long state', async () => {
  const request = newRequest({ prompt: 'none', state: 'x7'.repeat(64) })
  const answered = await answer(request.address, newPerson())
  expect(errorOf(answered.answer, request)).toBe('login_required')
  expect(answered.shown).toEqual([])
})

test('oidcc-refresh-token: a refresh token gives new tokens of the same sign-in, to its own client alone', async () => {
  const parameters = { scope: 'openid offline_access', prompt: 'consent' }
  expect(metadata.grant_types_supported).toContain('refresh_token')
  const { tokens, claims } = await signIn({ request: newRequest(parameters) })
  const request = newRequest(parameters, secondClient)
  const { tokens: others } = await signIn({ config: secondClient, request })
  wait(1)
  const answers: Response[] = []
  firstClient[client.customFetch] = async (address, init) => {
    const answer = await fetch(address, init as RequestInit)
    answers.push(answer)
    return answer
  }
  onTestFinished(() => {
    firstClient[client.customFetch] = (address, init) => fetch(address, init as RequestInit)
  })
  const next = await client.refreshTokenGrant(firstClient, tokens.refresh_token ?? '', { scope: parameters.scope })
  expect(answers[0]?.headers.get('cache-control')).toBe('no-store')
  expect(answers[0]?.headers.get('content-type')).toMatch(/^application\/json\b/)
  expect(next).toMatchObject({ token_type: 'bearer', expires_in: 900 })
  expect(next.access_token).not.toBe(tokens.access_token)
  expect(next.refresh_token).toMatch(/^[\w-]{43,}$/)
  const { iss, sub, aud, auth_time } = claims
  expect(next.claims()).toMatchObject({ iss, sub, aud, auth_time })
  expect(next.claims()?.iat).toBeGreaterThan(claims.iat)
  expect(await client.fetchUserInfo(firstClient, next.access_token, sub)).toMatchObject({ sub })

  const foreign = client.refreshTokenGrant(firstClient, others.refresh_token ?? '')
  expect(await refusalOf(foreign)).toBe('invalid_grant')
  const own = await client.refreshTokenGrant(secondClient, others.refresh_token ?? '')
  expect(own.claims()?.aud).toBe('second')
})

test('oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported: a request by reference is refused as not supported, and nothing is fetched', async () => {
  expect(metadata.request_uri_parameter_supported).toBe(false)
  const request = newRequest({ request_uri: 'https://shop.example/request.jwt' })
  expect(errorOf((await answer(request.address, newPerson())).answer, request)).toBe('request_uri_not_supported')
})

test('oidcc-response-type-missing: a request without a response type is an error that the client gets', async () => {
  const request = newRequest()
  request.address.searchParams.delete('response_type')
  expect(errorOf((await answer(request.address, newPerson())).answer, request)).toBe('invalid_request')
})

test.each([
  ['address', 'address'],
  ['phone', 'phone_number'],
])('oidcc-scope-%s: the scope is not offered, and a request with it gets the others', async (scope, claim) => {
  expect(metadata.scopes_supported).not.toContain(scope)
  const { tokens, userinfo } = await signIn({ request: newRequest({ scope: `openid ${scope}` }) })
  expect(tokens.scope).toBe('openid')
  expect(userinfo).not.toHaveProperty(claim)
})

test('oidcc-scope-all: a request for all standard scopes gets those that there are', async () => {
  const request = newRequest({ scope: 'openid email phone address profile' })
  const { tokens, userinfo } = await signIn({ request })
  expect(tokens.scope).toBe('openid email profile')
  expect(userinfo).toMatchObject({ name: expect.any(String), email: expect.any(String) })
})

test('oidcc-scope-email: the scope email gives the address and whether it is verified, and no name', async () => {
  expect(metadata.scopes_supported).toContain('email')
  const { claims, userinfo } = await signIn({ request: newRequest({ scope: 'openid email' }) })
  const email = { email: `${claims.sub}@users.example`, email_verified: false }
  expect(userinfo).toMatchObject(email)
  expect(userinfo).not.toHaveProperty('name')
  // The suite warns of it. Applications that read no userinfo need it.
  expect(claims).toMatchObject(email)
})

test('oidcc-scope-profile: the scope profile gives the claims of a profile that a wallet has', async () => {
  expect(metadata.scopes_supported).toContain('profile')
  const person = newPerson()
  const { tokens, userinfo } = await signIn({ person, request: newRequest({ scope: 'openid profile' }) })
  const name = person.wallet.address.replaceAll(' ', '')
  expect(tokens.scope).toBe('openid profile')
  expect(userinfo).toMatchObject({ name, preferred_username: name, nickname: name.slice(0, 8) })
})

test('oidcc-server-client-secret-post: a client may send its secret in the form', async () => {
  expect(metadata.token_endpoint_auth_methods_supported).toContain('client_secret_post')
  const { claims } = await signIn({ config: postClient, request: newRequest({}, postClient) })
  expect(claims.aud).toBe('post')
})

test('oidcc-server: signs a user in with code, ID token and access token, and says no more than was asked for', async () => {
  const { answer, tokens, claims, shown } = await signIn()
  expect(shown).toEqual(['sign-in', 'consent'])
  expect(answer.searchParams.get('iss')).toBe(url)
  expect(answer.searchParams.get('code')).toMatch(/^[\w-]{43,}$/)
  expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 900 })
  const half = hash('sha256', tokens.access_token, 'buffer').subarray(0, 16).toString('base64url')
  expect(claims.at_hash ?? half).toBe(half)
  expect(Object.keys(claims).sort()).toEqual(
    ['amr', 'at_hash', 'aud', 'auth_time', 'exp', 'iat', 'iss', 'nonce', 'sub'].filter((name) => name in claims),
  )
})

test('oidcc-server: publishes keys, each with an id of its own and none with a private part', async () => {
  const { keys } = await (await fetch(String(metadata.jwks_uri))).json()
  const kids = keys.map(({ kid }: { kid: string }) => kid)
  expect(new Set(kids).size).toBe(keys.length)
  for (const key of keys) expect(key).not.toHaveProperty('d')
})

test('oidcc-ui-locales: languages of no page are no error', async () => {
  expect((await signIn({ request: newRequest({ ui_locales: 'se' }) })).shown).toEqual(['sign-in', 'consent'])
})

test('oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported: a request object is refused as not supported', async () => {
  expect(metadata.request_parameter_supported ?? false).toBe(false)
  const request = newRequest()
  const object = new UnsecuredJWT(Object.fromEntries(request.address.searchParams)).encode()
  request.address.searchParams.set('request', object)
  expect(errorOf((await answer(request.address, newPerson())).answer, request)).toBe('request_not_supported')
})

test.each<[string, string, (token: string) => RequestInit]>([
  ['get', 'GET with a token in the header', (token) => ({ headers: bearer(token) })],
  ['post-header', 'POST with a token in the header', (token) => ({ method: 'POST', headers: bearer(token) })],
  [
    'post-body',
    'POST with a token in a form',
    (token) => ({ method: 'POST', body: new URLSearchParams({ access_token: token }) }),
  ],
])('oidcc-userinfo-%s: userinfo answers %s', async (_module, _way, init) => {
  const { tokens, claims } = await signIn()
  const response = await fetch(String(metadata.userinfo_endpoint), init(tokens.access_token))
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^application\/json\b/)
  expect(await response.json()).toMatchObject({ sub: claims.sub })
})
