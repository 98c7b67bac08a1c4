import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Browser, decide, discover, redirectUri, request, shop, startIssuer } from './support.ts'

/** A request for a document of the issuer. */
interface Wanted {
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** An answer: its status, and all of its text, headers included. */
interface Got {
  readonly status: number
  readonly all: string
}

/** Sends a request with headers of any kind, those included that `fetch` writes itself. */
async function ask(url: string, { method = 'GET', path, headers = {}, body = '' }: Wanted): Promise<Got> {
  const { hostname, port } = new URL(url)
  const length = { 'content-length': String(Buffer.byteLength(body)) }
  const sent = http.request({ hostname, port, method, path, headers: { ...headers, ...length }, agent: false })
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [http.IncomingMessage]
  return { status: answer.statusCode ?? 0, all: `${answer.rawHeaders.join('\n')}\n${await text(answer)}` }
}

async function askHttp2(url: string, { method = 'GET', path, headers = {}, body = '' }: Wanted): Promise<Got> {
  const connection = http2.connect(url)
  onTestFinished(() => connection.close())
  const { host = '', ...others } = headers
  const sent = connection.request({ ':method': method, ':path': path, ':authority': host, ...others })
  if (method === 'POST') sent.end(body)
  const [answer] = (await once(sent, 'response')) as [http2.IncomingHttpHeaders]
  return { status: Number(answer[':status']), all: `${JSON.stringify(answer)}\n${await text(sent)}` }
}

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const base = '/api/auth/oidc'

/** Every kind of document that the issuer has, by its name, and the status that it comes with. */
async function documentsOf(url: string): Promise<Record<string, Wanted & { readonly status: number }>> {
  const [browser, config] = [new Browser(url), await discover(url)]
  await browser.signIn()
  const query = async (parameters: Record<string, string> = {}) =>
    new URL((await request(config, parameters)).address).search.slice(1)
  const html = { accept: 'text/html' }
  const { address } = await request(config)
  const consent = (await browser.open(address)).address.pathname
  const began = (await browser.fetch(address)).headers.get('location') ?? ''
  const signedIn = { ...html, cookie: browser.cookie('/') }
  const secret = `Basic ${Buffer.from(`shop:${encodeURIComponent(shop.metadata.client_secret)}`).toString('base64')}`
  const client = { ...form, authorization: secret }
  return {
    discovery: { path: '/.well-known/openid-configuration', status: 200 },
    'OAuth discovery': { path: '/.well-known/oauth-authorization-server', status: 200 },
    keys: { path: '/.well-known/jwks.json', status: 200 },
    'the way to the sign-in page': { path: `${base}/authorize?${await query()}`, headers: html, status: 303 },
    'the way to consent': { path: new URL(began, url).pathname, headers: signedIn, status: 200 },
    'a form of a request': {
      method: 'POST',
      path: `${base}/authorize`,
      headers: form,
      body: await query(),
      status: 303,
    },
    'an answer to the client': {
      path: `${base}/authorize?${await query({ prompt: 'none' })}`,
      headers: html,
      status: 303,
    },
    // The page for an unregistered redirect URI shows the one that was sent.
    'an error page': { path: `${base}/authorize?client_id=unknown`, headers: html, status: 400 },
    'an error as JSON': {
      path: `${base}/authorize?client_id=unknown`,
      headers: { accept: 'application/json' },
      status: 400,
    },
    consent: { path: consent, headers: signedIn, status: 200 },
    'a page of an interaction that is over': { path: `${base}/interaction/x`, headers: html, status: 400 },
    'a pushed request': { method: 'POST', path: `${base}/par`, headers: client, body: await query(), status: 201 },
    'a pushed request that is refused': {
      method: 'POST',
      path: `${base}/par`,
      headers: client,
      body: 'scope=openid',
      status: 400,
    },
    'a client that is not known': {
      method: 'POST',
      path: `${base}/token`,
      headers: form,
      body: 'grant_type=refresh_token&client_id=shop&client_secret=wrong',
      status: 401,
    },
    'a token that is not known': { path: `${base}/userinfo`, headers: { authorization: 'Bearer x' }, status: 401 },
    logout: { path: `${base}/logout`, headers: signedIn, status: 200 },
    'logout without a session': { path: `${base}/logout`, headers: html, status: 200 },
    'logout with another address': {
      path: `${base}/logout?client_id=shop&post_logout_redirect_uri=https://other.example/`,
      headers: html,
      status: 400,
    },
  }
}

/** Addresses in an answer that are neither the issuer's nor the client's, nor the name of a format. */
function foreignIn(url: string, { all }: Got): string[] {
  const decoded = all.replaceAll('&#58;', ':').replaceAll('&#47;', '/').replaceAll('\\/', '/')
  const found = decoded.match(/(?:https?|wss?):(?:\/\/|%2F%2F)[^\s"'<>)]*/gi) ?? []
  const own = [new URL(url).origin, new URL(redirectUri).origin, 'http://www.w3.org']
  return found.filter((each) => !own.some((origin) => decodeURIComponent(each).startsWith(origin)))
}

const hostile: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['Host', { host: 'evil.example' }],
  ['Host with a port', { host: 'localhost:1@evil.example' }],
  [
    'X-Forwarded-*',
    {
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
      'x-forwarded-port': '666',
      'x-forwarded-prefix': '/evil',
      'x-forwarded-server': 'evil.example',
      'x-forwarded-for': '203.0.113.9',
    },
  ],
  [
    'Forwarded and its relatives',
    {
      forwarded: 'for=203.0.113.9;host=evil.example;proto=https',
      'x-original-host': 'evil.example',
      'x-host': 'evil.example',
      'x-original-url': 'https://evil.example/evil',
      'x-rewrite-url': '/evil',
      referer: 'https://evil.example/',
    },
  ],
]

/** What those headers name, and no random text of an answer has. */
const foreign = /evil\.example|\/evil/i

describe.each([
  ['', {}],
  [', behind a proxy that is trusted', { trustProxy: 1 }],
])('no header of a request puts an address into a document%s', (_, options) => {
  test.each(hostile)('%s', async (_name, headers) => {
    const { url } = await startIssuer([shop], options)
    for (const [name, wanted] of Object.entries(await documentsOf(url))) {
      const got = await ask(url, { ...wanted, headers: { ...wanted.headers, ...headers } })
      expect(got.all, name).not.toMatch(foreign)
      expect(foreignIn(url, got), name).toEqual([])
    }
  })
})

test('each of these documents is there, and has no foreign address either', async () => {
  const { url } = await startIssuer()
  const { host } = new URL(url)
  for (const [name, wanted] of Object.entries(await documentsOf(url))) {
    const got = await ask(url, { ...wanted, headers: { ...wanted.headers, host } })
    expect([name, got.status, foreignIn(url, got)]).toEqual([name, wanted.status, []])
  }
})

test('no authority of HTTP/2 and no target in absolute form puts an address into a document', async () => {
  const { url } = await startIssuer()
  for (const [name, wanted] of Object.entries(await documentsOf(url))) {
    const both = [
      await askHttp2(url, { ...wanted, headers: { ...wanted.headers, host: 'evil.example' } }),
      await ask(url, { ...wanted, path: `http://evil.example${wanted.path}` }),
    ]
    for (const got of both) {
      expect(got.all, name).not.toMatch(foreign)
      expect(foreignIn(url, got), name).toEqual([])
    }
  }
})

test('all addresses in discovery are of publicUrl', async () => {
  const publicUrl = 'https://auth.example'
  const { url } = await startIssuer([shop], { publicUrl, trustProxy: 1 })
  for (const path of ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']) {
    const got = await ask(url, { path, headers: { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' } })
    const metadata = JSON.parse(got.all.slice(got.all.indexOf('{')))
    const addresses = Object.entries(metadata).filter(([name]) => /^issuer$|_(endpoint|uri)$/.test(name))
    expect(addresses.length).toBeGreaterThan(8)
    for (const [name, address] of addresses) expect(new URL(String(address)).origin, name).toBe(publicUrl)
  }
})

test('an address with other slashes, case or escapes is no other spelling of one of the issuer', async () => {
  const { url } = await startIssuer()
  const { search } = new URL((await request(await discover(url))).address)
  for (const path of [
    '//evil.example/.well-known/openid-configuration',
    '///.well-known/openid-configuration',
    '/.well-known//openid-configuration',
    '/.well-known/openid-configuration/',
    '/.Well-Known/OpenID-Configuration',
    `//evil.example${base}/authorize${search}`,
    `/${base}/authorize${search}`,
    `${base}//authorize${search}`,
    `${base}/authorize/${search}`,
    `${base}/Authorize${search}`,
    `/API/auth/oidc/authorize${search}`,
    `${base}/%61uthorize${search}`,
    `${base}/x/../authorize${search}`,
    `${base}/authorize;x${search}`,
    `${base}/interaction/../logout`,
    `${base}/authorize/..%2flogout`,
    `${base}/logout/`,
  ]) {
    const got = await ask(url, { path, headers: { accept: 'text/html' } })
    expect([path, got.status]).toEqual([path, 404])
    expect(foreignIn(url, got).filter((each) => !path.includes(each))).toEqual([])
  }
})

test('every answer to a client names the issuer', async () => {
  const { url } = await startIssuer()
  const [browser, config] = [new Browser(url), await discover(url)]
  await browser.signIn()
  const opened = async () => await browser.open((await request(config)).address)
  const none = await browser.open((await request(config, { prompt: 'none' })).address)
  const answers = {
    consent_required: none.address,
    access_denied: await decide(browser, await opened(), false),
    code: await decide(browser, await opened()),
  }
  for (const [name, { searchParams }] of Object.entries(answers)) {
    expect(searchParams.get('error') ?? 'code').toBe(name)
    expect(searchParams.get('iss')).toBe(url)
  }
  const { text: page } = await browser.open((await request(config, { response_mode: 'form_post' })).address)
  expect(page).toContain(`name="iss" value="${url}"`)
  const { address } = await browser.open((await request(config, { response_mode: 'fragment' })).address)
  expect(new URLSearchParams(address.hash.slice(1)).get('iss')).toBe(url)
})
