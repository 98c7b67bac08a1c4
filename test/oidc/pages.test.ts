import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { makeWallet } from '../support/wallet.ts'
import { asked, Browser, connect, contentOf, decide, discover, request, shop, startIssuer } from './support.ts'

const base = '/api/auth/oidc'
const home = 'https://shop.example'
const tulips = { name: 'Tulip Shop', home }

/** Pushes a request. Resolves with the address that a browser opens for it. */
async function push(url: string, parameters: Record<string, string>): Promise<string> {
  const body = new URLSearchParams({ ...asked, client_secret: shop.metadata.client_secret, ...parameters })
  const { request_uri } = await (await fetch(`${url}${base}/par`, { method: 'POST', body })).json()
  return `${base}/authorize?${new URLSearchParams({ client_id: asked.client_id, request_uri })}`
}

test('an error is a code and names, and no text of the library', async () => {
  const { url } = await startIssuer()
  const wrong = (changes: Record<string, string>) => `authorize?${new URLSearchParams({ ...asked, ...changes })}`
  const paths = [
    'authorize',
    'authorize/unknown',
    'interaction/unknown',
    'logout?id_token_hint=x',
    'logout?client_id=unknown',
    'logout?client_id=shop&post_logout_redirect_uri=https://evil.example',
    wrong({ client_id: 'unknown' }),
    wrong({ client_id: '<script>"' }),
    wrong({ redirect_uri: 'https://evil.example/' }),
    wrong({ redirect_uri: '' }),
    wrong({ state: 'x'.repeat(5_000) }),
    'authorize?client_id=shop&request_uri=urn:ietf:params:oauth:request_uri:unknown',
    `${wrong({})}&client_id=shop`,
  ]
  for (const path of paths) {
    const { text } = await new Browser(url).open(`${base}/${path}`)
    expect(text).not.toContain('<script>"')
    const { kind, client: shown = tulips, sent = '', locales: _, ...others } = contentOf(text)
    expect([path, kind]).toEqual([path, expect.stringMatching(/^(error|over)$/)])
    expect([path, shown]).toEqual([path, tulips])
    expect(['', 'https://evil.example/']).toContain(sent)
    expect([path, others]).toEqual([path, kind === 'over' ? {} : { error: expect.stringMatching(/^[a-z_]+$/) }])
  }
})

test.each<[string, Partial<Record<'client_uri' | 'redirect_uris', unknown>>, string | undefined]>([
  ['its own address', { client_uri: 'https://tulips.example/shop' }, 'https://tulips.example/shop'],
  ['the origin of its redirect URI, if its own is none of the web', { client_uri: 'http://tulips.example' }, home],
  ['nowhere, if it is on the device', { redirect_uris: ['http://127.0.0.1/callback'] }, undefined],
])('people find an application at %s', async (_, changes, expected) => {
  const metadata = { ...shop.metadata, application_type: changes.redirect_uris ? 'native' : 'web', ...changes }
  const { url } = await startIssuer([{ metadata }])
  const { text } = await new Browser(url).open(`${base}/authorize?client_id=shop&redirect_uri=https://evil.example`)
  expect(contentOf(text).client).toEqual({ name: 'Tulip Shop', home: expected })
})

test('an error of a pushed request is in its languages, also once that is used up', async () => {
  const { url } = await startIssuer()
  const address = await push(url, { ui_locales: 'de fr' })
  const browser = await Browser.signedIn(url)
  await decide(browser, await browser.open(address))
  expect(contentOf((await browser.open(address)).text)).toEqual({ kind: 'over', client: tulips, locales: 'de fr' })
})

describe('at the page of consent,', () => {
  test.each([
    ['a plain request', {}],
    ['a request for a new sign-in', { prompt: 'login consent' }],
    ['a request for a wallet', { login_hint: 'first' }],
    ['a request in a language', { ui_locales: 'de' }],
  ])('another wallet is one sign-in away, for %s', async (_, parameters: Record<string, string>) => {
    const { url } = await startIssuer()
    const [browser, config, first, second] = [new Browser(url), await discover(url), makeWallet(), makeWallet()]
    const hint = parameters.login_hint === undefined ? {} : { login_hint: `nimiq:${first.address}` }
    const { address, redeem } = await request(config, { ...parameters, ...hint })
    const signIn = await browser.open(address)
    await browser.signIn(first)
    const page = await browser.open(signIn.address.searchParams.get('returnTo') ?? '')
    expect(contentOf(page.text)).toMatchObject({ kind: 'consent', wallet: { address: first.address } })

    const other = new URL(String(contentOf(page.text).signIn), url)
    expect(other.pathname).toBe('/api/auth/sign-in')
    expect(other.searchParams.get('again')).toBe('1')
    expect(other.searchParams.get('ui_locales')).toBe(parameters.ui_locales ?? null)
    const { session } = await browser.signIn(second)
    const again = await browser.open(other.searchParams.get('returnTo') ?? '')
    expect(contentOf(again.text)).toMatchObject({
      kind: 'consent',
      wallet: { address: second.address },
      client: tulips,
    })
    const tokens = await redeem(await decide(browser, again))
    expect(tokens.claims()?.sub).toBe(session.userId)
  })
})

test('a sign-out shows the application that asks for it, and the wallet', async () => {
  const { url } = await startIssuer()
  const { browser, config, tokens, wallet } = await connect(url)
  const open = async (parameters: Record<string, string>) =>
    contentOf((await browser.open(client.buildEndSessionUrl(config, parameters).href)).text)
  const shown = { adapterId: 'nimiq', address: wallet.address }
  const own = { kind: 'logout', client: tulips, wallet: shown, ticket: expect.any(String) }
  expect(await open({ id_token_hint: tokens.id_token ?? '' })).toEqual(own)
  expect(contentOf((await browser.open(`${base}/logout`)).text)).toMatchObject({
    kind: 'logout',
    wallet: shown,
  })
  expect(contentOf((await new Browser(url).open(`${base}/logout`)).text)).toEqual({ kind: 'signed-out' })
  expect(contentOf((await new Browser(url).open(`${base}/logout?client_id=shop`)).text)).toEqual({
    kind: 'signed-out',
    client: tulips,
  })
})
