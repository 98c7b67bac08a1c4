import { writeFileSync } from 'node:fs'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { verifyAccessToken } from '../../src/integrations/backend/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { decoded } from '../integrations/backend/forge.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { allow, connect, contentOf, decide, discover, fileWith, refusalOf, request, shop, signedIn } from './support.ts'

const orders = { resource: 'https://orders.example', scopes: ['orders:read', 'orders:write'] }
const chat = { resource: 'https://chat.example/', scopes: ['orders:read', 'chat'], algorithm: 'RS256' }

async function start(resources: readonly object[] = [orders, chat], options: CountersignOptions = {}) {
  const clients = fileWith({ clients: [shop], resources })
  return await startService({ ...options, oidc: { clients, ...options.oidc } })
}

const forOrders = { scope: 'openid profile orders:read', resource: orders.resource }
const read = (issuer: string) => ({ issuer, audience: orders.resource, scopes: ['orders:read'] })

test('a client that names a resource gets a token that its backend verifies without asking', async () => {
  const { url } = await start()
  const { tokens, session } = await connect(url, forOrders)
  expect(tokens.scope).toBe('orders:read')
  expect(decoded(tokens.access_token).header).toMatchObject({ alg: 'ES256', typ: 'at+jwt' })
  expect(await verifyAccessToken(tokens.access_token, read(url))).toEqual({
    userId: session.userId,
    clientId: 'shop',
    groups: [],
    scopes: ['orders:read'],
    audience: orders.resource,
    issuedAt: expect.any(Number),
    expiresAt: expect.any(Number),
    id: expect.any(String),
  })
  const { exp, iat, ...payload } = decoded(tokens.access_token).payload
  expect(exp - iat).toBe(900)
  expect(Object.keys(payload).sort()).toEqual(['aud', 'client_id', 'iss', 'jti', 'scope', 'sub'])
  // The ID token is there all the same, with the user's claims.
  expect(tokens.claims()).toMatchObject({ sub: session.userId, preferred_username: expect.any(String) })
})

test('it has the wallet and the groups if the user was asked for these, also after a refresh', async () => {
  const wallet = makeWallet()
  const { address, publicKeyHex } = wallet
  const people = fileWith({ [`nimiq:${address}`]: { groups: ['staff'], name: 'Ada' } })
  const { url } = await start(undefined, { people })
  const { browser, config } = await signedIn(url, wallet)
  const scope = 'openid wallet groups orders:read'
  const { address: opened, redeem } = await request(config, { ...forOrders, scope })
  const tokens = await redeem(await decide(browser, await browser.open(opened)))
  const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
  for (const { access_token: token } of [tokens, next]) {
    const found = await verifyAccessToken(token, read(url))
    expect(found.wallet).toEqual({ adapterId: 'nimiq', address, publicKeyHex })
    expect(decoded(token).payload.groups).toEqual(['staff'])
    expect(decoded(token).payload).not.toHaveProperty('name')
  }
  const narrow = { scope: 'openid orders:read' }
  const { access_token: less } = await client.refreshTokenGrant(config, next.refresh_token ?? '', narrow)
  expect(decoded(less).payload).not.toHaveProperty('wallet')
  expect(decoded(less).payload).not.toHaveProperty('groups')
})

test('if the session ends while a token for a resource is made, the refusal is that of any ended session', async () => {
  const store = await openStore('sqlite::memory:')
  let meanwhile = async () => {}
  const create: Store['create'] = async (key, ...others) => {
    const isCreated = await store.create(key, ...others)
    // Between the checks of a refresh and its access token.
    if (key.startsWith('oidc:RefreshToken:')) await meanwhile()
    return isCreated
  }
  const hooked = new Proxy(store, {
    get(target, name) {
      if (name === 'create') return create
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const { url } = await start([orders], { store: hooked })
  const { config, tokens, token } = await connect(url, forOrders)
  meanwhile = async () => void (await rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` }))
  const refresh = client.refreshTokenGrant(config, tokens.refresh_token ?? '', { resource: orders.resource })
  expect(await refusalOf(refresh)).toBe('invalid_grant')
})

describe('the scope of a client bounds what it may ask for at a resource', () => {
  const readOnly = { metadata: { ...shop.metadata, scope: 'openid profile orders:read' } }
  const writing = { ...forOrders, scope: 'openid orders:read orders:write' }

  test('so that more is refused before the user is asked', async () => {
    const { url } = await startService({ oidc: { clients: fileWith({ clients: [readOnly], resources: [orders] }) } })
    const { browser, config } = await signedIn(url)
    const answer = (await browser.open((await request(config, writing)).address)).address
    expect(answer.searchParams.get('error')).toBe('invalid_scope')
    const tokens = await allow({ browser, config }, forOrders)
    expect(tokens.scope).toBe('orders:read')
  })

  test('and what it got before it had that bound', async () => {
    const file = fileWith({ clients: [shop], resources: [orders] })
    const { url, service } = await startService({ oidc: { clients: file } })
    const { tokens, config } = await connect(url, writing)
    expect(tokens.scope).toBe('orders:read orders:write')
    writeFileSync(file, JSON.stringify({ clients: [readOnly], resources: [orders] }))
    await service.reload()
    const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(next.scope).toBe('orders:read')
  })

  test('also if it names no scope of the issuer', async () => {
    const metadata = { ...shop.metadata, scope: 'orders:read' }
    const { url } = await startService({
      oidc: { clients: fileWith({ clients: [{ metadata }], resources: [orders] }) },
    })
    const { browser, config } = await signedIn(url)
    const answer = (await browser.open((await request(config, forOrders)).address)).address
    expect(answer.searchParams.get('error')).toBe('invalid_scope')
    const alone = new URL((await request(config, { ...forOrders, scope: 'orders:read' })).address)
    alone.searchParams.delete('nonce')
    const page = await browser.open(alone.href)
    expect(contentOf(page.text)).toMatchObject({ kind: 'consent', scopes: [`orders:read ${orders.resource}`] })
  })
})

test('a resource can be for some clients alone', async () => {
  const other = { metadata: { ...shop.metadata, client_id: 'other' } }
  const content = { clients: [shop, other], resources: [{ ...orders, clients: ['shop'] }] }
  const { url } = await startService({ oidc: { clients: fileWith(content) } })
  const { tokens, browser } = await connect(url, forOrders)
  expect(tokens.scope).toBe('orders:read')
  const config = await discover(url, other.metadata)
  const answer = (await browser.open((await request(config, forOrders)).address)).address
  expect(answer.searchParams.get('error')).toBe('invalid_target')
})

test('its algorithm is the resource’s', async () => {
  const { url } = await start()
  const { tokens } = await connect(url, { scope: 'openid chat', resource: chat.resource })
  const keys = createRemoteJWKSet(new URL(`${url}/.well-known/jwks.json`))
  const rules = { issuer: url, audience: chat.resource, typ: 'at+jwt', algorithms: ['RS256'] }
  expect((await jwtVerify(tokens.access_token, keys, rules)).payload.scope).toBe('chat')
})

describe('a token for a resource is refused', () => {
  test.each([
    ['by a backend that does not say what clients may do', {}],
    ['without the scope that the backend asks for', { scopes: ['orders:write'] }],
    ['at another resource', { audience: chat.resource, scopes: ['orders:read'] }],
  ])('%s', async (_name, changes) => {
    const { url } = await start()
    const { tokens } = await connect(url, forOrders)
    const options = { issuer: url, audience: orders.resource, ...changes }
    expect(await refusalOf(verifyAccessToken(tokens.access_token, options))).toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  test('by the issuer itself, as any call’s token', async () => {
    const { url } = await start()
    const { tokens, config, session } = await connect(url, forOrders)
    expect(await refusalOf(client.fetchUserInfo(config, tokens.access_token, session.userId))).toBe(401)
    const { status } = await rest(url, '/session', undefined, { authorization: `Bearer ${tokens.access_token}` })
    expect(status).toBe(401)
  })

  test('if it is bound to a key of its client', async () => {
    const { url } = await start()
    const { browser, config } = await signedIn(url)
    const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair())
    const tokens = await allow({ browser, config }, forOrders, { DPoP })
    expect(decoded(tokens.access_token).payload.cnf).toEqual({ jkt: expect.any(String) })
    expect(await refusalOf(verifyAccessToken(tokens.access_token, read(url)))).toMatchObject({
      reason: 'TOKEN_INVALID',
    })
  })
})

test('what is allowed at one resource is not at another, though the scope has the same name', async () => {
  const { url } = await start()
  const { browser, config } = await connect(url, forOrders)
  // Remembered: this leads back at once.
  const again = await request(config, forOrders)
  expect((await browser.open(again.address)).address.searchParams.has('code')).toBe(true)
  const other = await request(config, { scope: 'openid orders:read', resource: chat.resource })
  const page = await browser.open(other.address)
  expect(contentOf(page.text)).toMatchObject({ kind: 'consent', scopes: ['openid', `orders:read ${chat.resource}`] })
})

test('a token with a scope that no resource was named for, or that the user was not asked for, has none of it', async () => {
  const { url } = await start()
  const { tokens, browser, config } = await connect(url, { scope: 'openid orders:read' })
  expect(tokens.scope).toBe('openid')
  const narrow = await request(config, forOrders)
  const { refresh_token: refresh = '' } = await narrow.redeem(await decide(browser, await browser.open(narrow.address)))
  expect(await refusalOf(client.refreshTokenGrant(config, refresh, { scope: 'orders:write' }))).toBe('invalid_scope')
})

test('of several resources the client chooses one for each token', async () => {
  const { url } = await start()
  const { browser, config } = await signedIn(url)
  const both = await request(config, { scope: 'openid orders:read chat' })
  const address = new URL(both.address)
  for (const { resource } of [orders, chat]) address.searchParams.append('resource', resource)
  const page = await browser.open(address.href)
  expect(contentOf(page.text).scopes).toEqual([
    'openid',
    `orders:read ${orders.resource}`,
    `orders:read ${chat.resource}`,
    `chat ${chat.resource}`,
  ])
  expect(await refusalOf(both.redeem(await decide(browser, page)))).toBe('invalid_target')
})

test('with offline access a token says no session, because that can be over', async () => {
  const { url } = await start()
  const scope = 'openid offline_access orders:read'
  const { tokens, config, token } = await connect(url, { ...forOrders, scope, prompt: 'consent' })
  await rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` })
  const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
  const found = await verifyAccessToken(next.access_token, read(url))
  expect([found.clientId, found.sessionId]).toEqual(['shop', undefined])
})

describe('a resource in another spelling of the same address', () => {
  const mcp = { resource: 'https://mcp.example', scopes: ['tools'] }
  const scope = 'openid tools'
  const spellings = ['https://mcp.example/', 'HTTPS://MCP.example:443', 'https://mcp.example/.', mcp.resource]

  test.each(spellings)('%s is that of the file, in requests, for tokens and for a refresh', async (resource) => {
    const { url } = await start([mcp, { resource: 'https://mcp.example/mcp', scopes: ['tools'] }])
    const { tokens, config, browser } = await connect(url, { scope, resource })
    expect(decoded(tokens.access_token).payload).toMatchObject({ aud: mcp.resource, scope: 'tools' })
    const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '', { resource })
    expect(decoded(next.access_token).payload.aud).toBe(mcp.resource)
    const pushed = await request(config, { scope, resource })
    const address = await client.buildAuthorizationUrlWithPAR(config, new URL(pushed.address).searchParams)
    expect((await browser.open(address.href)).address.searchParams.has('code')).toBe(true)
  })

  test('a slash at the end of a path, or another path, makes another one', async () => {
    const { url } = await start([{ ...mcp, resource: 'https://mcp.example/mcp' }])
    const { browser, config } = await signedIn(url)
    for (const resource of ['https://mcp.example/mcp/', 'https://mcp.example', 'https://mcp.example\\mcp']) {
      const { address } = await request(config, { scope, resource })
      expect([resource, (await browser.open(address)).address.searchParams.get('error')]).toEqual([
        resource,
        'invalid_target',
      ])
    }
  })

  test('cannot be in the file beside it', async () => {
    const refusal = start([mcp, { ...mcp, resource: 'https://mcp.example/' }])
    await expect(refusal).rejects.toThrow(/resource 2: resource is that of another/)
  })
})

test.each(['', 'openid_connect', 'claudeai'])('a request of the scope "%s" is refused with words', async (scope) => {
  const { url } = await start()
  const { browser, config } = await signedIn(url)
  const asked = new URL((await request(config, { scope })).address)
  asked.searchParams.delete('nonce')
  const refused = { error: 'invalid_scope', error_description: expect.stringContaining('name one, such as openid') }
  expect(Object.fromEntries((await browser.open(asked.href)).address.searchParams)).toMatchObject(refused)
  const pushed = await client.buildAuthorizationUrlWithPAR(config, asked.searchParams).catch((thrown) => thrown)
  expect(pushed).toMatchObject(refused)
})

test('a request with resources and no scope asks for all of theirs, within those of the client', async () => {
  const { url } = await start()
  const { browser, config } = await signedIn(url)
  const asked = new URL((await request(config, { resource: orders.resource })).address)
  for (const name of ['nonce', 'scope']) asked.searchParams.delete(name)
  const page = await browser.open(asked.href)
  expect(contentOf(page.text).scopes).toEqual(orders.scopes.map((each) => `${each} ${orders.resource}`))
  expect((await decide(browser, page)).searchParams.has('code')).toBe(true)
  asked.searchParams.append('resource', chat.resource)
  expect(contentOf((await browser.open(asked.href)).text).scopes).toHaveLength(4)
})

test('a resource that is not in the file is no target', async () => {
  const { url } = await start()
  const { browser, config } = await signedIn(url)
  const { address } = await request(config, { scope: 'openid orders:read', resource: 'https://other.example' })
  expect((await browser.open(address)).address.searchParams.get('error')).toBe('invalid_target')
})

test('connected applications show the scopes of a resource', async () => {
  const { url } = await start()
  const { token } = await connect(url, forOrders)
  const { json } = await rest(url, '/apps', undefined, { authorization: `Bearer ${token}` })
  expect(json.apps).toMatchObject([{ clientId: 'shop', scopes: ['openid', 'profile', 'orders:read'] }])
})

test.each<[string, readonly object[], RegExp, CountersignOptions?]>([
  ['without scopes', [{ resource: 'https://a.example' }], /resource 1: scopes must be/],
  [
    'without words of a scope',
    [{ resource: 'https://a.example', scopes: { read: ' ' } }],
    /resource 1: words of scopes/,
  ],
  [
    'with words of two lines',
    [{ resource: 'https://a.example', scopes: { read: 'a\nb' } }],
    /resource 1: words of scopes/,
  ],
  ['that is no address', [{ ...orders, resource: 'orders' }], /resource 1: resource must be an address/],
  ['with a fragment', [{ ...orders, resource: 'https://a.example/#b' }], /without a fragment/],
  ['with an algorithm that needs the client’s secret', [{ ...orders, algorithm: 'HS256' }], /ES256 or RS256/],
  ['that is there twice', [orders, orders], /resource 2: resource is that of another/],
  ['with a name too many', [{ ...orders, ttl: 1 }], /resource 1: may have "resource", "scopes", "algorithm" and/],
  ['for no client', [{ ...orders, clients: [] }], /resource 1: clients must be a list of client ids/],
  ['for a client that is not there', [{ ...orders, clients: ['shpo'] }], /resource 1: clients names shpo/],
  [
    'that is a backend of the service’s own tokens',
    [orders],
    /leave one out/,
    { accessTokens: { audiences: [orders.resource] } },
  ],
])('a resource %s stops the start', async (_name, resources, message, options) => {
  const refusal = start(resources, options)
  await expect(refusal).rejects.toThrow(TypeError)
  await expect(refusal).rejects.toThrow(message)
})

test('a resource that is the id of a client stops the start', async () => {
  const metadata = { ...shop.metadata, client_id: orders.resource }
  const refusal = startService({ oidc: { clients: fileWith({ clients: [{ metadata }], resources: [orders] }) } })
  await expect(refusal).rejects.toThrow(/resource 1: resource is the id of a client/)
})
