import type { Locator, Page } from 'playwright-core'
import nacl from 'tweetnacl'
import { verifyMessage } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { iPhone } from './phones.ts'
import { expectNoFaults, hasBrowser, look, tap, useBrowser } from './support.ts'
import { type ChooserPage, serveChooser } from './wallet-chooser-page.ts'

const text = 'Text zum Unterschreiben'
const square = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><rect width="1" height="1" fill="orange"/></svg>')}`
const fox = JSON.stringify({ name: 'Fox', rdns: 'io.example.fox', icon: square })

const status = (page: Page): Locator => page.locator('[part=status]')
const hint = (page: Page): Locator => page.locator('[part=hint]')
const wallet = (page: Page, name: string | RegExp): Locator =>
  page.getByRole('list', { name: 'Wallets' }).getByRole('button', { name })
const names = (page: Page): Promise<string[]> => page.locator('[part=name]').allTextContents()

// biome-ignore lint/suspicious/noExplicitAny: what the page kept.
const seen = (page: Page): Promise<any[]> => page.evaluate('globalThis.seen')

/** Waits for what the page keeps under a name. */
// biome-ignore lint/suspicious/noExplicitAny: what the page kept.
async function kept(page: Page, name: string): Promise<any> {
  await expect.poll(async () => (await seen(page)).some((entry) => name in entry)).toBe(true)
  return (await seen(page)).find((entry) => name in entry)
}

describe.runIf(hasBrowser)('<countersign-wallets> in Chromium', () => {
  const browser = useBrowser()
  let site: ChooserPage & { close(): void }
  beforeAll(async () => {
    site = await serveChooser()
  })
  afterAll(() => site?.close())

  /** A page with wallets of the test's in it. */
  async function open(injected: string, options?: string, context?: Parameters<typeof browser.open>[0]) {
    const { page, trail } = await browser.open(context)
    await site.inject(page.context(), injected)
    await site.open(page, options)
    return { page, trail }
  }

  test('lists wallets of both kinds; the one that is chosen signs, asked in the user gesture', async () => {
    const { page, trail } = await open(`announce(${fox}); register()`)
    await expect.poll(() => names(page)).toEqual(['Fox', 'Test Solana'])
    expect(await status(page).textContent()).toBe('Choose your wallet.')
    expect(await wallet(page, 'Fox Ethereum').count()).toBe(1)

    await wallet(page, 'Fox').click()
    const ethereum = await kept(page, 'signature')
    expect(await kept(page, 'chosen')).toEqual({ chosen: 'eip6963:io.example.fox', inGesture: true })
    const signature = ethereum.signature.join('') as `0x${string}`
    expect(await verifyMessage({ address: ethereum.account.address, message: text, signature })).toBe(true)

    await page.evaluate('globalThis.seen = []')
    await wallet(page, 'Test Solana').click()
    const solana = await kept(page, 'signature')
    const [signed, key] = [Uint8Array.from(solana.signature), Uint8Array.from(solana.key)]
    expect(nacl.sign.detached.verify(new TextEncoder().encode(text), signed, key)).toBe(true)
    expectNoFaults(trail)
  })

  test('says that the user declined, and what a slow wallet answers at last', async () => {
    const { page } = await open(
      `const provider = announce(${fox})
       globalThis.answer = Promise.withResolvers()
       provider.onAsked = () => globalThis.answer.promise`,
    )
    await wallet(page, 'Fox').click()
    await kept(page, 'chosen')
    expect(await seen(page)).toHaveLength(1)
    await page.evaluate('answer.reject({ code: 4001, message: "" })')
    expect(await kept(page, 'code')).toEqual({ code: 'WALLET_DECLINED' })

    await page.evaluate('globalThis.seen = []; globalThis.answer = Promise.withResolvers()')
    await wallet(page, 'Fox').click()
    await kept(page, 'chosen')
    await page.evaluate('answer.resolve()')
    expect(await kept(page, 'signature')).toHaveProperty('account')
  })

  test('looks on for wallets that come late, and drops those that leave', async () => {
    const { page } = await browser.open()
    await page.clock.install()
    await site.inject(page.context(), '')
    await site.open(page)
    await status(page).filter({ hasText: 'Looking for wallets …' }).waitFor()
    expect(await hint(page).isVisible()).toBe(false)
    await page.clock.fastForward(2000)
    await status(page).filter({ hasText: 'No wallet found in this browser.' }).waitFor()
    await hint(page).filter({ hasText: 'Install one for this browser' }).waitFor()

    await page.evaluate('register()')
    await wallet(page, 'Test Solana').waitFor()
    await page.evaluate(`announce(${fox})`)
    await expect.poll(() => names(page)).toEqual(['Test Solana', 'Fox'])
    expect(await status(page).textContent()).toBe('Choose your wallet.')
    await page.evaluate('unregister()')
    await expect.poll(() => names(page)).toEqual(['Fox'])
    await page.evaluate('finder.stop(); register()')
    expect(await names(page)).toEqual(['Fox'])
  })

  test('without a wallet of the browser, what can be used all the same is not said to be missing', async () => {
    const demo =
      "{ id: 'demo', name: 'Demo wallet', adapterId: 'nimiq', kind: 'demo', connect: () => ({ sign: () => ({}) }) }"
    for (const [device, said] of [
      [{}, 'No wallet extension found. You can still use:'],
      [iPhone, 'Choose your wallet.'],
    ] as const) {
      const { page } = await open('', `{ finder: { extra: [${demo}] } }`, device)
      await status(page).filter({ hasText: said }).waitFor()
      // What to do about it comes after what there is.
      const boxes = [await wallet(page, 'Demo wallet').boundingBox(), await hint(page).boundingBox()]
      expect(boxes[0]!.y).toBeLessThan(boxes[1]!.y)
    }
  })

  test('in Nimiq Pay waits for the provider, which comes late', async () => {
    const { page } = await browser.open(iPhone)
    await page.clock.install()
    await site.inject(page.context(), 'globalThis.nimiqPay = { language: "en" }')
    await site.open(page, '{ address: "https://auth.example/cross-device/continue/csh_1" }')
    await page.clock.fastForward(9000)
    await status(page).filter({ hasText: 'Looking for wallets …' }).waitFor()
    await page.evaluate(
      'globalThis.nimiq = { listAccounts() {}, sign: async () => ({ publicKey: [1], signature: [2] }) }',
    )
    await page.clock.fastForward(200)
    await wallet(page, 'Nimiq Pay Nimiq').click()
    expect(await kept(page, 'signature')).toMatchObject({ key: [1], signature: [2] })
    // It is the app that the page is in.
    expect(await page.getByRole('link', { name: 'Open in Nimiq Pay' }).count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Open in MetaMask' }).count()).toBe(1)
  })

  test('in a Nimiq Pay without a provider stops saying that it looks', async () => {
    const { page } = await browser.open(iPhone)
    await page.clock.install()
    await site.inject(page.context(), 'globalThis.nimiqPay = {}')
    await site.open(page)
    await page.clock.fastForward(11_000)
    await status(page).filter({ hasText: 'No wallet found' }).waitFor()
    await hint(page).filter({ hasText: 'Open this page in the browser of your wallet’s app.' }).waitFor()
  })

  test('tells wallets of one name apart, and lists each once', async () => {
    const { page } = await open(`
      const provider = announce(${fox})
      announce({ ...${fox}, name: "Fuchs" }, provider)
      announce(${fox})
      announce({ ...${fox}, rdns: 'io.example.other' })
      register(); register()
    `)
    await expect.poll(() => names(page)).toEqual(['Fox', 'Fox', 'Test Solana', 'Test Solana'])
    const about = await page.locator('[part=about]').allTextContents()
    expect(about).toEqual(['Ethereum · io.example.fox', 'Ethereum · io.example.other', 'Solana · #1', 'Solana · #2'])
  })

  test('no announcement keeps a later one from being heard, loads anything or becomes markup', async () => {
    const { page, trail } = await open(`
      const shout = (detail) => {
        const dispatch = () => dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }))
        addEventListener('eip6963:requestProvider', dispatch)
      }
      shout(null); shout({}); shout({ info: {} }); shout('wallet'); shout({ info: null, provider: {} })
      shout({ info: { uuid: '1', name: 'No function' }, provider: { request: 1 } })
      shout({ get info() { throw new Error('hostile') } })
      shout({ info: { get name() { throw new Error('hostile') } }, provider: { request() {} } })
      addEventListener('wallet-standard:app-ready', ({ detail }) => {
        for (const broken of [{}, null, { chains: 1, features: {} }, { chains: ['solana:mainnet'], features: {} }]) detail.register(broken)
        detail.register({ get chains() { throw new Error('hostile') } })
      })
      announce({ name: '<img src=x onerror=alert(1)>', rdns: '<b>', icon: 'https://tracker.example/a.png' })
      announce({ name: '\\u202eksaMateM', rdns: 'a', icon: 'javascript:alert(1)' })
      announce({ name: 'No icon', rdns: 'b', icon: 'data:image/png;base64,AAAA' })
      register()
      announce(${fox})
    `)
    await expect
      .poll(() => names(page))
      .toEqual(['<img src=x onerror=alert(1)>', 'ksaMateM', 'No icon', 'Fox', 'Test Solana'])
    await expect.poll(() => page.locator('[part=icon]').allTextContents()).toEqual(['<', 'K', 'N', '', ''])
    expect(trail.requests.filter(({ url }) => !/^(http:\/\/localhost|data:image)/.test(url))).toEqual([])
    expectNoFaults(trail)
  })

  test('finds only wallets of the adapters that the service has', async () => {
    const { page } = await open(`announce(${fox}); register()`, "{ finder: { adapterIds: ['solana'] } }")
    await expect.poll(() => names(page)).toEqual(['Test Solana'])
  })

  test('is worked by keyboard, and keeps the focus where it is when wallets come and go', async () => {
    const demo =
      "{ id: 'demo', name: 'Demo wallet', adapterId: 'nimiq', kind: 'demo', connect: () => ({ sign: () => ({}) }) }"
    const { page } = await open('', `{ finder: { extra: [${demo}] } }`)
    await page.keyboard.press('Tab')
    const focused = wallet(page, 'Demo wallet For trying this out, not a real one')
    expect(await focused.evaluate((button) => button.matches(':focus-visible'))).toBe(true)
    await page.evaluate(`announce(${fox}); register()`)
    await expect.poll(() => names(page)).toEqual(['Fox', 'Test Solana', 'Demo wallet'])
    expect(await focused.evaluate((button) => button.matches(':focus'))).toBe(true)
    await page.keyboard.press('Enter')
    expect(await kept(page, 'chosen')).toEqual({ chosen: 'demo', inGesture: true })
  })

  test('marks the wallet that is chosen, and lets none be chosen while it is disabled', async () => {
    const { page } = await open(
      `announce(${fox}); register()`,
      "{ selected: 'eip6963:io.example.fox', disabled: true }",
    )
    await wallet(page, 'Test Solana').waitFor()
    expect(await wallet(page, 'Fox').getAttribute('aria-current')).toBe('true')
    expect(await wallet(page, 'Test Solana').getAttribute('aria-current')).toBeNull()
    expect(await wallet(page, 'Fox').getAttribute('aria-disabled')).toBe('true')
    await wallet(page, 'Fox').click({ force: true })
    await page.evaluate("document.querySelector('countersign-wallets').disabled = false")
    await wallet(page, 'Test Solana').click()
    expect(await kept(page, 'chosen')).toMatchObject({ chosen: 'wallet-standard:Test Solana' })
  })

  describe('on a phone', () => {
    const address = 'https://auth.example/cross-device/continue/csh_1'

    test('links to wallet apps that the service can verify', async () => {
      const { page } = await open('', `{ address: '${address}', adapterIds: ['solana'] }`, iPhone)
      await expect
        .poll(() => page.locator('[part=app]').allTextContents())
        .toEqual(['Open in Phantom', 'Open in Solflare'])
      const link = page.getByRole('link', { name: 'Open in Phantom' })
      const encoded = encodeURIComponent(address)
      const target = `https://phantom.app/ul/browse/${encoded}?ref=https%3A%2F%2Fauth.example`
      expect(await link.getAttribute('href')).toBe(target)
      await page.route('https://phantom.app/**', (route) => route.fulfill({ body: 'opened' }))
      await tap(link)
      await page.waitForURL(target)
    })

    test('makes the address when the user taps, and offers it for a second tap for a while', async () => {
      const { page } = await browser.open(iPhone)
      await page.clock.install()
      await site.inject(page.context(), '')
      // As when the app opens: the browser stays where it is.
      await page.route('https://link.metamask.io/**', (route) => route.fulfill({ status: 204 }))
      await site.open(
        page,
        '{ address: async () => "https://auth.example/continue/" + (globalThis.made1 = (globalThis.made1 ?? 0) + 1) }',
      )
      const asked = page.waitForRequest('https://link.metamask.io/dapp/auth.example/continue/1')
      await tap(page.getByRole('button', { name: 'Open in MetaMask' }))
      await asked
      expect(await kept(page, 'opened')).toEqual({ opened: 'metamask' })
      await page.getByText('If the app didn’t open, tap again.').waitFor()
      const link = page.getByRole('link', { name: 'Open in MetaMask' })
      expect(await link.getAttribute('href')).toBe('https://link.metamask.io/dapp/auth.example/continue/1')

      await page.clock.fastForward(60_000)
      await link.waitFor({ state: 'detached' })
      const again = page.waitForRequest('https://link.metamask.io/dapp/auth.example/continue/2')
      await tap(page.getByRole('button', { name: 'Open in MetaMask' }))
      await again
    })

    test('says that the address could not be made', async () => {
      const { page } = await open('', "{ address: () => Promise.reject(new Error('gone')) }", iPhone)
      await tap(page.getByRole('button', { name: 'Open in Trust Wallet' }))
      expect(await kept(page, 'failed')).toEqual({ failed: 'trust' })
      await page.getByText('Something went wrong. Try again.').waitFor()
    })

    test('has no links without an address; on a computer there are none either', async () => {
      const onPhone = await open(`announce(${fox})`, '{}', iPhone)
      await wallet(onPhone.page, 'Fox').waitFor()
      expect(await onPhone.page.locator('[part=app]').count()).toBe(0)
      const onComputer = await open(`announce(${fox})`, `{ address: '${address}' }`)
      await wallet(onComputer.page, 'Fox').waitFor()
      expect(await onComputer.page.locator('[part=app]').count()).toBe(0)
    })
  })

  test('looks right with long and right-to-left names, in German, light, dark and narrow', async () => {
    const demo = "{ id: 'demo', name: 'Demo-Wallet', adapterId: 'nimiq', kind: 'demo', connect() {} }"
    const { page, trail } = await open(
      `announce(${fox})
       announce({ name: 'Donaudampfschifffahrtsgesellschaftswallet mit sehr langem Namen und mehr', rdns: 'a', icon: '' })
       announce({ name: 'محفظة الاختبار (ETH)', rdns: 'b', icon: '' })
       register()`,
      `{ language: 'de', address: 'https://auth.example/x', selected: 'wallet-standard:Test Solana', finder: { extra: [${demo}] } }`,
      iPhone,
    )
    await status(page).filter({ hasText: 'Wähle deine Wallet.' }).waitFor()
    await page.getByRole('link', { name: 'In Phantom öffnen' }).waitFor()
    await page.locator('[part=icon] img').first().waitFor()
    await look(page, 'wallets')
    expectNoFaults(trail)
  })
})
