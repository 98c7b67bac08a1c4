import { exportJWK, generateKeyPair } from 'jose'
import * as client from 'openid-client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { createCountersign } from '../../src/index.ts'
import { verifyAccessToken } from '../../src/integrations/backend/index.ts'
import { startInternet } from '../support/internet.ts'
import { keptLog } from '../support/log-lines.ts'
import { inMemory } from '../support/ordinary-store.ts'
import { rest } from '../support/rest.ts'
import { authorizeAddress, discoverAs, documentOf, json, loopback, publish, startWithDocuments } from './documents.ts'
import { Browser, contentOf, decide, fileWith, pass, refusalOf, request, shop, startIssuer } from './support.ts'

const internet = await startInternet()

const minutes = 60_000
const hours = 60 * minutes

/** Lets time pass for what the service keeps of documents, and for nothing else. */
function startClock(): { readonly pass: (ms: number) => void } {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  return { pass: (ms) => void vi.advanceTimersByTime(ms) }
}

const asked = { redirect_uri: loopback.used }

/** A browser that is signed in, a client with a document, and its tokens. */
async function connectAs(url: string, id: string, parameters: Record<string, string> = {}, auth?: client.ClientAuth) {
  const [browser, config] = [new Browser(url), await discoverAs(url, id, auth)]
  const signedIn = await browser.signIn()
  const { address, redeem } = await request(config, { ...asked, ...parameters })
  const page = await browser.open(address)
  const tokens = await redeem(await decide(browser, page))
  return { browser, config, ...signedIn, tokens, shown: contentOf(page.text) }
}

test('a client that is in no file signs a user in by its document, and refreshes', async () => {
  const id = publish(internet, 'first')
  const { url } = await startWithDocuments()
  const { session, tokens, config, shown, token } = await connectAs(url, id)
  expect(config.serverMetadata().client_id_metadata_document_supported).toBe(true)
  expect(shown).toMatchObject({
    kind: 'consent',
    client: { name: 'Tulip Agent', home: 'https://first.clients.example/' },
    documentHost: 'first.clients.example',
  })
  // The answer goes to the device.
  expect(shown).not.toHaveProperty('host')
  expect(tokens.claims()).toMatchObject({ sub: session.userId, aud: id })
  expect((await client.refreshTokenGrant(config, tokens.refresh_token ?? '')).access_token).toBeDefined()
  const { json: apps } = await rest(url, '/apps', undefined, { authorization: `Bearer ${token}` })
  expect(apps.apps).toMatchObject([{ clientId: id, name: 'Tulip Agent', host: 'first.clients.example' }])
})

test('a client with a document may refresh twice at once and ten seconds later, and is signed out after that', async () => {
  const id = publish(internet, 'windows')
  const { url } = await startWithDocuments(inMemory)
  const { tokens, config } = await connectAs(url, id)
  const refresh = (token = tokens.refresh_token ?? '') => client.refreshTokenGrant(config, token)
  const [one, two] = await Promise.all([refresh(), refresh()])
  pass(9)
  const late = await refresh()
  for (const { refresh_token } of [one, two, late]) expect((await refresh(refresh_token)).access_token).toBeDefined()
  pass(2)
  expect(await refusalOf(refresh())).toBe('invalid_grant')
  expect(await refusalOf(refresh(late.refresh_token))).toBe('invalid_grant')
})

test('without the setting, there is no such client, and the metadata say so', async () => {
  const id = publish(internet, 'off')
  const { url } = await startIssuer()
  const metadata = await (await fetch(`${url}/.well-known/oauth-authorization-server`)).json()
  expect(metadata).not.toHaveProperty('client_id_metadata_document_supported')
  internet.forget()
  const { response, text } = await new Browser(url).open(authorizeAddress(url, id))
  expect([response.status, contentOf(text).error]).toEqual([400, 'invalid_client'])
  expect(internet.lookups).toEqual([])
})

test('the setting needs the clients file', async () => {
  await expect(createCountersign({ oidc: { clientDocuments: ['*'] }, logger: silentLogger })).rejects.toThrow(
    /clientDocuments .* needs the clients file/,
  )
})

test('documents outside the prefixes do not count', async () => {
  const [inside, outside] = [publish(internet, 'inside'), publish(internet, 'outside')]
  const { url } = await startWithDocuments({
    oidc: { clientDocuments: ['https://inside.clients.example/'], clients: fileWith({ clients: [] }) },
  })
  const browser = await Browser.signedIn(url)
  expect(contentOf((await browser.open(authorizeAddress(url, inside))).text).kind).toBe('consent')
  expect(contentOf((await browser.open(authorizeAddress(url, outside))).text).error).toBe('invalid_client')
})

test.each([
  ['one port of a loopback address is as good as another', 'native', { uri: loopback.registered, used: loopback.used }],
  [
    'an https address is compared to the letter',
    'web',
    { uri: 'https://tool.example/cb', used: 'https://tool.example/cb' },
  ],
])('%s', async (_name, type, { uri, used }) => {
  const id = publish(internet, `type-${type}`, { redirect_uris: [uri] })
  const { url } = await startWithDocuments()
  const browser = await Browser.signedIn(url)
  const { text } = await browser.open(authorizeAddress(url, id, used))
  const shown = contentOf(text)
  expect([shown.kind, shown.host]).toEqual(['consent', type === 'web' ? 'tool.example' : undefined])
  const { text: other } = await browser.open(authorizeAddress(url, id, `${used}/other`))
  expect(contentOf(other).error).toBe('invalid_redirect_uri')
})

test('of a document with addresses of both kinds, the page says where this answer goes', async () => {
  const id = publish(internet, 'both', { redirect_uris: ['https://tool.example/cb', 'http://127.0.0.1:99/cb'] })
  const { url } = await startWithDocuments()
  const browser = await Browser.signedIn(url)
  const hostAt = async (uri: string) => contentOf((await browser.open(authorizeAddress(url, id, uri))).text).host
  expect(await hostAt('https://tool.example/cb')).toBe('tool.example')
  expect(await hostAt('http://127.0.0.1:99/cb')).toBeUndefined()
})

describe('a document counts', () => {
  /** What a signed-in browser sees of a document at redirect URIs, and the lines of the log that have its id. */
  async function seenAt(name: string, changes: Record<string, unknown>, uris: readonly string[], mark = '') {
    const { id, document } = documentOf(name, changes)
    internet.put(name, (_, response) => void response.end(mark + JSON.stringify(document)))
    const { logger, lines } = keptLog()
    const { url } = await startWithDocuments({ logger })
    const browser = await Browser.signedIn(url)
    const shown: unknown[] = []
    for (const uri of uris) {
      const { kind, error } = contentOf((await browser.open(authorizeAddress(url, id, uri))).text)
      shown.push(error ?? kind)
    }
    return {
      shown,
      logged: lines.filter(({ text, fields }) => text.includes('cannot be used') && fields.clientId === id),
    }
  }
  const tool = 'https://tool.example/cb'

  test.each<[string, readonly unknown[], string]>([
    ['beside https', [tool, 'http://127.0.0.1/'], 'http://127.0.0.1:4711/'],
    ['beside https, by IPv6 and with a port', [tool, 'http://[::1]:99/cb'], 'http://[::1]:4711/cb'],
    ['beside https, by its name', [tool, 'http://localhost/cb'], 'http://localhost:4711/cb'],
    ['as a scheme beside https', [tool, 'com.tulip.agent:/cb'], 'com.tulip.agent:/cb'],
  ])('with an address on the device %s, whatever its application_type', async (_name, uris, used) => {
    for (const type of ['web', 'native', 'service', null]) {
      const { shown, logged } = await seenAt('kinds', { redirect_uris: uris, application_type: type }, [tool, used])
      expect([type, shown, logged]).toEqual([type, ['consent', 'consent'], []])
    }
  })

  test.each<[string, unknown]>([
    ['a fragment', 'https://tool.example/other#x'],
    ['an empty fragment', 'https://tool.example/other#'],
    ['any port', 'http://localhost:*'],
    ['plain http', 'http://tool.example/cb'],
    ['https on the device', 'https://localhost/cb'],
    ['a script', 'javascript:alert(1)'],
    ['no text', { uri: tool }],
  ])('without an address with %s, which the log has', async (_name, unusable) => {
    const uris = [tool, ...(typeof unusable === 'string' ? [unusable] : [])]
    const { shown, logged } = await seenAt('some', { redirect_uris: [unusable, tool] }, uris)
    expect(shown).toEqual(['consent', 'invalid_redirect_uri'].slice(0, uris.length))
    expect(logged).toHaveLength(1)
  })

  test('with null for what it does not say, and with a byte order mark', async () => {
    const absent = ['grant_types', 'response_types', 'token_endpoint_auth_method', 'jwks', 'jwks_uri', 'client_name']
    const changes = Object.fromEntries(
      [...absent, 'client_uri', 'application_type', 'scope'].map((name) => [name, null]),
    )
    expect((await seenAt('nulls', changes, [loopback.used], '\ufeff')).shown).toEqual(['consent'])
  })
})

test('users are asked each time, whatever the document says of itself', async () => {
  const id = publish(internet, 'again', {
    redirect_uris: ['https://again.clients.example/cb'],
    first_party: true,
    isFirstParty: true,
    pkce: 'optional',
    scope: 'openid',
  })
  const { url } = await startWithDocuments()
  const redirect = { redirect_uri: 'https://again.clients.example/cb' }
  const { browser, config, tokens } = await connectAs(url, id, redirect)
  expect(tokens.scope).toBe('openid profile wallet')
  const again = await browser.open((await request(config, redirect)).address)
  expect(contentOf(again.text).kind).toBe('consent')
  const quiet = await browser.open((await request(config, { ...redirect, prompt: 'none' })).address)
  expect(quiet.address.searchParams.get('error')).toBe('consent_required')
  const bare = new URL(authorizeAddress(url, id, redirect.redirect_uri))
  bare.searchParams.delete('code_challenge')
  bare.searchParams.delete('code_challenge_method')
  expect((await browser.open(bare.href)).address.searchParams.get('error')).toBe('invalid_request')
})

describe('a document is refused', () => {
  const keyless = { token_endpoint_auth_method: 'private_key_jwt' }
  test.each<[string, Record<string, unknown>]>([
    ['with another client_id', { client_id: 'https://other.clients.example/client.json' }],
    ['without redirect URIs', { redirect_uris: [] }],
    ['with a redirect URI that is no text', { redirect_uris: [{}] }],
    ['with plain http to a host', { redirect_uris: ['http://shop.example/cb'] }],
    ['with a script as redirect URI', { redirect_uris: ['javascript:alert(1)'] }],
    ['with a fragment in a redirect URI', { redirect_uris: ['https://shop.example/cb#x'] }],
    ['with a shared secret', { token_endpoint_auth_method: 'client_secret_basic', client_secret: 'x'.repeat(40) }],
    ['for other grants only', { grant_types: ['client_credentials'] }],
    ['for other responses only', { response_types: ['token'] }],
    ['with keys of another origin', { ...keyless, jwks_uri: 'https://other.clients.example/jwks.json' }],
    ['with keys on another port', { ...keyless, jwks_uri: 'https://bad.clients.example:8443/jwks.json' }],
    ['without keys that it needs', keyless],
    ['with keys that are none', { ...keyless, jwks: { keys: [{ kty: 'EC', crv: 'P-256' }] } }],
  ])('%s', async (_name, changes) => {
    const id = publish(internet, 'bad', changes)
    const { url } = await startWithDocuments()
    const { response, text } = await new Browser(url).open(authorizeAddress(url, id))
    expect([response.status, contentOf(text).error]).toEqual([400, 'invalid_client_metadata'])
  })
})

test.each([
  ['longer than 80 characters', 'x'.repeat(81)],
  ['with a line break', 'Tulip\nAgent'],
  ['that turns the direction of text', 'Tulip \u202eAgent'],
  ['that is empty', ''],
  ['that is no text', { name: 'Tulip' }],
])('in place of a name %s, the page has the host', async (_name, name) => {
  const id = publish(internet, 'named', { client_name: name, client_uri: 'https://bank.example/' })
  const { url } = await startWithDocuments()
  const browser = await Browser.signedIn(url)
  const { text } = await browser.open(authorizeAddress(url, id))
  // Nor does a document send people to another site.
  expect(contentOf(text).client).toEqual({ name: 'named.clients.example', home: 'https://named.clients.example/' })
})

test.each([
  ['https://accounts.bank.example@userful.clients.example/'],
  ['https://bank:example@userful.clients.example/'],
  ['https://:bank.example@userful.clients.example/'],
])('a client_uri with a user name counts as absent: %s', async (uri) => {
  const id = publish(internet, 'userful', { client_uri: uri })
  const listed = { metadata: { ...shop.metadata, client_uri: uri } }
  const { url } = await startWithDocuments({
    oidc: { clients: fileWith({ clients: [listed] }), clientDocuments: ['*'] },
  })
  const browser = await Browser.signedIn(url)
  const homeOf = async (address: string) => {
    const { client: shown } = contentOf((await browser.open(address)).text)
    return (shown as { readonly home?: string }).home
  }
  expect(await homeOf(authorizeAddress(url, id))).toBe('https://userful.clients.example/')
  expect(await homeOf(authorizeAddress(url, 'shop', shop.metadata.redirect_uris[0]))).toBe('https://shop.example')
})

test('a document that changes its redirect URIs does so within an hour', async () => {
  const uris = ['https://old.clients.example/cb']
  const { id, document } = documentOf('old', { redirect_uris: uris })
  internet.put(
    'old',
    json(() => document, { 'cache-control': 'max-age=31536000' }),
  )
  const { url } = await startWithDocuments()
  const clock = startClock()
  const browser = await Browser.signedIn(url)
  const shownAt = async (uri: string) => {
    const { kind, error } = contentOf((await browser.open(authorizeAddress(url, id, uri))).text)
    return error ?? kind
  }
  expect(await shownAt('https://old.clients.example/cb')).toBe('consent')
  uris[0] = 'https://new.clients.example/cb'
  clock.pass(59 * minutes)
  expect(await shownAt('https://old.clients.example/cb')).toBe('consent')
  clock.pass(2 * minutes)
  expect(await shownAt('https://old.clients.example/cb')).toBe('invalid_redirect_uri')
  expect(await shownAt('https://new.clients.example/cb')).toBe('consent')
})

test.each([
  ['no-store', 5],
  ['max-age=0', 5],
  ['s-maxage=3600, max-age=600', 10],
  ['max-age=999999999', 60],
])('with Cache-Control "%s", a document is used for %i minutes', async (header, life) => {
  const { id, document } = documentOf('kept')
  let requests = 0
  internet.put(
    'kept',
    json(() => Object.assign(document, { x: ++requests }), { 'cache-control': header }),
  )
  const { url } = await startWithDocuments()
  const clock = startClock()
  const open = async () => void (await new Browser(url).open(authorizeAddress(url, id)))
  await open()
  clock.pass(life * minutes - 1000)
  await open()
  expect(requests).toBe(1)
  clock.pass(2000)
  await open()
  expect(requests).toBe(2)
})

test('a browser without a session is sent back by a document of up to 24 hours, of which nothing is fetched', async () => {
  const id = publish(internet, 'silent-renewal')
  const { url } = await startWithDocuments()
  const clock = startClock()
  await new Browser(url).open(authorizeAddress(url, id))
  internet.forget()
  const renewal = async () => await new Browser(url).open(`${authorizeAddress(url, id)}&prompt=none`)
  clock.pass(23 * hours)
  const { origin, pathname, searchParams } = (await renewal()).address
  expect(origin + pathname).toBe(loopback.used)
  expect([searchParams.get('error'), searchParams.get('state')]).toEqual(['login_required', 'one'])
  clock.pass(2 * hours)
  const { response, text } = await renewal()
  expect([response.status, contentOf(text).error]).toEqual([400, 'login_required'])
  expect(internet.connections).toEqual([])
})

describe('while the host of a document is away', () => {
  test('tokens are refreshed by the last good one for 24 hours; then the client is to try again later', async () => {
    const id = publish(internet, 'away')
    const { url } = await startWithDocuments()
    const clock = startClock()
    const { config, tokens } = await connectAs(url, id)
    internet.take('away')
    clock.pass(23 * hours)
    const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(next.access_token).toBeDefined()
    clock.pass(2 * hours)
    const body = new URLSearchParams({
      grant_type: 'refresh_token',
      client_id: id,
      refresh_token: next.refresh_token ?? '',
    })
    const answer = await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body })
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ error: 'temporarily_unavailable' })
    // The token still counts once the host is back, and its failure is forgotten.
    publish(internet, 'away')
    clock.pass(minutes)
    expect((await client.refreshTokenGrant(config, next.refresh_token ?? '')).access_token).toBeDefined()
  })

  test('a document that is no longer valid counts like a host that is away', async () => {
    const id = publish(internet, 'broken')
    const { url } = await startWithDocuments()
    const clock = startClock()
    const { config, tokens } = await connectAs(url, id)
    publish(internet, 'broken', { redirect_uris: 'none' })
    clock.pass(2 * hours)
    expect((await client.refreshTokenGrant(config, tokens.refresh_token ?? '')).access_token).toBeDefined()
  })

  test('nothing new begins, and a page of consent goes no further', async () => {
    const id = publish(internet, 'gone')
    const { url } = await startWithDocuments()
    const clock = startClock()
    const { browser } = await connectAs(url, id)
    const page = await browser.open(authorizeAddress(url, id))
    expect(contentOf(page.text).kind).toBe('consent')
    internet.take('gone')
    clock.pass(2 * hours)
    const unavailable = [503, 'temporarily_unavailable', 'gone.clients.example']
    const errorOf = ({ response, text }: typeof page) => {
      const { error, unreachable: host } = contentOf(text)
      return [response.status, error, host]
    }
    expect(errorOf(await browser.open(authorizeAddress(url, id)))).toEqual(unavailable)
    expect(errorOf(await browser.open(page.address.href))).toEqual(unavailable)
    await expect(decide(browser, page)).rejects.toThrow(/load the page again/)
  })
})

describe('a client with a key', () => {
  const keyed = { token_endpoint_auth_method: 'private_key_jwt' }

  async function putKeyed(name: string) {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
    const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: '1', alg: 'ES256' }] }
    const address = `https://${name}.clients.example/keys`
    const { id, document } = documentOf(name, { ...keyed, jwks_uri: address })
    const served = { keys: keys as object }
    internet.put(name, (question, response) => {
      json(() => (question.url === '/keys' ? served.keys : document))(question, response)
    })
    return { id, privateKey, served }
  }

  test('proves it by the key set that its document names, at the same origin', async () => {
    const { id, privateKey } = await putKeyed('keyed')
    const { url } = await startWithDocuments()
    const auth = client.PrivateKeyJwt({ key: privateKey, kid: '1' })
    const { tokens, config, session } = await connectAs(url, id, {}, auth)
    expect(tokens.claims()).toMatchObject({ sub: session.userId, aud: id })
    expect(await client.tokenIntrospection(config, tokens.access_token)).toMatchObject({ active: true, client_id: id })
    const { privateKey: other } = await generateKeyPair('ES256')
    const thief = await discoverAs(url, id, client.PrivateKeyJwt({ key: other, kid: '1' }))
    expect(await refusalOf(client.refreshTokenGrant(thief, tokens.refresh_token ?? ''))).toBe('invalid_client')
    const bare = await discoverAs(url, id)
    expect(await refusalOf(client.refreshTokenGrant(bare, tokens.refresh_token ?? ''))).toBe('invalid_client')
    // It keeps its tokens together, so a second use of one is a thief's.
    const refresh = () => client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect((await refresh()).access_token).toBeDefined()
    expect(await refusalOf(refresh())).toBe('invalid_grant')
  })

  test('whose key set cannot be had is to try again later', async () => {
    const { id, served } = await putKeyed('keyless')
    served.keys = { keys: [], padding: 'x'.repeat(6000) }
    const { url } = await startWithDocuments()
    const { response, text } = await new Browser(url).open(authorizeAddress(url, id))
    expect([response.status, contentOf(text).error]).toEqual([503, 'temporarily_unavailable'])
  })
})

test('a client gets tokens for a resource that is for all clients, and for no other', async () => {
  const id = publish(internet, 'resource')
  const resources = [
    { resource: 'https://notes.example', scopes: ['notes:read'] },
    { resource: 'https://orders.example', scopes: ['orders:read'], clients: ['shop'] },
  ]
  const { url } = await startWithDocuments({
    oidc: { clients: fileWith({ clients: [shop], resources }), clientDocuments: ['*'] },
  })
  const scope = { scope: 'openid notes:read', resource: 'https://notes.example' }
  const { tokens, session, browser, config } = await connectAs(url, id, scope)
  const rules = { issuer: url, audience: 'https://notes.example', scopes: ['notes:read'] }
  expect(await verifyAccessToken(tokens.access_token, rules)).toMatchObject({ userId: session.userId, clientId: id })
  const other = { ...asked, scope: 'openid orders:read', resource: 'https://orders.example' }
  const { address } = await browser.open((await request(config, other)).address)
  expect(address.searchParams.get('error')).toBe('invalid_target')
})

test('refuses a client_id equal to an audience or a resource', async () => {
  const [audience, resource] = [publish(internet, 'audience'), publish(internet, 'as-resource')]
  const { url } = await startWithDocuments({ accessTokens: { audiences: [audience] } }, [{ resource, scopes: ['x'] }])
  for (const id of [audience, resource]) {
    const { text } = await new Browser(url).open(authorizeAddress(url, id))
    expect(contentOf(text).error).toBe('invalid_client')
  }
})

test('a client of one machine works by the clients file, with what its document says', async () => {
  const { document } = documentOf('unused')
  const id = 'https://localhost/client.json'
  const metadata = { ...document, client_id: id, token_endpoint_auth_method: 'none', application_type: 'native' }
  const { url } = await startWithDocuments({
    oidc: { clients: fileWith({ clients: [{ metadata }] }), clientDocuments: ['*'] },
  })
  const { tokens, session } = await connectAs(url, id)
  expect(tokens.claims()).toMatchObject({ sub: session.userId, aud: id })
})

test('a client of the file with an address as its id is that of the file', async () => {
  const id = publish(internet, 'listed')
  const uri = 'https://listed.clients.example/cb'
  const listed = { first_party: true, metadata: { ...shop.metadata, client_id: id, redirect_uris: [uri] } }
  const { url } = await startWithDocuments({
    oidc: { clients: fileWith({ clients: [listed] }), clientDocuments: ['*'] },
  })
  internet.forget()
  const browser = await Browser.signedIn(url)
  const { address } = await browser.open(authorizeAddress(url, id, uri))
  expect(address.searchParams.has('code')).toBe(true)
  expect(internet.lookups).toEqual([])
})

test('each document that is fetched counts for the network of the browser, in addition to its request', async () => {
  const { url } = await startWithDocuments({ rateLimit: true, limits: { rates: { 'sign-in': 7 } } })
  const statusOf = async (name: string) =>
    (await new Browser(url).open(authorizeAddress(url, documentOf(name).id))).response.status
  const statuses: number[] = []
  // The second request for the first document is the seventh that counts: what is remembered is not fetched.
  for (const name of ['nowhere-1', 'nowhere-2', 'nowhere-3', 'nowhere-1', 'nowhere-4'])
    statuses.push(await statusOf(name))
  expect(statuses).toEqual([503, 503, 503, 503, 429])
})
