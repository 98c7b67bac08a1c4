import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import * as client from 'openid-client'
import { onTestFinished, vi } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { Countersign } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { type Navigation, navigate } from '../support/navigate.ts'
import { pageValues } from '../support/page-values.ts'
import { freePort } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

/** Where the clients of tests take their answers. Nothing is there. */
export const redirectUri = 'https://shop.example/callback'

/** A client that users are asked about. */
export const shop = {
  metadata: {
    client_id: 'shop',
    client_secret: 'a-secret-of-the-shop-long-enough',
    client_name: 'Tulip Shop',
    redirect_uris: [redirectUri],
    post_logout_redirect_uris: ['https://shop.example/bye'],
    grant_types: ['authorization_code', 'refresh_token'],
  },
}

/** Parameters of a request for authorization by the shop whose answer nothing redeems. */
export const asked = {
  client_id: shop.metadata.client_id,
  redirect_uri: redirectUri,
  response_type: 'code',
  scope: 'openid',
  code_challenge: 'A'.repeat(43),
  code_challenge_method: 'S256',
}

/** Writes a clients file. It is removed when the test ends. */
export function clientsFile(...clients: readonly object[]): string {
  return fileWith({ clients })
}

/** Writes JSON to a file, or a text as it is. It is removed when the test ends. */
export function fileWith(content: object | string): string {
  const folder = temporaryFolder()
  const file = join(folder, 'file.json')
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

/** Starts a service with an issuer. */
export async function startIssuer(
  clients: readonly object[] = [shop],
  options: CountersignOptions = {},
): Promise<{ readonly url: string; readonly service: Countersign }> {
  return await startService({ ...options, oidc: { clients: clientsFile(...clients), ...options.oidc } })
}

/** Lets time pass, by the clock of this process, until the test ends. */
export function pass(seconds: number): void {
  const now = Date.now() + seconds * 1000
  if (!vi.isFakeTimers()) {
    vi.useFakeTimers({ toFake: ['Date'], now })
    onTestFinished(() => void vi.useRealTimers())
  }
  vi.setSystemTime(now)
}

/** Two instances of one issuer. The calls of its clients and browsers go to the one and the other in turn. */
export async function startTwo(options: CountersignOptions, clients: readonly object[] = [shop]) {
  const port = await freePort()
  const publicUrl = `http://localhost:${port}`
  const shared = { secret: 'one secret for both of the instances', ...options, publicUrl }
  const { url } = await startIssuer(clients, { ...shared, port })
  const second = await startIssuer(clients, shared)
  let calls = 0
  const either = (address: string): string => (calls++ % 2 === 0 ? address : address.replace(publicUrl, second.url))
  const discoverBoth = async (metadata?: Record<string, unknown>): Promise<client.Configuration> => {
    const config = await discover(url, metadata)
    config[client.customFetch] = (address, init) => fetch(either(address), init as RequestInit)
    return config
  }
  const newBrowser = (): Browser => {
    const browser = new Browser(url)
    const own = browser.fetch.bind(browser)
    browser.fetch = (address, init) => own(either(new URL(address, url).href), init)
    return browser
  }
  return { url, discoverBoth, newBrowser }
}

/** What a browser says of the request of a script. */
const scripted = { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }

/** A cookie that a browser keeps. */
interface Cookie {
  readonly name: string
  readonly value: string
  readonly path: string
}

/** A browser, as far as an issuer needs one: cookies by path, and redirects one by one. */
export class Browser {
  readonly url: string
  /** By name and path. */
  readonly cookies = new Map<string, Cookie>()

  constructor(url: string) {
    this.url = url
  }

  /** A browser in which a wallet is signed in. */
  static async signedIn(url: string, wallet?: TestWallet): Promise<Browser> {
    const browser = new Browser(url)
    await browser.signIn(wallet)
    return browser
  }

  /** The Cookie header for a path. */
  cookie(path: string): string {
    return [...this.cookies.values()]
      .filter(({ path: own }) => path === own || path.startsWith(own === '/' ? '/' : `${own}/`))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
  }

  async fetch(address: string, { headers, ...others }: Navigation = {}): Promise<Response> {
    const target = new URL(address, this.url)
    const cookie = this.cookie(target.pathname)
    const own = { accept: 'text/html', ...(cookie === '' ? {} : { cookie }) }
    const response = await this.send(target, { ...others, headers: { ...own, ...headers } })
    for (const cookie of response.headers.getSetCookie()) this.#keep(cookie)
    return response
  }

  /** Sends a request, and follows no redirect. */
  protected async send(target: URL, navigation: Navigation): Promise<Response> {
    return await navigate(target, navigation)
  }

  /** Opens an address and follows redirects on this service, as far as they lead. */
  async open(address: string): Promise<{ readonly response: Response; readonly address: URL; readonly text: string }> {
    let next = new URL(address, this.url)
    for (let hop = 0; hop < 10; hop++) {
      if (next.origin !== new URL(this.url).origin) return { response: new Response(), address: next, text: '' }
      const response = await this.fetch(next.href)
      const location = response.headers.get('location')
      if (location === null) return { response, address: next, text: await response.text() }
      next = new URL(location, next)
    }
    throw new Error('too many redirects')
  }

  /** Posts JSON as a page of an origin would, by default the service's own. */
  async post(address: string, input: object, origin: string = new URL(this.url).origin) {
    const response = await this.fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin, ...scripted },
      body: JSON.stringify(input),
    })
    return { status: response.status, json: await response.json() }
  }

  /** Signs a wallet in. Resolves with the session and the bearer token. */
  async signIn(wallet: TestWallet = makeWallet()) {
    const { json: challenge } = await rest(this.url, '/wallet/nonce', {})
    const { json, headers } = await rest(this.url, '/wallet/verify', proofOf(wallet, challenge))
    for (const cookie of headers.getSetCookie()) this.#keep(cookie)
    return { wallet, token: json.token as string, session: json.session }
  }

  #keep(header: string): void {
    const [pair = '', ...attributes] = header.split(';').map((part) => part.trim())
    const [name = '', value = ''] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
    const path = attributes.find((each) => /^path=/i.test(each))?.slice(5) ?? '/'
    const isOver = value === '' || attributes.some((each) => /^(expires=thu, 01 jan 1970|max-age=0$)/i.test(each))
    if (isOver) this.cookies.delete(`${name} ${path}`)
    else this.cookies.set(`${name} ${path}`, { name, value, path })
  }
}

/** Signs a wallet in at a browser by an order, from a phone. Resolves with what takes the order back. */
export async function signInByOrder(browser: Browser, wallet: TestWallet) {
  const { url } = browser
  const { json: order } = await rest(url, '/cross-device/start', { kind: 'login' })
  const claimToken = new URLSearchParams(new URL(order.claimUrl).hash.slice(1)).get('token')
  const { orderId, desktopToken } = order
  const { challengeToken } = (await rest(url, '/cross-device/claim', { orderId, claimToken })).json
  const authorization = `Bearer ${challengeToken}`
  const read = await rest(url, `/cross-device/challenge?orderId=${orderId}`, undefined, { authorization })
  const { nonceId: _, ...proof } = proofOf(wallet, { nonceId: '', message: read.json.message })
  await rest(url, '/cross-device/approve', { orderId, challengeToken, proof })
  const { status, json } = await browser.post('/api/auth/cross-device/finalize', { orderId, desktopToken })
  if (status !== 200) throw new Error(JSON.stringify(json))
  return {
    async takeBack(): Promise<void> {
      const answer = await rest(url, '/cross-device/reject', { orderId, challengeToken })
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.json))
    },
  }
}

/** What the issuer's page shows. */
export function contentOf(html: string): Record<string, unknown> & { readonly kind?: string } {
  return pageValues(html).content ?? {}
}

/** A page that a browser has opened. */
type Opened = Awaited<ReturnType<Browser['open']>>

/** Allows, or declines, what a page of consent asks. Resolves with where that leads. */
export async function decide(browser: Browser, { text, address }: Opened, allow = true): Promise<URL> {
  const { kind, sessionId, scopes } = contentOf(text)
  if (kind !== 'consent') throw new Error(`no page of consent at ${address}: ${text.slice(0, 500)}`)
  const { status, json } = await browser.post(address.pathname, { allow, sessionId, scopes })
  if (status !== 200) throw new Error(JSON.stringify(json))
  return (await browser.open(json.redirectTo)).address
}

/** A browser that is signed in, a client, and the tokens that it got by consent. */
export async function connect(url: string, parameters: Record<string, string> = {}, of = shop.metadata) {
  const user = await signedIn(url, undefined, of)
  return { ...user, tokens: await allow(user, parameters) }
}

/** A browser that is signed in, and a client. */
export async function signedIn(url: string, wallet?: TestWallet, of = shop.metadata) {
  const [browser, config] = [new Browser(url), await discover(url, of)]
  return { browser, config, ...(await browser.signIn(wallet)) }
}

/** A browser, and a client whose requests it opens. */
interface Visit {
  readonly browser: Browser
  readonly config: client.Configuration
}

/** Opens a request of a client. Resolves with where it leads, what a page there shows, and what redeems an answer. */
export async function open({ browser, config }: Visit, parameters: Record<string, string> = {}) {
  const { address, redeem } = await request(config, parameters)
  const opened = await browser.open(address)
  return { ...opened, content: contentOf(opened.text), redeem }
}

/** The tokens that a client gets for a request once its user has allowed it. Fails unless the user is asked. */
export async function allow(visit: Visit, parameters?: Record<string, string>, options?: client.DPoPOptions) {
  const { redeem, ...opened } = await open(visit, parameters)
  return await redeem(await decide(visit.browser, opened), options)
}

/** The header with which a token is sent. */
export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** How a call of a client is refused: the OAuth error, or the status. */
export async function refusalOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => undefined,
    (thrown) => thrown.error ?? thrown.cause?.status ?? thrown.status ?? thrown,
  )
}

/** Posts a form to an endpoint of the issuer. */
export async function postForm(url: string, path: string, form: Record<string, string>, headers = {}) {
  const body = new URLSearchParams(form)
  const response = await fetch(`${url}/api/auth/oidc/${path}`, { method: 'POST', body, headers })
  return { status: response.status, json: await response.json() }
}

/** A client of the library openid-client. */
export async function discover(
  url: string,
  { client_id, client_secret }: Record<string, unknown> = shop.metadata,
): Promise<client.Configuration> {
  return await client.discovery(
    new URL(url),
    String(client_id),
    undefined,
    client.ClientSecretBasic(String(client_secret)),
    { execute: [client.allowInsecureRequests] },
  )
}

/** An authorization request with PKCE, and what redeems its answer. */
export async function request(
  config: client.Configuration,
  parameters: Record<string, string> = {},
): Promise<{
  readonly address: string
  redeem(
    answer: URL,
    options?: client.DPoPOptions,
  ): Promise<client.TokenEndpointResponse & client.TokenEndpointResponseHelpers>
}> {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const [state, nonce] = [client.randomState(), client.randomNonce()]
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: 'openid profile wallet',
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    state,
    nonce,
    ...parameters,
  }).href
  const checks = { pkceCodeVerifier, expectedState: state, expectedNonce: nonce }
  return {
    address,
    redeem: (answer, options) => client.authorizationCodeGrant(config, answer, checks, undefined, options),
  }
}

/** Does something so many times at once. */
export const times = <Result>(count: number, make: (index: number) => Promise<Result>): Promise<Result[]> =>
  Promise.all(Array.from({ length: count }, (_unused, index) => make(index)))

/** Headers of another session of a user, which a direct sign-in made. */
export async function elsewhere({ url, wallet }: { url: string; wallet: TestWallet }): Promise<Record<string, string>> {
  return bearer((await new Browser(url).signIn(wallet)).token)
}

export function sessionsOf({ url }: { readonly url: string }) {
  return createClient(SessionService, createConnectTransport({ baseUrl: url }))
}
