import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { phoneClient } from './client/phone.ts'
import { servePage } from './element/page.ts'
import { iPhone } from './phones.ts'
import { expectAccessible, expectNoFaults, hasBrowser, provokes, scan, tap, useBrowser } from './support.ts'
import { bundle } from './wallet-chooser-page.ts'
import { injectEthereum } from './wallets/ethereum.ts'
import { expectAsked, serveHub } from './wallets/hub.ts'
import { injectSolana } from './wallets/solana.ts'

const patient = { timeout: 15_000 }

const button = (page: Page, name: string | RegExp): Locator => page.getByRole('button', { name })
const thisDevice = (page: Page): Locator => button(page, 'Use a wallet on this device')
const code = (page: Page): Locator => page.getByRole('img', { name: 'QR code for your phone' })
const says = (page: Page, text: string): Promise<void> => page.getByRole('status').filter({ hasText: text }).waitFor()
const names = (page: Page): Promise<string[]> => page.locator('[part=name]').allTextContents()

// biome-ignore lint/suspicious/noExplicitAny: what the page kept.
const seen = (page: Page): Promise<any[]> => page.evaluate('globalThis.seen')

/** The details of an event that the page has seen. */
// biome-ignore lint/suspicious/noExplicitAny: what the page kept.
async function detailsOf(page: Page, name: string): Promise<any[]> {
  return (await seen(page)).filter(({ type }) => type === `countersign:${name}`).map(({ detail }) => detail)
}

/** The detail of the first event with this name, once it is there. */
// biome-ignore lint/suspicious/noExplicitAny: what the page kept.
async function detailOf(page: Page, name: string): Promise<any> {
  await expect.poll(async () => (await detailsOf(page, name)).length, patient).toBeGreaterThan(0)
  return (await detailsOf(page, name))[0]
}

/** The codes of the errors that the page was told. An error has no fields of its own that would reach the test. */
const errorCodes = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    (Reflect.get(globalThis, 'seen') as { type: string; detail: { error: { code: string } } }[])
      .filter(({ type }) => type === 'countersign:error')
      .map(({ detail }) => detail.error.code),
  )

describe.skipIf(!hasBrowser)('<countersign-sign-in> with a wallet on this device', () => {
  const browser = useBrowser()

  async function setUp(options: CountersignOptions = {}, screen?: BrowserContextOptions) {
    const site = await servePage()
    const settings: CountersignOptions = {
      adapters: ['nimiq', 'ethereum', 'solana'],
      pages: { demoWallet: false },
      ...options,
    }
    const trustedOrigins = [site.origin, ...(options.trustedOrigins ?? [])]
    const { url } = await startService({ ...settings, trustedOrigins })
    const { page, trail } = await browser.open(screen)
    const loaded = (): string[] =>
      trail.requests.map((request) => request.url).filter((one) => /device-sign-in/.test(one))
    const started = (): string[] =>
      trail.requests.map((request) => request.url).filter((one) => /device\/start/.test(one))
    const wallet = makeWallet()
    const phone = phoneClient(url, wallet)
    const show = (attributes = '', scripts?: string): Promise<void> =>
      site.show(page, `<countersign-sign-in base-url="${url}" ${attributes}></countersign-sign-in>`, url, scripts)
    return { site, url, page, trail, context: page.context(), loaded, started, phone, wallet, show }
  }

  test('of Ethereum signs in; declined, it can be chosen again; the order of the QR code is cancelled', async () => {
    const { page, trail, context, loaded, phone, show } = await setUp()
    const fox = await injectEthereum(context)
    await injectSolana(context)
    await show('token-storage-key="countersign.token" return-to="/desk"')
    await code(page).waitFor()
    const claimUrl = await scan(code(page))
    expect(loaded()).toEqual([])

    await thisDevice(page).click()
    await expect.poll(() => names(page), patient).toEqual(['Test Fox', 'Test Ghost'])
    expect(loaded()).toHaveLength(1)
    expect(await thisDevice(page).getAttribute('aria-expanded')).toBe('true')
    expect(await code(page).isVisible()).toBe(true)
    await expectAccessible(page, 'wallets')

    // The choice is the element's own: a page may have a list of wallets besides.
    await page.evaluate(() => addEventListener('countersign:wallet', () => Reflect.set(globalThis, 'hasHeard', true)))
    fox.connects = 'decline'
    await button(page, 'Test Fox').click()
    await says(page, 'You declined in your wallet.')
    expect(await errorCodes(page)).toEqual(['WALLET_DECLINED'])
    await expectAccessible(page, 'declined')
    fox.connects = 'sign'
    fox.signs = 'wait'
    await button(page, 'Test Fox').click()
    await says(page, 'Confirm in Test Fox.')
    await expect.poll(() => fox.asked.length, patient).toBe(1)
    fox.release()

    const detail = await detailOf(page, 'signed-in')
    const { address } = fox.account
    expect(detail).toMatchObject({ ok: true, kind: 'login', redirectTo: '/desk', session: { address } })
    expect(detail).not.toHaveProperty('orderId')
    expect(await page.evaluate('localStorage.getItem("countersign.token")')).toBe(detail.token)
    await says(page, 'You’re signed in.')
    expect(await thisDevice(page).count()).toBe(0)
    expect(await page.evaluate('globalThis.hasHeard')).toBeUndefined()
    expect(await names(page)).toEqual([])
    await expect.poll(() => phone.claimOrder(claimUrl).catch((error) => error.code), patient).toBe('ORDER_CANCELLED')
    expectNoFaults(trail)
  })

  test('of Solana signs in, in the dark, where nothing is stored and nowhere else is led to', async () => {
    provokes(/400 .*start/)
    const { url, page, trail, context, show } = await setUp({}, { colorScheme: 'dark' })
    const fox = await injectEthereum(context)
    const ghost = await injectSolana(context)
    await show('adapter-ids="nimiq, solana" return-to="//evil.example/"')
    await thisDevice(page).click()
    await button(page, 'Test Ghost').waitFor()
    expect(await names(page)).toEqual(['Test Ghost'])
    await expectAccessible(page, 'wallets in the dark')
    await button(page, 'Test Ghost').click()
    const detail = await detailOf(page, 'signed-in')
    expect(detail).toMatchObject({ redirectTo: '/', session: { address: ghost.address, adapterId: 'solana' } })
    expect(await page.evaluate('localStorage.length')).toBe(0)
    expect(await page.context().cookies(url)).toMatchObject([{ httpOnly: true }])
    expect(fox.asked).toEqual([])
    expectNoFaults(trail)
  })

  test('that never answers gives way to another one, and what it signs later counts for nothing', async () => {
    const { page, context, show } = await setUp()
    const fox = await injectEthereum(context)
    const ghost = await injectSolana(context)
    fox.signs = 'wait'
    await show()
    await thisDevice(page).click()
    await button(page, 'Test Fox').click()
    await expect.poll(() => fox.asked.length, patient).toBe(1)
    await button(page, 'Test Ghost').click()
    expect(await detailOf(page, 'signed-in')).toMatchObject({ session: { address: ghost.address } })
    fox.release()
    await expect.poll(() => fox.hasSigned, patient).toBe(true)
    await page.waitForTimeout(300)
    expect(await detailsOf(page, 'signed-in')).toHaveLength(1)
    expect(await errorCodes(page)).toEqual([])
  })

  test('that is asked when a phone approves is left alone: one sign-in is enough', async () => {
    const { page, context, phone, wallet, show } = await setUp()
    const fox = await injectEthereum(context)
    fox.signs = 'wait'
    await show()
    await code(page).waitFor()
    const claim = await phone.claimOrder(await scan(code(page)))
    await says(page, 'A phone has opened the request.')
    // What the user has not begun is not offered any more.
    expect(await thisDevice(page).isVisible()).toBe(false)
    await button(page, 'Cancel').click()
    await button(page, 'Show a new code').click()
    await code(page).waitFor()
    await thisDevice(page).click()
    await button(page, 'Test Fox').click()
    await expect.poll(() => fox.asked.length, patient).toBe(1)
    expect(await phone.getOrderChallenge(claim).catch((error) => error.code)).toBe('ORDER_CANCELLED')
    const second = await phone.claimOrder(await scan(code(page)))
    const challenge = await phone.getOrderChallenge(second)
    await phone.approveOrder(second, { challenge })
    expect(await detailOf(page, 'signed-in')).toMatchObject({
      status: 'finalized',
      session: { address: wallet.address },
    })
    expect(await names(page)).toEqual([])
    fox.release()
    await expect.poll(() => fox.hasSigned, patient).toBe(true)
    await page.waitForTimeout(300)
    expect(await detailsOf(page, 'signed-in')).toHaveLength(1)
  })

  test('that the service does not accept says so; without one, the list says what to do; the button hides it again', async () => {
    provokes(/400 .*nonce/)
    const { page, context, show } = await setUp({ adapters: ['nimiq'] })
    await show()
    await thisDevice(page).click()
    await page.getByText('No wallet found in this browser.').waitFor()
    await page.getByText('Install one for this browser').waitFor()
    await thisDevice(page).click()
    expect(await page.getByText('No wallet found').count()).toBe(0)
    expect(await thisDevice(page).getAttribute('aria-expanded')).toBe('false')

    await injectEthereum(context)
    await show()
    await thisDevice(page).click()
    await button(page, 'Test Fox').click()
    await says(page, 'This site doesn’t accept that kind of wallet.')
    expect(await errorCodes(page)).toEqual(['ADAPTER_UNKNOWN'])
    // The texts are the page's.
    await page.locator('countersign-sign-in').evaluate((element) => {
      Reflect.set(element, 'texts', {
        thisDevice: 'Hier',
        wallets: { choose: 'Wähle aus.', notAccepted: 'Geht nicht.' },
      })
    })
    await page.getByText('Wähle aus.').waitFor()
    await button(page, 'Test Fox').click()
    await says(page, 'Geht nicht.')
    await button(page, 'Hier').waitFor()
  })

  test('is listed in the language of the page, which is outside of the element', async () => {
    const { site, url, page } = await setUp()
    const element = `<countersign-sign-in base-url="${url}"></countersign-sign-in>`
    await site.show(page, `<div lang="de">${element}</div>`, url)
    await button(page, 'Wallet auf diesem Gerät verwenden').click()
    await page.getByText('In diesem Browser wurde keine Wallet gefunden.').waitFor()
  })

  describe('the demo wallet, for developers', () => {
    const demo = (page: Page): Locator => button(page, 'Demo wallet')
    const asked = (trail: { requests: readonly { url: string }[] }): string[] =>
      trail.requests.map(({ url }) => url).filter((url) => /\/options$|demo-wallet/.test(url))

    test('signs in if the service offers it, and page and service are on this computer', async () => {
      const { page, trail, show } = await setUp({ pages: { demoWallet: true } })
      await show()
      await thisDevice(page).click()
      await demo(page).waitFor()
      await page.getByText('For trying this out, not a real one').waitFor()
      expect(asked(trail).map((url) => new URL(url).pathname.replace(/-[0-9a-f]{8}\./, '.'))).toEqual([
        '/api/auth/options',
        '/countersign-demo-wallet.js',
      ])
      await expectAccessible(page, 'demo wallet')
      await demo(page).click()
      expect(await detailOf(page, 'signed-in')).toMatchObject({ session: { adapterId: 'nimiq' } })
      expectNoFaults(trail)
    })

    test('is not offered if the service has none, or none for the wallets that the page lists', async () => {
      for (const [options, attributes] of [
        [{ pages: { demoWallet: false } }, ''],
        [{ pages: { demoWallet: true } }, 'adapter-ids="ethereum"'],
      ] as const) {
        const { page, show } = await setUp(options)
        await show(attributes)
        await thisDevice(page).click()
        await page.getByText('No wallet found in this browser.').waitFor()
        expect(await demo(page).count()).toBe(0)
      }
    })

    test('is not offered to a page behind a tunnel, nor by a service behind one: neither is asked', async () => {
      provokes(/Access to fetch|net::ERR_FAILED/)
      const pageHost = 'http://tally.tunnel.example'
      const serviceHost = 'http://auth.tunnel.example'
      const { site, url, page, trail, context } = await setUp({
        pages: { demoWallet: true },
        // Where it is not trusted, it offers no wallets at all.
        trustedOrigins: [pageHost],
      })
      const forward = async (host: string, to: string): Promise<void> => {
        await context.route(`${host}/**`, async (route) => {
          const asked = route.request().url()
          // A stream would not end before the test.
          if (asked.includes('/events')) await route.abort()
          else await route.fulfill({ response: await route.fetch({ url: asked.replace(host, to) }) })
        })
      }
      await forward(pageHost, site.origin)
      await forward(serviceHost, url)
      // The browser lets no such page call this computer, and a service that is away offers nothing.
      await forward(url, url)
      // Requests that are still under way when the pages close.
      onTestFinished(() => context.unrouteAll({ behavior: 'ignoreErrors' }))
      for (const [at, service] of [
        [pageHost, url],
        [site.origin, serviceHost],
      ] as const) {
        await site.show(page, `<countersign-sign-in base-url="${service}"></countersign-sign-in>`, service)
        if (at === pageHost) await page.goto(page.url().replace(site.origin, pageHost))
        await thisDevice(page).click()
        await page.getByText('No wallet found in this browser.').waitFor()
        expect(await demo(page).count(), at).toBe(0)
      }
      expect(asked(trail)).toEqual([])
    })
  })

  test('is not offered for a signature, for orders of a backend that may be one, by a client that cannot, and if switched off', async () => {
    const { page, show } = await setUp()
    await show()
    await thisDevice(page).waitFor()
    const element = page.locator('countersign-sign-in')
    await element.evaluate((one) => one.setAttribute('kind', 'sign'))
    await thisDevice(page).waitFor({ state: 'hidden' })
    await element.evaluate((one) => one.removeAttribute('kind'))
    await thisDevice(page).waitFor()
    await element.evaluate((one) => one.setAttribute('cross-device-only', ''))
    await thisDevice(page).waitFor({ state: 'hidden' })
    await element.evaluate((one) => one.removeAttribute('cross-device-only'))
    await thisDevice(page).waitFor()
    await element.evaluate((one) => Reflect.set(one, 'startOrder', () => new Promise(() => {})))
    await thisDevice(page).waitFor({ state: 'hidden' })
    await element.evaluate((one) => one.setAttribute('kind', 'login'))
    await thisDevice(page).waitFor()
    await element.evaluate((one) => Reflect.set(one, 'client', { computerKey: async () => undefined }))
    await thisDevice(page).waitFor({ state: 'hidden' })
  })

  test('is loaded from where the element came from, and again after a failure', async () => {
    provokes(/net::ERR_FAILED .*device-sign-in/)
    const { site, page, context, trail, show } = await setUp()
    const ghost = await injectSolana(context)
    let isAway = true
    await context.route('https://cdn.example/**', (route) => {
      const path = new URL(route.request().url()).pathname
      const body = site.files.get(path)
      if (body === undefined || (isAway && path.includes('device-sign-in'))) return route.abort()
      const headers = { 'access-control-allow-origin': '*' }
      return route.fulfill({ body: Buffer.from(body), contentType: 'text/javascript', headers })
    })
    await show('', 'https://cdn.example')
    await thisDevice(page).click()
    await says(page, 'The wallets couldn’t be loaded. Try again.')
    expect(await errorCodes(page)).toEqual(['NETWORK'])
    expect(await code(page).isVisible()).toBe(true)
    isAway = false
    await thisDevice(page).click()
    await button(page, 'Test Ghost').click()
    expect(await detailOf(page, 'signed-in')).toMatchObject({ session: { address: ghost.address } })
    expectNoFaults(trail)
  })

  describe('on a phone', () => {
    test('comes first; the QR code is shown, and an order started, only when it is asked for', async () => {
      const { page, trail, context, loaded, started, phone, show } = await setUp({}, iPhone)
      const ghost = await injectSolana(context)
      await show('display-title="Sign in to Tally"')
      await button(page, 'Test Ghost').waitFor()
      expect(loaded()).toHaveLength(1)
      expect(started()).toEqual([])
      expect(await thisDevice(page).isVisible()).toBe(false)
      // At http there is nothing that a wallet's app would open.
      expect(await page.getByRole('link').count()).toBe(0)
      await expectAccessible(page, 'on a phone')

      await tap(button(page, 'Use another device'))
      await says(page, 'Scan the code with another device.')
      expect(started()).toHaveLength(1)
      await expectAccessible(page, 'on a phone, with the code')
      const claimUrl = await scan(code(page))
      await tap(button(page, 'Test Ghost'))
      expect(await detailOf(page, 'signed-in')).toMatchObject({ session: { address: ghost.address } })
      await expect.poll(() => phone.claimOrder(claimUrl).catch((error) => error.code), patient).toBe('ORDER_CANCELLED')
      expectNoFaults(trail)
    })

    test('opens the page in wallet apps, without its fragment', async () => {
      provokes(/net::ERR_FAILED .*nonce/)
      const { site, page, context } = await setUp({}, iPhone)
      await context.route('https://tally.example/**', (route) => {
        const { pathname } = new URL(route.request().url())
        const script = site.files.get(pathname)
        const html = `<!doctype html><html lang="en"><title>Tally</title><meta name="viewport" content="width=device-width">
          <script type="module" src="/countersign-sign-in.js"></script><main><h1>Tally</h1>
          <countersign-sign-in adapter-id="solana"></countersign-sign-in></main></html>`
        if (/^\/(api|countersign\.)/.test(pathname)) return route.abort()
        return script === undefined
          ? route.fulfill({ body: html, contentType: 'text/html' })
          : route.fulfill({ body: Buffer.from(script), contentType: 'text/javascript' })
      })
      await page.goto('https://tally.example/sign-in?for=desk#secret')
      const phantom = page.getByRole('link', { name: 'Open in Phantom' })
      await phantom.waitFor()
      const address = encodeURIComponent('https://tally.example/sign-in?for=desk')
      expect(await phantom.getAttribute('href')).toBe(
        `https://phantom.app/ul/browse/${address}?ref=${encodeURIComponent('https://tally.example')}`,
      )
      expect(await page.getByRole('link', { name: 'Open in MetaMask' }).count()).toBe(0)
      // The marks of apps that are known, in place of the letters of their names.
      await expect.poll(() => page.locator('[part=icon] img').count(), patient).toBe(2)
    })

    test('at another site, the Nimiq Hub, takes the place of the page, which signs in when it is back', async () => {
      const hubScript = `
        import HubApi from '@nimiq/hub-api'
        const hub = { appName: 'Tally', url: 'http://hub.example', redirect: true, load: async () => ({ default: HubApi }) }
        document.querySelector('countersign-sign-in').hub = hub
      `
      const { origin, show } = await servePage({ '/hub.js': await bundle(hubScript, 'esm') })
      const { url } = await startService({ trustedOrigins: [origin] })
      const { page } = await browser.open(iPhone)
      const hub = await serveHub(page.context(), 'http://hub.example')
      const element = `<countersign-sign-in base-url="${url}"></countersign-sign-in><script type="module" src="/hub.js"></script>`
      await show(page, element, url)
      await tap(button(page, 'Nimiq Hub'))
      await expectAsked(page)
      await tap(button(page, 'Cancel'))
      await says(page, 'You declined in your wallet.')
      await tap(button(page, 'Nimiq Hub'))
      await expectAsked(page)
      await tap(button(page, 'Sign'))
      expect(await detailOf(page, 'signed-in')).toMatchObject({ session: { address: hub.wallet.address } })
      expect(hub.requests).toHaveLength(2)
      expect(await page.evaluate('JSON.stringify(sessionStorage)')).toBe('{}')
      expect(page.url()).not.toContain('rpcId')
    })
  })
})
