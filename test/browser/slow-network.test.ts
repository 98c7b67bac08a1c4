import { describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import { Desktop } from './desktop.ts'
import { hasBrowser, useBrowser } from './support.ts'

/** A slow mobile network: what a round trip takes, in milliseconds, and bytes a second. */
const slow = { latency: 2500, downloadThroughput: 50_000, uploadThroughput: 50_000, offline: false }

// Firefox has no such network.
describe.skipIf(!hasBrowser || process.env.TEST_BROWSER === 'firefox')('on a slow network', { timeout: 60_000 }, () => {
  const browser = useBrowser()

  test('the approval page is seen after one round trip and its document, and says who asks after its script', async () => {
    const { url } = await startService({ appName: 'Green Bakery' })
    const desktop = await Desktop.start(url)
    const { page } = await browser.open({ viewport: { width: 390, height: 664 } })
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('Network.enable')
    await devtools.send('Network.emulateNetworkConditions', slow)
    await page.goto(desktop.order.claimUrl, { waitUntil: 'commit' })
    await page.getByText('Green Bakery').waitFor()
    expect(await page.locator('#shell').isVisible()).toBe(true)
    expect(await page.locator('#shell .bone-button').evaluate((bone) => getComputedStyle(bone).minHeight)).toBe('48px')
    await page.getByRole('button', { name: 'Review the request' }).waitFor()
    expect(await page.locator('#start[aria-busy=true]').count()).toBe(1)
    const painted = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime)
    const arrived = await page.evaluate(
      () => (performance.getEntriesByType('navigation')[0] as PerformanceNavigationTiming).responseEnd,
    )
    expect(painted! - arrived).toBeLessThan(1000)
    // The script, and nothing that the script waits for, stands between the picture and the button.
    await page.locator('#start .code').getByText(desktop.order.confirmationCode).waitFor()
    await page.getByRole('button', { name: 'Review the request' }).click()
    await page.locator('#review-button[aria-busy=true]').waitFor({ timeout: 1000 })
    await page.getByRole('button', { name: 'Approve' }).waitFor()
  })
})
