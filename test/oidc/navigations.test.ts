import { describe, expect, test } from 'vitest'
import { BrowserCookies } from '../../src/oidc/browser-cookies.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { navigate } from '../support/navigate.ts'
import { inMemory } from '../support/ordinary-store.ts'
import { makeWallet } from '../support/wallet.ts'
import { asked, Browser, contentOf, decide, shop, startIssuer, times } from './support.ts'

const base = '/api/auth/oidc'

describe('a browser', () => {
  const own = ({ cookies }: Browser) => [...cookies.values()].filter(({ name }) => name.includes('countersign_oidc'))

  test('has one cookie, however many requests are open, and stays signed in', async () => {
    const { url } = await startIssuer()
    const browser = await Browser.signedIn(url)
    const address = `${base}/authorize?${new URLSearchParams(asked)}`
    const first = await browser.open(address)
    for (let count = 0; count < 198; count++) await browser.fetch(address)
    const last = await browser.open(address)
    expect(browser.cookies.size).toBe(2)
    expect(own(browser)).toHaveLength(1)
    const answers = [await decide(browser, first), await decide(browser, last)]
    expect(answers.map(({ searchParams }) => searchParams.has('code'))).toEqual([true, true])
  })

  test.each([
    ['each as soon as it can', (open: (index: number) => Promise<unknown>) => times(40, open)],
    [
      'the first answer of each before the second request of any',
      async (open: (index: number) => Promise<unknown>, first: (index: number) => Promise<unknown>) => {
        await times(40, first)
        await times(40, open)
      },
    ],
  ])('opens 40 tabs at once, %s: all of them work, and few cookies are left', async (_, run) => {
    const { url } = await startIssuer([shop], inMemory)
    const browser = await Browser.signedIn(url)
    const began: string[] = Array(40).fill(`${base}/authorize?${new URLSearchParams(asked)}`)
    const pages: Awaited<ReturnType<Browser['open']>>[] = []
    await run(
      async (index) => {
        pages[index] = await browser.open(began[index]!)
      },
      async (index) => {
        began[index] = (await browser.fetch(began[index]!)).headers.get('location')!
      },
    )
    // An answer that comes late can bring an older cookie than those that its tabs kept: one too many until a next look.
    if (own(browser).length > 5) await times(40, (index) => browser.open(pages[index]!.address.href))
    expect(own(browser).length).toBeLessThanOrEqual(5)
    const answers = await times(40, (index) => decide(browser, pages[index]!))
    expect(answers.filter(({ searchParams }) => searchParams.has('code'))).toHaveLength(40)
  })

  test('that sends 480 cookies is recognised by the 50 that come first', () => {
    const cookies = new BrowserCookies(true)
    const made = Array.from({ length: 480 }, (_unused, index) => cookies.make(Date.now() + index))
    const found = cookies.in(made.map(({ name, secret }) => `${name}=${secret}`).join('; '))
    expect(found).toEqual(made.slice(0, 50))
  })
})

describe('what a browser opens as a page', () => {
  /** Every address of the issuer that is a page, or leads to one, of a browser that is signed in. */
  async function open(options: CountersignOptions = {}) {
    const { url } = await startIssuer([{ ...shop, first_party: true }], options)
    const browser = await Browser.signedIn(url)
    const interaction = await browser.fetch(`${base}/authorize?${new URLSearchParams({ ...asked, prompt: 'consent' })}`)
    const path = interaction.headers.get('location') ?? ''
    const addresses = {
      authorize: `${base}/authorize?${new URLSearchParams({ ...asked, response_mode: 'form_post' })}`,
      resume: path.replace('/interaction/', '/authorize/'),
      interaction: path,
      logout: `${base}/logout?client_id=shop&state=x`,
    }
    return { url, browser, addresses }
  }

  test('is nothing for scripts, images and frames', async () => {
    const { browser, addresses } = await open()
    for (const [name, address] of Object.entries(addresses)) {
      for (const [mode, dest] of [
        ['cors', 'empty'],
        ['cors', 'document'],
        ['no-cors', 'image'],
        ['navigate', 'iframe'],
        ['navigate', 'object'],
        ['navigate', 'embed'],
      ]) {
        const headers = { 'sec-fetch-mode': mode!, 'sec-fetch-dest': dest!, accept: '*/*' }
        const answer = await browser.fetch(address, { headers })
        expect([name, mode, dest, answer.status, (await answer.json()).code]).toEqual([
          name,
          mode,
          dest,
          403,
          'ORIGIN_NOT_TRUSTED',
        ])
      }
    }
    for (const [name, address] of Object.entries(addresses)) {
      expect([name, (await browser.fetch(address)).status]).toEqual([
        name,
        name === 'resume' ? 303 : name === 'interaction' ? 400 : 200,
      ])
    }
  })

  test.each([
    ['by its Host header', {}, { host: 'app.example' }],
    ['by that of a proxy', { trustProxy: 1 }, { 'x-forwarded-host': 'app.example', 'x-forwarded-proto': 'https' }],
  ] as const)(
    'is opened at the issuer’s own host: one that comes for another, %s, is sent there',
    async (_, options, headers) => {
      const { url, browser, addresses } = await open(options)
      for (const [name, address] of Object.entries(addresses)) {
        const answer = await browser.fetch(address, { headers })
        expect([name, answer.status, answer.headers.get('location')]).toEqual([name, 303, url + address])
        expect(answer.headers.getSetCookie()).toEqual([])
      }
    },
  )
})

test('a sign-out that comes as a form of an application goes on as a navigation, with the same parameters', async () => {
  const { url } = await startIssuer()
  const browser = await Browser.signedIn(url)
  const parameters = { client_id: 'shop', post_logout_redirect_uri: 'https://shop.example/bye', state: 'a+b&c=d ü' }
  const form = { method: 'POST', headers: { origin: 'https://shop.example' }, body: new URLSearchParams(parameters) }
  const answer = await browser.fetch(`${base}/logout`, form)
  expect(answer.status).toBe(303)
  const page = await browser.open(answer.headers.get('location') ?? '')
  const { kind, ticket } = contentOf(page.text)
  expect(kind).toBe('logout')
  const { json } = await browser.post(page.address.pathname, { ticket })
  expect(Object.fromEntries(new URL(json.redirectTo).searchParams)).toEqual({ state: parameters.state })
})

test('the sign-in page names a wallet that an adapter reads, and no other text', async () => {
  const { url } = await startIssuer()
  const { address } = makeWallet()
  const open = async (wallet: string) => {
    const answer = await navigate(`${url}/api/auth/sign-in?${new URLSearchParams({ returnTo: '/x', wallet })}`)
    return answer.status === 200 ? wallet : answer.headers.get('location')
  }
  for (const wallet of [`nimiq:${address}`, `nimiq:${address.replaceAll(' ', '')}`, `ed25519:${address}`]) {
    expect(await open(wallet)).toBe(wallet)
  }
  // A digit for a digit, a letter for a letter: one for the other can keep the check digits right.
  const [end = '', other = ''] = /\d$/.test(address) ? ['0', '1'] : ['X', 'Y']
  const otherEnd = address.endsWith(end) ? other : end
  const texts = [
    'Send it all to this address',
    'NQ07 send',
    address.slice(0, -1) + otherEnd,
    `${address} now`,
    '0x00',
    '',
  ]
  for (const text of [...texts.map((each) => `nimiq:${each}`), 'Please: send', `ethereum:0x${'0'.repeat(40)}`]) {
    expect(await open(text)).toBe('/api/auth/sign-in?returnTo=%2Fx')
  }
})
