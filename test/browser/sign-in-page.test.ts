import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { shortAddress } from '../../src/shared/wallet-address.ts'
import { freePort } from '../support/redis-server.ts'
import { hostileReturnPaths } from '../support/return-paths.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { Desktop } from './desktop.ts'
import {
  addressOf,
  approvedHeading,
  codeOnPhone,
  confirmationCode,
  expectHeading,
  reviewOnPhone,
  signIn,
} from './flows.ts'
import { android } from './phones.ts'
import { type ProtectedHost, startProtectedHost } from './protected-host.ts'
import {
  copiedOn,
  expectAccessible,
  expectNoFaults,
  hasBrowser,
  look,
  provokes,
  useBrowser,
  watchShifts,
} from './support.ts'
import { injectEthereum } from './wallets/ethereum.ts'

const desktopSize: BrowserContextOptions = { viewport: { width: 1280, height: 900 } }

/** What a page's console says, and which of its requests fail, as the page's own developer sees it. */
function followTroubles(page: Page): string[] {
  const troubles: string[] = []
  page.on('console', (message) => {
    if (/error|warning/.test(message.type())) troubles.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => troubles.push(String(error)))
  page.on('response', (response) => response.status() >= 400 && troubles.push(`${response.status()} ${response.url()}`))
  page.on('requestfailed', (request) => {
    // A page that is left ends what it was waiting for.
    const why = request.failure()?.errorText
    if (why !== 'net::ERR_ABORTED' && why !== 'NS_BINDING_ABORTED') troubles.push(`${why} ${request.url()}`)
  })
  return troubles
}

/** Signs a page's browser in. Resolves with the wallet's address. */
async function signInTo({ url }: ProtectedHost, page: Page): Promise<string> {
  const wallet = makeWallet()
  await signIn(page, url, wallet)
  return wallet.address
}

/** Has the application keep a token of another session in the storage, where its own client looks for it. */
async function keepOtherToken(page: Page): Promise<void> {
  await page.addInitScript(() => {
    if (location.pathname.startsWith('/api/auth/')) localStorage.setItem('countersign.token', 'css_of.another-session')
  })
}

/** Path of the operator's logo. */
const logoUrl = '/brand/logo.svg'

/** Serves the logo to a page, slowly. */
async function serveLogo(page: Page): Promise<void> {
  await page.route(`**${logoUrl}`, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 700))
    const body =
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30" width="90" height="30"><path d="M0 0h90v30H0z"/></svg>'
    await route.fulfill({ contentType: 'image/svg+xml', body })
  })
}

/** The part of the page that shows the code for a phone. */
function codeOf(page: Page): Locator {
  return page.getByRole('img', { name: /QR code/ })
}

/** A script that says where the page leads with each of these values of `returnTo`. */
async function asExpression(values: readonly string[]): Promise<string> {
  const contents = `import { returnTarget } from './src/shared/return-path.ts'
    export const targetOf = (returnTo) => {
      const page = new URL(location.href)
      page.search = '?' + new URLSearchParams({ returnTo })
      return returnTarget(page).href
    }`
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL('../..', import.meta.url)) },
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'made',
  })
  return `(() => { ${outputFiles[0]?.text}; return ${JSON.stringify(values)}.map(made.targetOf) })()`
}

/** Whether a control has the keyboard's focus, in a shadow tree or not. */
async function isFocused(control: Locator): Promise<boolean> {
  return await control.evaluate((element) => (element.getRootNode() as Document | ShadowRoot).activeElement === element)
}

describe.skipIf(!hasBrowser)('on the sign-in page,', () => {
  const browser = useBrowser()

  async function opened(
    options: Parameters<typeof startProtectedHost>[0] = {},
    context: BrowserContextOptions = desktopSize,
  ) {
    const host = await startProtectedHost(options)
    const { page, trail } = await browser.open(context)
    return { host, page, trail, troubles: followTroubles(page) }
  }

  test('the wallet that the address asks for is named, and another one that is signed in is said to be another', async () => {
    const { host, page } = await opened()
    const wanted = makeWallet().address
    const openWith = async (wallet: string) => {
      await page.goto(`${host.signInUrl('/')}&${new URLSearchParams({ wallet })}`)
      await page.getByRole('heading', { name: /Sign in|You’re signed in/ }).waitFor()
    }
    await openWith(`nimiq:${wanted}`)
    expect(await page.getByText(`Use the wallet ${wanted}.`).isVisible()).toBe(true)
    for (const none of ['', wanted, `unknown:${wanted}`, 'nimiq:', 'nimiq:<b>x</b>', `nimiq:${'x'.repeat(200)}`]) {
      await openWith(none)
      expect(await page.getByText('Use the wallet').count()).toBe(0)
    }
    const own = await signInTo(host, page)
    await openWith(`nimiq:${wanted}`)
    expect(await page.getByText(`You were asked to use another wallet: ${wanted}`).isVisible()).toBe(true)
    await openWith(`nimiq:${own.replaceAll(' ', '').toLowerCase()}`)
    expect(await page.getByText('another wallet:').count()).toBe(0)
  })

  test('a phone signs the application’s user in; only the base path is needed, nothing fails and nothing moves', async () => {
    const host = await startProtectedHost({}, 250)
    const { page, trail } = await browser.open(desktopSize)
    const troubles = followTroubles(page)
    const shifts = await watchShifts(page)
    await page.goto(host.signInUrl('/orders?page=2#last'))
    await codeOf(page).waitFor()
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
    await page.waitForTimeout(500)
    expect(await shifts()).toEqual([])
    const phone = await browser.open({ viewport: { width: 390, height: 800 } })
    const claimUrl = await reviewOnPhone(phone.page, codeOf(page))
    expect(claimUrl).toMatch(new RegExp(`^${host.serviceUrl}/c/`))
    const address = await addressOf(phone.page)
    await page.getByText('Check that both codes match').waitFor()
    expect(await codeOnPhone(phone.page)).toBe(await confirmationCode(page.locator('body')))
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(phone.page, approvedHeading)
    await page.getByRole('heading', { name: 'The application' }).waitFor()
    expect(page.url()).toBe(`${host.url}/orders?page=2#last`)
    expect(host.visited).toEqual(['/orders?page=2'])
    expect(troubles).toEqual([])
    expectNoFaults(trail, phone.trail)
    expect(
      await page.evaluate(() => [document.cookie, ...Object.keys(localStorage), ...Object.keys(sessionStorage)]),
    ).toEqual(['', 'countersign.demo-wallet'])
    await page.goto(host.signInUrl('/'))
    await page.getByTitle(address).waitFor()
    // The way back does not lead to the page that was left.
    expect(host.visited).toEqual(['/orders?page=2'])
  })

  test.each([
    [1280, 720],
    [844, 390],
  ])('a window of %i × %i pixels shows the steps and, beside them, the codes', async (width, height) => {
    const port = await freePort()
    const url = `http://auth.localhost:${port}`
    await startService({ port, publicUrl: url, confirmationCode: 'compare' })
    const { page } = await browser.open({ viewport: { width, height } })
    await page.goto(`${url}/api/auth/sign-in`)
    await codeOf(page).waitFor()
    const boxOf = async (place: Locator) => (await place.boundingBox())!
    const [qr, steps, confirmation] = [
      await boxOf(codeOf(page)),
      await boxOf(page.getByRole('list').first()),
      await boxOf(page.locator('[part=code]')),
    ]
    for (const box of [qr, steps, confirmation]) expect(box.y + box.height).toBeLessThan(Math.min(height, 700))
    expect(steps.x + steps.width).toBeLessThan(qr.x)
    expect(qr.width).toBeGreaterThan(Math.min(300, height / 2))
  })

  test('a signed-in user sees the account, goes on by a tap only, and can take another wallet', async () => {
    const { host, page, troubles } = await opened({}, { ...desktopSize, permissions: ['clipboard-write'] })
    const address = await signInTo(host, page)
    await keepOtherToken(page)
    await page.goto(host.signInUrl('/welcome'))
    // The cookie's session: the application's token may be of another.
    await page.getByTitle(address).waitFor()
    await expectAccessible(page, 'signed in')
    expect(await page.locator('.who').textContent()).toBe(`NNimiq ${shortAddress(address)}`)
    await page.getByRole('button', { name: 'Copy the address' }).click()
    await page.getByRole('status').getByText('Address copied').waitFor({ state: 'attached' })
    expect(await copiedOn(page)).toBe(address)
    expect(await page.locator('.who bdi').textContent()).toBe(address)
    // Where the user is signed in, and the way on.
    expect(await page.getByRole('banner').textContent()).toContain('Countersign')
    expect(await page.getByRole('link', { name: 'Continue' }).isVisible()).toBe(true)
    await page.waitForTimeout(300)
    expect(host.visited).toEqual([])
    await page.getByRole('link', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'The application' }).waitFor()
    expect(host.visited).toEqual(['/welcome'])
    await page.goBack()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await expectHeading(page, 'Sign in')
    await codeOf(page).waitFor()
    expect(await page.context().cookies()).toEqual([])
    expect(troubles).toEqual([])
  })

  test('a session that ended meanwhile, or of which another tab tells, is seen', async () => {
    const { host, page } = await opened()
    await page.context().addCookies([{ name: 'countersign_session', value: 'css_x.y', url: host.url }])
    await page.goto(host.signInUrl('/welcome'))
    await codeOf(page).waitFor()
    const address = await signInTo(host, page)
    await page.evaluate(() => {
      new BroadcastChannel(`countersign.session countersign.token ${location.origin}`).postMessage('changed')
    })
    await page.getByTitle(address).waitFor()
    await expectHeading(page, 'You’re signed in')
    expect(host.visited).toEqual([])
  })

  test('the way leads nowhere but to a path of the same origin', async () => {
    const { host, page, trail } = await opened()
    await signInTo(host, page)
    await page.goto(host.signInUrl('/'))
    // All of them, as this browser reads them.
    const targets = await page.evaluate(await asExpression(hostileReturnPaths))
    expect(targets).toEqual(hostileReturnPaths.map(() => `${host.url}/`))
    const tried = [
      '//evil.example',
      '/\\evil.example',
      '/\t/evil.example',
      '/%2fevil.example',
      '/.//evil.example',
      'javascript:alert(1)',
    ]
    for (const path of [...tried, '/search?q=100%25&next=%2F%2Fhere%5C#part', '/@evil.example']) {
      await page.goto(host.signInUrl(path))
      await page.getByRole('link', { name: 'Continue' }).click()
      await page.getByRole('heading', { name: 'The application' }).waitFor()
      const expected = tried.includes(path) ? `${host.url}/` : new URL(path, host.url).href
      expect(page.url(), path).toBe(expected)
    }
    const origins = new Set(
      trail.requests
        .map(({ url }) => new URL(url))
        .filter(({ protocol }) => protocol !== 'data:')
        .map(({ origin }) => origin),
    )
    expect([...origins]).toEqual([host.url])
  })

  test('an order, token or code in its address means nothing', async () => {
    const { host, page, trail } = await opened({ pages: { demoWallet: false } })
    const { order } = await Desktop.start(host.url)
    const { orderId, claimToken, desktopToken } = order
    const known = {
      orderId,
      order: orderId,
      claimToken,
      token: desktopToken,
      desktopToken,
      code: '123456',
      session: 'css_x',
    }
    await page.goto(
      `${host.signInUrl('/welcome')}&${new URLSearchParams(known)}#token=${claimToken}&${new URLSearchParams(known)}`,
    )
    await codeOf(page).waitFor()
    const sent = trail.requests.filter(({ url }) => !url.includes('/sign-in?'))
    expect(sent.map(({ url }) => url).join('\n')).not.toMatch(
      new RegExp(`${orderId}|${claimToken}|${desktopToken}|123456|css_x`),
    )
    expect(sent.filter(({ method }) => method === 'POST').map(({ url }) => new URL(url).pathname)).toEqual([
      '/api/auth/cross-device/start',
    ])
    expect(await page.evaluate(() => [...Object.keys(localStorage), ...Object.keys(sessionStorage)])).toEqual([])
  })

  test('a wallet of the browser signs the user in; a declined one can be tried again', async () => {
    const { host, page, trail, troubles } = await opened({
      adapters: ['nimiq', 'ethereum'],
      pages: { demoWallet: false },
    })
    const fox = await injectEthereum(page.context())
    fox.signs = 'decline'
    await page.goto(host.signInUrl('/welcome'))
    await codeOf(page).waitFor()
    await page.getByRole('button', { name: 'wallet on this device' }).click()
    await page.getByRole('button', { name: 'Test Fox' }).click()
    await page.getByText('You declined in your wallet').waitFor()
    fox.signs = 'sign'
    await page.getByRole('button', { name: 'Test Fox' }).click()
    await page.getByRole('heading', { name: 'The application' }).waitFor()
    expect(page.url()).toBe(`${host.url}/welcome`)
    expect(fox.asked[0]).toMatch(new RegExp(`^${new URL(host.url).host} wants you to sign in`))
    expect(
      await page.evaluate(() => [document.cookie, ...Object.keys(localStorage), ...Object.keys(sessionStorage)]),
    ).toEqual([''])
    const cancelled = trail.requests.filter(({ url }) => url.endsWith('/cross-device/cancel'))
    expect(cancelled).toHaveLength(1)
    await page.goto(host.signInUrl('/'))
    await page.getByTitle(fox.account.address).waitFor()
    expect(troubles).toEqual([])
    expectNoFaults(trail)
  })

  test('by keyboard alone, in German, with a token of the application in the storage', async () => {
    const { host, page, troubles } = await opened({}, { ...desktopSize, locale: 'de-DE' })
    await page.context().addInitScript(() => {
      if (location.pathname.startsWith('/api/auth/'))
        localStorage.setItem('countersign.token', 'css_of.another-session')
    })
    const withToken: string[] = []
    page.on('request', (request) => {
      if (request.headers().authorization === 'Bearer css_of.another-session') withToken.push(request.url())
    })
    await page.goto(host.signInUrl('/welcome'))
    await page.getByText('Ein Handy kann diesen Code nicht öffnen').waitFor()
    const press = async (name: string): Promise<void> => {
      const button = page.getByRole('button', { name })
      for (let times = 0; times < 12 && !(await isFocused(button)); times++) await page.keyboard.press('Tab')
      expect(await isFocused(button), name).toBe(true)
      await page.keyboard.press('Enter')
    }
    await press('Wallet auf diesem Gerät verwenden')
    await page.getByRole('button', { name: 'Demo-Wallet' }).waitFor()
    await press('Demo-Wallet')
    await page.getByRole('heading', { name: 'The application' }).waitFor()
    // The application would send it in place of the cookie.
    expect(await page.evaluate(() => Object.keys(localStorage))).toEqual(['countersign.demo-wallet'])
    // Signed in, the page asks by the cookie: the token can be of another session.
    const answered = page.waitForResponse(/\/api\/auth\/session\b/)
    await page.goto(host.signInUrl('/welcome'))
    expect((await answered).status()).toBe(200)
    expect(withToken).toEqual([])
    expect(troubles).toEqual([])
  })

  test('a code that the phone shows is typed, and the computer can become known', async () => {
    provokes(/401 .*finalize/)
    const { host, page } = await opened({ confirmationCode: 'return' })
    const phone = await browser.open({ viewport: { width: 390, height: 800 } })
    const approve = async (): Promise<void> => {
      await page.goto(host.signInUrl('/welcome'))
      await reviewOnPhone(phone.page, codeOf(page))
    }
    await approve()
    await phone.page.getByLabel('Remember this computer').check()
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    const field = page.getByLabel('Code on your phone')
    await field.waitFor()
    const code = (await phone.page.locator('#return-code > [aria-hidden]').textContent()) ?? ''
    await field.fill(code === '000000' ? '000001' : '000000')
    await page.getByText('2 attempts left.').waitFor()
    await expectAccessible(page, 'wrong code')
    await field.fill(code)
    await page.getByRole('heading', { name: 'The application' }).waitFor()
    await page.context().clearCookies()
    await approve()
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('heading', { name: 'The application' }).waitFor()
    expect(host.visited).toEqual(['/welcome', '/welcome'])
  })

  test('a click shows at once that something happens, however slow the service is', async () => {
    const { host, page } = await opened()
    await page.goto(host.signInUrl('/welcome'))
    await codeOf(page).waitFor()
    await page.context().route('**/api/auth/**', () => {})
    const shownAfter = async (click: () => Promise<void>, text: string): Promise<void> => {
      await click()
      // By the next frame: an answer of the service never comes.
      await page.getByText(text).filter({ visible: true }).first().waitFor()
    }
    await shownAfter(() => page.getByRole('button', { name: 'wallet on this device' }).click(), 'One moment.')
    await page.context().unroute('**/api/auth/**')
    await page.reload()
    await codeOf(page).waitFor()
    await page.context().route('**/cross-device/**', () => {})
    await shownAfter(() => page.getByRole('button', { name: 'Cancel' }).click(), 'One moment.')
    await page.context().unroute('**/cross-device/**')
    await signInTo(host, page)
    await page.reload()
    await page.context().route('**/sign-out', () => {})
    const signOut = page.getByRole('button', { name: 'Sign out' })
    await signOut.click()
    expect(await signOut.getAttribute('aria-busy')).toBe('true')
    await page.context().route('**/welcome', () => {})
    const onward = page.getByRole('link', { name: 'Continue' })
    const isBusy = await onward.evaluate((link: HTMLElement) => {
      link.click()
      return link.getAttribute('aria-busy')
    })
    expect(isBusy).toBe('true')
  })

  test('it has the operator’s logo and colour, and fits any name and any screen', async () => {
    const appName = `محفظة ${'Grüne-Bäckerei-'.repeat(4)}`.slice(0, 80)
    const { host, page, troubles } = await opened({ appName, pages: { logoUrl: logoUrl, accentColor: '#ffe600' } })
    await serveLogo(page)
    await page.goto(host.signInUrl('/welcome'))
    await codeOf(page).waitFor()
    await page.locator('img.logo').waitFor()
    expect((await page.locator('.brand bdi').boundingBox())?.width).toBeGreaterThan(20)
    const button = page.getByRole('button', { name: 'wallet on this device' })
    const [red, green, blue] = (await button.evaluate((one) => getComputedStyle(one).backgroundColor))
      .match(/\d+/g)!
      .map(Number)
    expect([red! > 180, green! > 160, blue! < 60]).toEqual([true, true, true])
    expect(await page.title()).toBe(`Sign in · ${appName}`)
    await look(page, 'sign-in-brand')
    expect(troubles).toEqual([])
  })

  test('a logo that has the name in it stands alone, and the name is there for screen readers', async () => {
    const { host, page } = await opened({ appName: 'Bakery', pages: { logoUrl, logoHasName: true } })
    await serveLogo(page)
    await page.goto(host.signInUrl('/welcome'))
    await page.locator('img.logo').waitFor()
    expect(await page.locator('.brand').ariaSnapshot()).toContain('Bakery')
    expect((await page.locator('.brand bdi').boundingBox())?.width).toBeLessThan(2)
    const withoutLogo = await opened({ appName: 'Bakery', pages: { logoHasName: true } })
    await withoutLogo.page.goto(withoutLogo.host.signInUrl('/welcome'))
    await codeOf(withoutLogo.page).waitFor()
    expect((await withoutLogo.page.locator('.brand bdi').boundingBox())?.width).toBeGreaterThan(20)
  })

  test('on a phone, the wallets that are on it come first, and nothing moves', async () => {
    const host = await startProtectedHost({ adapters: ['nimiq', 'ethereum'], pages: { logoUrl: logoUrl } }, 250)
    const { page } = await browser.open({ viewport: { width: 390, height: 844 }, userAgent: android.userAgent })
    const shifts = await watchShifts(page)
    await serveLogo(page)
    await page.goto(host.signInUrl('/welcome'))
    await page.getByText('Choose your wallet.').waitFor()
    await page.locator('img.logo').waitFor()
    expect(await shifts()).toEqual([])
    expect(await codeOf(page).count()).toBe(0)
    await expectAccessible(page, 'on a phone')
    await page.getByRole('button', { name: 'another device' }).click()
    await codeOf(page).waitFor()
    await page.getByRole('button', { name: 'Demo wallet' }).click()
    await page.getByRole('heading', { name: 'The application' }).waitFor()
  })

  test('leads people who have no wallet to three of its kinds, unless the operator wants none of that', async () => {
    const adapters = ['ethereum', 'solana']
    const { page, host } = await opened({ adapters, pages: { demoWallet: false } })
    await page.goto(host.signInUrl('/welcome'))
    await page.getByRole('button', { name: 'wallet on this device' }).click()
    await page.getByText('I don’t have a wallet').click()
    await page.getByText('A wallet is a free app').waitFor()
    const stores = page.getByRole('link').and(page.locator('[target=_blank]'))
    expect(await stores.evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).host))).toEqual([
      'www.nimiq.com',
      'metamask.io',
      'phantom.com',
    ])
    await expectAccessible(page, 'wallets to get')
    const without = await opened({ adapters, pages: { demoWallet: false, walletHelp: false } })
    await without.page.goto(without.host.signInUrl('/welcome'))
    await without.page.getByRole('button', { name: 'wallet on this device' }).click()
    await without.page.getByText('Install one for this browser').waitFor()
    expect(await without.page.getByText('I don’t have a wallet').isVisible()).toBe(false)
  })

  test('where orders need a start key, it offers the wallets on this device only at another origin', async () => {
    const { host, page, troubles } = await opened({ orderStartKeys: ['k'.repeat(43)] })
    await page.goto(host.signInUrl('/welcome'))
    await page.getByRole('button', { name: 'wallet on this device' }).click()
    await page.getByRole('button', { name: 'Demo wallet' }).waitFor()
    expect(await page.getByText('One moment.').filter({ visible: true }).count()).toBe(0)
    await page.getByRole('button', { name: 'Demo wallet' }).click()
    await page.getByRole('heading', { name: 'The application' }).waitFor()
    expect(troubles).toEqual([])
  })

  test('where orders need a start key, a phone signs in by its code at the service’s own origin', async () => {
    const { url } = await startService({ orderStartKeys: ['k'.repeat(43)] })
    const { page } = await browser.open(desktopSize)
    await page.goto(`${url}/api/auth/sign-in`)
    await codeOf(page).waitFor()
    const phone = await browser.open({ viewport: { width: 390, height: 800 } })
    await reviewOnPhone(phone.page, codeOf(page))
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(phone.page, approvedHeading)
    await page.waitForURL(`${url}/`)
  })
})
