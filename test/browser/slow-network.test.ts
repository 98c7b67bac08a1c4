import type { BrowserContextOptions, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { Desktop } from './desktop.ts'
import { hasBrowser, inFirefox, useBrowser } from './support.ts'

/** A slow mobile network: what a round trip takes, in milliseconds, and bytes a second. */
const slow = { latency: 2500, downloadThroughput: 50_000, uploadThroughput: 50_000, offline: false }

// Firefox has no such network.
describe.skipIf(!hasBrowser || inFirefox)('on a slow network', () => {
  const browser = useBrowser()

  /** Opens a page on such a network, and expects its shell before its script. Resolves with the page. */
  async function openSlowly(address: string, options: BrowserContextOptions = {}): Promise<Page> {
    const { page } = await browser.open({ viewport: { width: 390, height: 664 }, ...options })
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('Network.enable')
    await devtools.send('Network.emulateNetworkConditions', slow)
    await page.goto(address, { waitUntil: 'commit' })
    await page.getByText('Green Bakery').waitFor()
    expect(await page.locator('#shell').isVisible()).toBe(true)
    expect(await page.locator('#shell .bone-button').evaluate((bone) => getComputedStyle(bone).minHeight)).toMatch(
      /^(48|72)px$/,
    )
    return page
  }

  /** Expects a page to have been painted before its script was there. */
  async function expectEarlyPaint(page: Page): Promise<void> {
    const { painted, arrived } = await page.evaluate(() => ({
      painted: performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
      arrived: performance
        .getEntriesByType('resource')
        .filter(({ name }) => name.endsWith('.js'))
        .map((entry) => (entry as PerformanceResourceTiming).responseEnd)[0],
    }))
    expect(painted).toBeLessThan(Number(arrived))
  }

  test('the approval page is seen after one round trip and its document, and says who asks after its script', async () => {
    const { url } = await startService({ appName: 'Green Bakery' })
    const desktop = await Desktop.start(url)
    const page = await openSlowly(desktop.order.claimUrl)
    await page.locator('#review-button[disabled]').waitFor()
    await expectEarlyPaint(page)
    // The script, and nothing that the script waits for, stands between the picture and the button.
    await page.locator('#code > [aria-hidden]').getByText(desktop.order.confirmationCode).waitFor()
    await page.getByRole('button', { name: 'Continue', exact: true }).click()
    await page.locator('#review-button[aria-busy=true]').waitFor({ timeout: slow.latency })
    await page.getByRole('button', { name: 'Approve' }).waitFor()
  })

  test('the sign-in page is seen as soon, and a click shows at once that something happens', async () => {
    const { url } = await startService({ appName: 'Green Bakery', pages: { demoWallet: true } })
    const page = await openSlowly(`${url}/api/auth/sign-in?returnTo=/`)
    await page.getByRole('button', { name: 'wallet on this device' }).click()
    await expectEarlyPaint(page)
    await page.getByRole('button', { name: /demo/i }).click()
    await page.getByText('One moment').waitFor({ timeout: slow.latency })
    await page.waitForURL(`${url}/`, { waitUntil: 'commit' })
  })

  test('the account page is seen as soon, and a click shows at once that something happens', async () => {
    const { url } = await startService({ appName: 'Green Bakery' })
    const storageState = await signedInState(url)
    const page = await openSlowly(`${url}/api/auth/account`, { storageState })
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
    await expectEarlyPaint(page)
    expect(await page.locator('#shell').isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.locator('#sign-out-button[aria-busy=true]').waitFor({ timeout: slow.latency })
    await page.waitForURL('**/api/auth/sign-in?**', { waitUntil: 'commit' })
  })
})

/** Cookies of a browser that is signed in. */
async function signedInState(url: string): Promise<NonNullable<BrowserContextOptions['storageState']>> {
  const { json } = await rest(url, '/wallet/nonce', {})
  const { headers } = await rest(url, '/wallet/verify', proofOf(makeWallet(), json))
  const [name = '', value = ''] = (headers.get('set-cookie') ?? '').split(/[=;]/)
  const cookie = {
    domain: 'localhost',
    path: '/',
    expires: -1,
    httpOnly: true,
    secure: false,
    sameSite: 'Lax',
  } as const
  return { cookies: [{ name, value, ...cookie }], origins: [] }
}
