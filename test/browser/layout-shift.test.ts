import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { clientsFile, discover, request, shop } from '../oidc/support.ts'
import { startService } from '../support/service.ts'
import { usual, windows } from './approval-steps.ts'
import { Desktop } from './desktop.ts'
import { signIn } from './flows.ts'
import { Ask, asking, signInUser } from './inbox-steps.ts'
import { android } from './phones.ts'
import { hasBrowser, inFirefox, provokes, useBrowser, watchShifts } from './support.ts'

/** How late each answer of the service is, in milliseconds: later than what a page shows without it. */
const lateMs = 600

/** The way to each page, and what it shows once all of its answers are there. */
const pages: Readonly<Record<string, (page: Page) => Promise<string>>> = {
  async 'approval page'(page) {
    const { url } = await startService()
    await page.goto((await Desktop.start(url, usual, { headers: { 'user-agent': windows } })).order.claimUrl)
    return '#code'
  },
  async 'approval page without digits to compare'(page) {
    const { url } = await startService({ confirmationCode: 'return', trustProxy: 1 })
    const headers = { 'x-forwarded-for': '198.51.100.1', 'user-agent': windows }
    await page.setExtraHTTPHeaders({ 'x-forwarded-for': '203.0.113.7' })
    await page.goto((await Desktop.start(url, { kind: 'sign', payload: '{"loaves":12}' }, { headers })).order.claimUrl)
    return '#request'
  },
  async 'sign-in page'(page) {
    const { url } = await startService()
    await page.goto(`${url}/api/auth/sign-in`)
    return 'countersign-wallets button'
  },
  async 'sign-in page, signed in'(page) {
    const { url } = await startService()
    await signIn(page, url)
    await page.goto(`${url}/api/auth/sign-in`)
    return '#signed-in'
  },
  async demo(page) {
    const { url } = await startService()
    await page.goto(url)
    return 'countersign-wallets button'
  },
  async 'account page'(page) {
    const { url } = await startService()
    await signIn(page, url)
    await page.goto(`${url}/api/auth/account`)
    return '#account'
  },
  async inbox(page) {
    const { url } = await startService(asking)
    await Ask.start(url, await signInUser(page, url))
    await page.goto(`${url}/api/auth/inbox`)
    return '.request'
  },
  async 'consent of the issuer'(page) {
    const { url } = await startService({ oidc: { clients: clientsFile(shop) } })
    await signIn(page, url)
    await page.goto((await request(await discover(url))).address)
    return '#allow-button'
  },
  async 'page at an unknown path'(page) {
    provokes(/404/)
    const { url } = await startService()
    await page.goto(`${url}/nowhere`)
    return 'h1'
  },
}

const sumOf = (shifts: readonly unknown[]): number =>
  (shifts as readonly { readonly value: number }[]).reduce((all, { value }) => all + value, 0)

// Firefox does not tell what moves.
describe.skipIf(!hasBrowser || inFirefox)('nothing that is seen moves by itself', () => {
  const browser = useBrowser()

  test.each(Object.entries(pages))('on the %s', async (_, open) => {
    const { page } = await browser.open(android)
    const shifts = await watchShifts(page)
    await page.route('**/api/auth/**', async (route) => {
      const isCall = /fetch|xhr/.test(route.request().resourceType())
      if (isCall) await new Promise((resolve) => setTimeout(resolve, lateMs))
      await route.continue()
    })
    await page
      .locator(await open(page))
      .first()
      .waitFor()
    await page.waitForLoadState('networkidle')
    const found = await shifts()
    expect(sumOf(found), JSON.stringify(found)).toBeLessThan(0.02)
  })

  test('or it would be noticed', async () => {
    const { page } = await browser.open(android)
    const shifts = await watchShifts(page)
    const { url } = await startService()
    await page.goto(url)
    await page.locator('#signed-out').waitFor()
    // What is inserted before the first picture moves nothing.
    const insertAndSum = async (): Promise<number> => {
      await page.evaluate(() => {
        const block = document.createElement('div')
        block.style.height = '100px'
        document.querySelector('main')?.prepend(block)
      })
      return sumOf(await shifts())
    }
    await expect.poll(insertAndSum, { timeout: 20_000 }).toBeGreaterThan(0.02)
  })
})
