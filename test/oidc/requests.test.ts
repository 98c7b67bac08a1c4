import * as client from 'openid-client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { navigate } from '../support/navigate.ts'
import { stores } from '../support/stores.ts'
import { asked, Browser, contentOf, decide, request, shop, startIssuer, startTwo, times } from './support.ts'

const base = '/api/auth/oidc'

/** A public client, an application on the device. */
const native = {
  metadata: {
    client_id: 'native',
    redirect_uris: ['com.example.shop:/callback'],
    application_type: 'native',
    token_endpoint_auth_method: 'none',
  },
}

/** The address at which an interaction goes on, from the one of its page. */
const resumeOf = ({ pathname }: URL): string => pathname.replace('/interaction/', '/authorize/')

/** Whether an answer leads to the client with a code. */
function codeIn(answer: Response): URL | undefined {
  const location = URL.parse(answer.headers.get('location') ?? '')
  return location?.searchParams.has('code') ? location : undefined
}

async function push(url: string, parameters: Readonly<Record<string, string>>): Promise<Response> {
  return await fetch(`${url}${base}/par`, { method: 'POST', body: new URLSearchParams(parameters) })
}

describe.each(stores)('on $name', ({ open }) => {
  test('of 30 resumes after one "Allow" one gives a code, over two instances', async () => {
    const { discoverBoth, newBrowser } = await startTwo(await open())
    const [browser, config] = [newBrowser(), await discoverBoth()]
    await browser.signIn()
    const { address, redeem } = await request(config)
    const page = await browser.open(address)
    const { sessionId, scopes } = contentOf(page.text)
    await browser.post(page.address.pathname, { allow: true, sessionId, scopes })
    const answers = await times(30, () => browser.fetch(resumeOf(page.address)))
    const codes = answers.flatMap((answer) => codeIn(answer) ?? [])
    expect(codes).toHaveLength(1)
    expect((await redeem(codes[0]!)).claims()?.aud).toBe('shop')
  })

  test('of 30 resumes before a decision one begins the next interaction', async () => {
    const { discoverBoth, newBrowser } = await startTwo(await open())
    const browser = newBrowser()
    await browser.signIn()
    const page = await browser.open((await request(await discoverBoth())).address)
    const answers = await times(30, () => browser.fetch(resumeOf(page.address)))
    expect(answers.map(({ status }) => status).sort()).toEqual([303, ...Array(29).fill(400)])
  })

  test('a pushed request that three browsers have opened gives one code, also after its 60 seconds', async () => {
    const { discoverBoth, newBrowser } = await startTwo(await open())
    const { href } = await client.buildAuthorizationUrlWithPAR(await discoverBoth(), asked)
    const browsers = [newBrowser(), newBrowser(), newBrowser()]
    for (const browser of browsers) await browser.signIn()
    const pages = await Promise.all(browsers.map((browser) => browser.open(href)))
    const answers: URL[] = []
    onTestFinished(() => void vi.useRealTimers())
    for (const [index, browser] of browsers.entries()) {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 66_000 })
      answers.push(await decide(browser, pages[index]!))
    }
    expect(answers.filter(({ searchParams }) => searchParams.has('code'))).toHaveLength(1)
  })
})

test('error pages are limited, whichever address makes them, and those of frames for the page around them', async () => {
  const { url } = await startIssuer([shop], { rateLimit: true, limits: { rates: { session: 4 } } })
  const open = async (path: string, headers: Record<string, string> = {}) =>
    await navigate(`${url}${base}/${path}`, { headers: { accept: 'text/html', ...headers } })
  const frame = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' }
  const inFrames = await times(5, () => open('authorize?client_id=nothing&prompt=none', frame))
  expect(inFrames.map(({ status }) => status).sort()).toEqual([400, 400, 400, 400, 429])
  for (const path of ['authorize?client_id=nothing', 'authorize/gone', 'interaction/gone', 'logout?id_token_hint=x']) {
    expect((await open(path)).status).toBe(400)
  }
  const refused = await open('authorize?client_id=nothing')
  expect([refused.status, contentOf(await refused.text())]).toEqual([429, { kind: 'failure', reason: 'RATE_LIMITED' }])
})

describe('a request that is stored before anyone has signed in counts', () => {
  const limits = { rateLimit: true, limits: { rates: { 'sign-in': 6 } } } as const

  /** Answers to navigations to an address, one after the other. */
  async function statuses(count: number, open: () => Promise<Response>): Promise<number[]> {
    const all: number[] = []
    for (let time = 0; time < count; time++) all.push((await open()).status)
    return all
  }

  test('at each of its steps', async () => {
    const { url } = await startIssuer([shop], limits)
    const browser = await Browser.signedIn(url)
    let page = await browser.open(`${base}/authorize?${new URLSearchParams(asked)}`)
    // The sign-in has taken two, and the request one.
    for (let left = 3; left > 0; left--) page = await browser.open(resumeOf(page.address))
    expect(contentOf(page.text)).toMatchObject({ kind: 'consent' })
    const refused = await browser.open(resumeOf(page.address))
    expect([refused.response.status, contentOf(refused.text)]).toEqual([
      429,
      { kind: 'failure', reason: 'RATE_LIMITED' },
    ])
    expect(Number(refused.response.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('also if it goes on behind the page of consent, as for an application on the device', async () => {
    const { url } = await startIssuer([native], { rateLimit: true, limits: { rates: { 'sign-in': 3 } } })
    const browser = await Browser.signedIn(url)
    const own = { client_id: 'native', redirect_uri: 'com.example.shop:/callback' }
    const page = await browser.open(`${base}/authorize?${new URLSearchParams({ ...asked, ...own })}`)
    const { sessionId, scopes } = contentOf(page.text)
    // The sign-in has taken two, and the request one.
    const { status, json } = await browser.post(page.address.pathname, { allow: true, sessionId, scopes })
    expect([status, json.code]).toEqual([429, 'RATE_LIMITED'])
  })

  test('but for images, frames and scripts of other pages, which store nothing', async () => {
    const { url } = await startIssuer([shop], limits)
    const address = `${url}${base}/authorize?${new URLSearchParams(asked)}`
    const foreign = { 'sec-fetch-site': 'cross-site' }
    for (const [mode, dest] of [
      ['no-cors', 'image'],
      ['navigate', 'iframe'],
      ['cors', 'empty'],
    ] as const) {
      const headers = { ...foreign, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest, accept: 'text/html' }
      expect(await statuses(8, () => navigate(address, { headers }))).toEqual(Array(8).fill(403))
    }
    // A page of another origin has used up what such pages have.
    const nonce = { method: 'POST', headers: { ...foreign, origin: 'https://evil.example' } }
    expect(await statuses(7, () => fetch(`${url}/api/auth/wallet/nonce`, nonce))).toContain(429)
    // A user comes from the application by a link, which is cross-site as well.
    expect(await statuses(7, () => navigate(address, { headers: foreign }))).toEqual([...Array(6).fill(303), 429])
  })

  test('and for a quiet request in a frame, which gets an answer and no page', async () => {
    const { url } = await startIssuer([shop], limits)
    const query = new URLSearchParams({ ...asked, prompt: 'none' })
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'iframe' }
    const answers = await times(8, () => navigate(`${url}${base}/authorize?${query}`, { headers }))
    const errors = answers.map((answer) => new URL(answer.headers.get('location') ?? '').searchParams.get('error'))
    expect(errors).toEqual(Array(8).fill('login_required'))
  })

  const pushedBy = async (url: string, parameters: Readonly<Record<string, string>> = {}) => {
    const own = { ...asked, ...parameters, client_secret: shop.metadata.client_secret }
    const { request_uri } = await (await push(url, own)).json()
    return `${base}/authorize?${new URLSearchParams({ client_id: 'shop', request_uri })}`
  }

  /** Opens an address that begins an interaction. Resolves with the address at which that goes on. */
  const begin = async (browser: Browser, path: string) =>
    resumeOf(new URL((await browser.fetch(path)).headers.get('location') ?? '', browser.url))

  test('also with a prompt=none that the library does not read', async () => {
    const { url } = await startIssuer([shop], limits)
    const query = new URLSearchParams(asked)
    const pushed = await pushedBy(url)
    const quiet = [`${pushed}&prompt=none`, `${base}/authorize??prompt=none&${query}`]
    for (const path of quiet) expect((await navigate(url, { path })).status).toBe(303)
    const browser = new Browser(url)
    let resume = await begin(browser, pushed)
    for (let left = 3; left > 0; left--) resume = await begin(browser, `${resume}?prompt=none`)
    for (const path of [...quiet, `${resume}?prompt=none`]) {
      expect((await navigate(url, { path, headers: { cookie: browser.cookie(path) } })).status).toBe(429)
    }
    // The library reads this one, as all that follows the question mark.
    const read = await navigate(url, { path: `${base}/authorize?${query}&x=#&prompt=none` })
    expect(read.headers.get('location')).toContain('error=login_required')
  })

  test('a pushed request for the client that has proven who it is, else for the network; none is a wrong secret', async () => {
    const { url } = await startIssuer([shop, native], limits)
    const own = { ...asked, client_secret: shop.metadata.client_secret }
    const wrong = { ...asked, client_secret: 'a wrong secret, as long as the right one' }
    const open = { ...asked, client_id: 'native', redirect_uri: 'com.example.shop:/callback' }
    const preflight = {
      method: 'OPTIONS',
      headers: { origin: 'https://shop.example', 'access-control-request-method': 'POST' },
    }
    expect(await statuses(8, () => fetch(`${url}${base}/par`, preflight))).toEqual(Array(8).fill(204))
    expect(await statuses(8, () => push(url, wrong))).toEqual(Array(8).fill(401))
    expect(await statuses(8, () => push(url, own))).toEqual(Array(8).fill(201))
    expect(await statuses(7, () => push(url, open))).toEqual([...Array(6).fill(201), 429])
    const refused = await push(url, open)
    expect(await refused.json()).toMatchObject({ error: 'temporarily_unavailable' })
    // The network's allowance is used up, and the client's is not.
    expect(await statuses(1, () => push(url, own))).toEqual([201])
  })

  /** An issuer, and the number of slots that are taken. */
  async function startCounting() {
    const { url, service } = await startIssuer([shop], { metrics: true })
    const held = async () =>
      Number(/^countersign_ceiling_in_use\{ceiling="nonces"\} (\d+)$/m.exec(await service.metrics())?.[1])
    return { url, held }
  }

  test('with a slot for each 2 KiB', async () => {
    const { url, held } = await startCounting()
    const open = (state: string) => navigate(`${url}${base}/authorize?${new URLSearchParams({ ...asked, state })}`)
    await open('x')
    expect(await held()).toBe(1)
    await open('x'.repeat(3_000))
    expect(await held()).toBe(1 + 2)
    // What is already stored counts as the longest parameters.
    const pushed = await pushedBy(url, { state: 'x'.repeat(3_000) })
    expect(await held()).toBe(1 + 2 + 2)
    const browser = new Browser(url)
    const resume = await begin(browser, pushed)
    expect(await held()).toBe(1 + 2 + 2 + 3)
    await begin(browser, resume)
    expect(await held()).toBe(1 + 2 + 2 + 3 + 3)
  })

  test('but for a refusal on a page, which takes no slot', async () => {
    const { url, held } = await startCounting()
    for (const path of ['authorize?client_id=nothing', 'authorize?request_uri=nothing', 'authorize/gone']) {
      expect((await navigate(`${url}${base}/${path}`)).status).toBe(400)
    }
    expect(await held()).toBe(0)
  })
})

describe('parameters longer than 4 KiB', () => {
  const long = {
    'a state': { state: 'x'.repeat(4_000) },
    'a nonce': { nonce: 'x'.repeat(4_000) },
    'control characters': { state: '\u0001'.repeat(700) },
    'many together': { state: 'x'.repeat(2_000), nonce: 'x'.repeat(1_000), login_hint: 'x'.repeat(1_000) },
  }

  const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: vi.fn() }
  const secret = { client_secret: shop.metadata.client_secret }

  test('are refused in a request and in a pushed one, and are no failure', async () => {
    const { url } = await startIssuer([shop], { logger })
    for (const [name, parameters] of Object.entries(long)) {
      const all = { ...asked, ...parameters }
      const page = await new Browser(url).open(`${base}/authorize?${new URLSearchParams(all)}`)
      expect([name, page.response.status, page.address.origin]).toEqual([name, 400, url])
      expect(contentOf(page.text)).toMatchObject({ kind: 'error', error: 'invalid_request' })
      const pushed = await push(url, { ...all, ...secret })
      expect([name, pushed.status, await pushed.json()]).toMatchObject([name, 400, { error: 'invalid_request' }])
    }
    const body = `${new URLSearchParams({ ...asked, ...secret })}&state=${'\u0001'.repeat(15_000)}`
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const pushed = await fetch(`${url}${base}/par`, { method: 'POST', headers, body })
    expect([pushed.status, await pushed.json()]).toMatchObject([400, { error: 'invalid_request' }])
    expect(logger.error).not.toHaveBeenCalled()
  })
})
