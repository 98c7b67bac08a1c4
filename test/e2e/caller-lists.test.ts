import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { createCountersign } from '../../src/index.ts'
import { authorizeAddress, publish } from '../oidc/documents.ts'
import { redirectUri, shop } from '../oidc/support.ts'
import { onePerFile } from '../support/file-end.ts'
import { signIn } from '../support/flows.ts'
import { startInternet } from '../support/internet.ts'
import { type RawRequest, sendRaw } from '../support/raw-http.ts'
import { folderOfFile } from '../support/temporary-folder.ts'

/**
 * Every list and text that a caller can make long, at its bound and at a quarter of it: the CPU time of four times as
 * much is about four times as long, and would be sixteen times with a loop in a loop. Each row has the parts that fill
 * a request of `size` bytes.
 */

interface Row {
  /** Default: POST with a body, GET without. */
  readonly method?: 'GET' | 'POST' | 'OPTIONS'
  readonly path: string
  /** Largest size that the port lets through, in bytes. Default: that of headers. */
  readonly bound?: number
  /** Default: those of JSON, with a body. */
  readonly headers?: Readonly<Record<string, string>>
  /** Whether it is sent with a user's session, from the service's own pages. */
  readonly asUser?: true
  /** Header, query or body of `size` bytes. */
  readonly header?: readonly [name: string, value: (size: number) => string]
  readonly query?: (size: number) => string
  readonly body?: (size: number) => string | Buffer
}

/** What the port leaves of 16 KiB for one header or a query. */
const headerBytes = 15_000
const bodyBytes = 64_000
const formBytes = 16_000

const json = { 'content-type': 'application/json' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }
const base = '/api/auth'
const authorize = `${base}/oidc/authorize`

/** A text of about `size` bytes: `part` again and again, with its number in place of `#`. */
function list(size: number, part: string, separator = ''): string {
  const bytes = Buffer.byteLength(part + separator) + 3
  return Array.from({ length: Math.floor(size / bytes) }, (_, index) =>
    part.replaceAll('#', index.toString(36).padStart(4, '0')),
  ).join(separator)
}

const pkce = `code_challenge=${'c'.repeat(43)}&code_challenge_method=S256`
const asked = `client_id=shop&response_type=code&redirect_uri=${encodeURIComponent(redirectUri)}&${pkce}`
const credentials = 'client_id=shop&client_secret=a-secret-of-the-shop-long-enough'
const code = `grant_type=authorization_code&code=none&redirect_uri=${encodeURIComponent(redirectUri)}&${credentials}`

const rows: Readonly<Record<string, Row>> = {
  'cookies of the issuer': {
    path: `${authorize}?${asked}&scope=openid`,
    header: ['cookie', (size) => list(size, 'countersign_oidc_browser_#=s', '; ')],
  },
  'session cookies': {
    path: `${base}/session`,
    header: ['cookie', (size) => list(size, 'countersign_session=#', '; ')],
  },
  'cookies of others': {
    path: `${base}/session`,
    header: ['cookie', (size) => list(size, 'c#=', '; ')],
  },
  'cookies of one quoted value': {
    path: `${base}/session`,
    header: ['cookie', (size) => `countersign_session="${'\\"'.repeat(size / 2)}`],
  },
  'a bearer token of dots': {
    path: `${base}/session`,
    header: ['authorization', (size) => `Bearer ${'.'.repeat(size)}`],
  },
  'spaces before a bearer token': {
    path: `${base}/session`,
    header: ['authorization', (size) => `Bearer${' '.repeat(size)}x`],
  },
  'addresses of proxies': {
    path: `${base}/wallet/nonce`,
    header: ['x-forwarded-for', (size) => list(size, '2001:db8::#', ', ')],
    body: () => '{}',
  },
  'an address of colons': {
    path: `${base}/wallet/nonce`,
    header: ['x-forwarded-for', (size) => ':'.repeat(size)],
    body: () => '{}',
  },
  'hosts of proxies': {
    path: `${base}/session`,
    header: ['x-forwarded-host', (size) => list(size, 'h#', ',')],
  },
  'an origin': {
    path: `${base}/session`,
    header: ['origin', (size) => `https://${list(size, 'a#', '.')}`],
  },
  'media types': {
    path: `${base}/cross-device/events?orderId=none`,
    header: ['accept', (size) => list(size, 'text/#;q=0.1', ' , ')],
  },
  'media types that are white space': {
    path: `${base}/cross-device/events?orderId=none`,
    header: ['accept', (size) => `${' \t'.repeat(size / 2)}x`],
  },
  'a content type': {
    path: `${base}/wallet/nonce`,
    headers: {},
    header: ['content-type', (size) => `application/json;${list(size, ' p=#', ';')}`],
    body: () => '{}',
  },
  'tags of a page': {
    path: '/',
    header: ['if-none-match', (size) => list(size, 'W/"#"', ', ')],
  },
  languages: {
    path: `${base}/sign-in`,
    header: ['accept-language', (size) => list(size, 'x#;q=0.1', ', ')],
  },
  'encodings of an RPC': {
    path: '/countersign.v1.SignInService/IssueNonce',
    header: ['accept-encoding', (size) => list(size, 'e#', ', ')],
    body: () => '{}',
  },
  'headers that a page asks to send': {
    method: 'OPTIONS',
    path: `${base}/session`,
    headers: { origin: 'https://other.example', 'access-control-request-method': 'POST' },
    header: ['access-control-request-headers', (size) => list(size, 'h#', ',')],
  },
  'a proof of possession': {
    path: `${base}/oidc/token`,
    headers: form,
    header: ['dpop', (size) => list(size, 'e#', '.')],
    body: () => code,
  },
  'groups of forward auth': {
    path: `${base}/forward-auth`,
    query: (size) => `groups=${list(size, 'g#', ',')}`,
  },
  'parameters of forward auth': {
    path: `${base}/forward-auth`,
    query: (size) => list(size, 'groups=g#', '&'),
  },
  'the path of a proxied request': {
    path: `${base}/forward-auth?redirect=1`,
    header: ['x-forwarded-uri', (size) => `/${list(size, '#', '/../')}`],
  },
  'wallets of the sign-in page': {
    path: `${base}/sign-in`,
    query: (size) => list(size, 'wallet=nimiq:#', '&'),
  },
  'the way back of the sign-in page': {
    path: `${base}/sign-in`,
    query: (size) => `returnTo=/${list(size, '#', '/../')}`,
  },
  'parameters of a challenge': {
    path: `${base}/cross-device/challenge`,
    query: (size) => list(size, 'orderId=#', '&'),
  },
  scopes: {
    path: authorize,
    query: (size) => `${asked}&scope=openid+${list(size, 's#', '+')}`,
  },
  resources: {
    path: authorize,
    query: (size) => `${asked}&scope=openid&${list(size, 'resource=https://r#.example', '&')}`,
  },
  prompts: {
    path: authorize,
    query: (size) => `${asked}&scope=openid&prompt=${list(size, 'p#', '+')}`,
  },
  'languages of a request': {
    path: authorize,
    query: (size) => `${asked}&scope=openid&ui_locales=${list(size, 'l#', '+')}`,
  },
  'claims of a request': {
    path: authorize,
    query: (size) => `${asked}&scope=openid&claims={"id_token":{${list(size - 30, '"c#":null', ',')}}}`,
  },
  'unknown parameters of a request': {
    path: authorize,
    query: (size) => `${asked}&scope=openid&${list(size, 'p#=', '&')}`,
  },
  'a hint of a user': {
    path: authorize,
    query: (size) => `${asked}&scope=openid&prompt=none&login_hint=${list(size, '#', '+')}`,
  },
  'scopes at the token endpoint': {
    path: `${base}/oidc/token`,
    bound: formBytes,
    headers: form,
    body: (size) => `${code}&scope=${list(size - 200, 's#', '+')}`,
  },
  'resources at the token endpoint': {
    path: `${base}/oidc/token`,
    bound: formBytes,
    headers: form,
    body: (size) => `${code}&${list(size - 200, 'resource=https://r#.example', '&')}`,
  },
  'parameters at the token endpoint': {
    path: `${base}/oidc/token`,
    bound: formBytes,
    headers: form,
    body: (size) => `${code}&${list(size - 200, 'p#', '&')}`,
  },
  'an assertion of a client': {
    path: `${base}/oidc/token`,
    bound: formBytes,
    headers: form,
    body: (size) => {
      const claims = `{"aud":[${list((size - 400) * 0.7, '"a#"', ',')}],"sub":"shop","iss":"shop"}`
      const [header, payload] = ['{"alg":"ES256"}', claims].map((part) => Buffer.from(part).toString('base64url'))
      const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
      const assertion = `client_assertion_type=${type}&client_assertion=${header}.${payload}.x`
      return `grant_type=authorization_code&code=none&${assertion}`
    },
  },
  'a pushed request': {
    path: `${base}/oidc/par`,
    bound: formBytes,
    headers: form,
    body: (size) => `${asked}&${credentials}&scope=openid&${list(size - 500, 'resource=https://r#.example', '&')}`,
  },
  'a code of a device': {
    path: '/device',
    bound: formBytes,
    asUser: true,
    body: (size) => JSON.stringify({ code: '\u0301\u0327'.repeat(size / 4) }),
  },
  'fields of a message': {
    path: `${base}/wallet/verify`,
    bound: bodyBytes,
    body: (size) => `{${list(size, '"f#":0', ',')}}`,
  },
  'a message in lists': {
    path: `${base}/wallet/verify`,
    bound: bodyBytes,
    body: (size) => `{"nonceId":${'['.repeat(size / 2)}${']'.repeat(size / 2)}}`,
  },
  'a list in a message': {
    path: `${base}/wallet/verify`,
    bound: bodyBytes,
    body: (size) => `{"nonceId":[${list(size, '"#"', ',')}]}`,
  },
  'a signature': {
    path: `${base}/wallet/verify`,
    bound: bodyBytes,
    body: (size) =>
      `{"nonceId":"${'n'.repeat(43)}","publicKeyHex":"${'ab'.repeat(32)}","signatureHex":"${'ab'.repeat(size / 2 - 100)}"}`,
  },
  'a token of a backend': {
    path: '/countersign.v1.SessionService/IntrospectSession',
    bound: bodyBytes,
    body: (size) => `{"token":"${'.'.repeat(size)}"}`,
  },
  'a return code': {
    path: `${base}/cross-device/finalize`,
    bound: bodyBytes,
    body: (size) => JSON.stringify({ orderId: 'o', desktopToken: 't', returnCode: '\u0301\u0327'.repeat(size / 4) }),
  },
  'a title': {
    path: `${base}/cross-device/start`,
    bound: bodyBytes,
    body: (size) => `{"kind":"sign","displayTitle":"${' \u200e'.repeat(size / 4)}"}`,
  },
  'names of a payload': {
    path: `${base}/cross-device/start`,
    bound: 8_000,
    body: (size) => JSON.stringify({ kind: 'sign', payload: `{${list(size, '"n#":0', ',')}}` }),
  },
  'escapes of a payload': {
    path: `${base}/cross-device/start`,
    bound: 8_000,
    body: (size) => JSON.stringify({ kind: 'sign', payload: `["${'\\u00e4'.repeat(size / 6)}"]` }),
  },
  'numbers of a payload': {
    path: `${base}/cross-device/start`,
    bound: 8_000,
    body: (size) => JSON.stringify({ kind: 'sign', payload: `[${'1'.repeat(size / 2)}.${'0'.repeat(size / 2)}]` }),
  },
  'unknown fields of a binary message': {
    path: '/countersign.v1.SignInService/IssueNonce',
    bound: bodyBytes,
    headers: { 'content-type': 'application/proto' },
    // Field 1000 as a number, 0.
    body: (size) => Buffer.alloc(Math.floor(size / 3) * 3, Buffer.from([0xc0, 0x3e, 0x00])),
  },
  'envelopes of a call': {
    path: '/countersign.v1.OrderService/WatchOrder',
    bound: bodyBytes,
    headers: { 'content-type': 'application/connect+json' },
    body: (size) => Buffer.alloc(Math.floor(size / 5) * 5),
  },
}

function requestOf(
  {
    path,
    body,
    method = body === undefined ? 'GET' : 'POST',
    headers = body === undefined ? {} : json,
    header,
    query,
  }: Row,
  size: number,
  own: Readonly<Record<string, string>>,
): RawRequest {
  const content = body?.(size) ?? ''
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  const target = query === undefined ? path : `${path}?${query(size)}`
  const long = header === undefined ? [] : [[header[0], header[1](size)] as const]
  return {
    method,
    target,
    version: '1.1',
    headers: [...Object.entries({ ...own, connection: 'close', ...headers }), ...long],
    body: bytes,
  }
}

/** CPU time of a request in ms, over a round of them. */
async function cpuMsOf(port: number, request: () => RawRequest): Promise<number> {
  const requests = Array.from({ length: calls }, request)
  const before = process.cpuUsage()
  for (const each of requests) await sendRaw(port, each)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / calls
}

/**
 * Expects a request of a size, and one of a quarter, to take CPU time in about that proportion. The least of several rounds
 * counts, with both sizes in turn: garbage and a busy machine add to some rounds, work that grows with the square to all.
 */
async function expectInProportion(
  port: number,
  { name, bound, make }: { name: string; bound: number; make: (size: number) => RawRequest },
): Promise<void> {
  const answer = await sendRaw(port, make(bound))
  expect([403, 413, 431, 500, 503, undefined]).not.toContain(answer?.status)
  let quarter = Number.POSITIVE_INFINITY
  let all = Number.POSITIVE_INFINITY
  for (let round = 0; round < 4 || (round < 24 && all / quarter >= 6); round++) {
    quarter = Math.min(quarter, await cpuMsOf(port, () => make(bound / 4)))
    all = Math.min(all, await cpuMsOf(port, () => make(bound)))
  }
  if (process.env.FIGURES !== undefined)
    console.log(`${name} | ${bound} | ${answer?.status} | ${quarter.toFixed(2)} | ${all.toFixed(2)}`)
  expect(all / quarter).toBeLessThan(6)
}

const calls = 8

/** A service with all its parts, and the session cookie of a user. */
const whole = onePerFile(async () => {
  const clients = join(folderOfFile(), 'clients.json')
  writeFileSync(clients, JSON.stringify({ clients: [shop] }))
  const service = await createCountersign({
    ...{ store: 'sqlite::memory:', port: 0, host: '127.0.0.1', rateLimit: false, trustProxy: 1, logger: silentLogger },
    oidc: { clients, device: true, clientDocuments: ['*'] },
  })
  const url = `http://localhost:${await service.listen()}`
  const { cookie } = await signIn(url)
  return { url, cookie, [Symbol.asyncDispose]: () => service.close(500) }
})

const internet = await startInternet()

/** Lists of a client document, which has at most 5 KiB. */
const documentBytes = 4_500
const lists: Readonly<Record<string, (size: number) => Readonly<Record<string, unknown>>>> = {
  'redirect URIs of a document': (size) => ({ redirect_uris: list(size, 'https://r#.example/', ' ').split(' ') }),
  'grant types of a document': (size) => ({
    grant_types: ['authorization_code', ...list(size * 0.7, 'g#', ' ').split(' ')],
  }),
  'keys of a document': (size) => ({
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: {
      keys: list(size / 5, 'k#', ' ')
        .split(' ')
        .map((kid) => ({ kty: 'EC', kid })),
    },
  }),
}

describe('what a caller makes long takes no more than its share of time:', () => {
  test.for(Object.entries(rows))('%s', async ([name, row]) => {
    const { url, cookie } = await whole()
    const { host, port } = new URL(url)
    const own = { host, ...(row.asUser === true ? { cookie, origin: url } : {}) }
    await expectInProportion(Number(port), {
      name,
      bound: row.bound ?? headerBytes,
      make: (size) => requestOf(row, size, own),
    })
  })

  test.for(Object.entries(lists))('%s', async ([name, changes]) => {
    const { url } = await whole()
    const { host, port } = new URL(url)
    let made = 0
    // A document of its own for each request: it is fetched once.
    const make = (size: number): RawRequest => {
      const id = publish(internet, `of-${name.split(' ')[0]}-${made++}`, changes(size))
      const { pathname, search } = new URL(authorizeAddress(url, id))
      return requestOf({ path: pathname + search }, 0, { host })
    }
    await expectInProportion(Number(port), { name, bound: documentBytes, make })
  })
})
