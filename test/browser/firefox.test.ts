import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { launchFirefox } from '../support/browser.ts'
import { hasPart } from '../support/optional.ts'
import { startService } from '../support/service.ts'
import { servePage } from './element/page.ts'

/** What no test shows that the nightly run repeats in Firefox. */
describe.skipIf(!hasPart('firefox-esr'))('in Firefox', () => {
  let browser: Browser

  beforeAll(async () => {
    browser = await launchFirefox()
  })
  afterAll(async () => await browser?.close())

  async function open(): Promise<Page> {
    const context = await browser.newContext({ locale: 'en-GB' })
    context.setDefaultTimeout(20_000)
    onTestFinished(() => context.close())
    return await context.newPage()
  }

  test('a list of wallets whose load failed once is loaded at the next tap', async () => {
    const { origin, show } = await servePage()
    const { url } = await startService({ trustedOrigins: [origin] })
    const page = await open()
    let failures = 2
    await page.route('**/countersign-device-sign-in-*', async (route) => {
      if (failures-- > 0) await route.fulfill({ status: 503 })
      else await route.continue()
    })
    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    const button = page.getByRole('button', { name: 'Use a wallet on this device' })
    await button.click()
    await page.getByText('The wallets couldn’t be loaded. Try again.').waitFor()
    await button.click()
    await page.locator('countersign-wallets').waitFor()
  })

  test('the order of a page that is left is cancelled, each time', async () => {
    const told: string[] = []
    const { origin, show } = await servePage()
    const { url } = await startService({
      trustedOrigins: [origin],
      onAuditEvent: ({ type }) => void told.push(type),
    })
    for (let time = 1; time <= 5; time++) {
      const page = await open()
      await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
      await page.getByRole('img', { name: /QR code/ }).waitFor()
      await page.evaluate(() => {
        document.querySelector('countersign-sign-in')?.remove()
        location.replace('/elsewhere')
      })
      await expect.poll(() => told.filter((type) => type === 'order.cancelled').length).toBe(time)
    }
  })
})
