import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import {
  addressOf,
  approvedHeading,
  codeOnPhone,
  confirmationCode,
  expectAnswerAwaited,
  expectHeading,
  expectReview,
  expectSignedIn,
  openForPhone,
  reviewOnPhone,
  signCard,
  signInCard,
  signInOnDemo,
} from './flows.ts'
import { hasBrowser, useBrowser } from './support.ts'

/** Only the cookie holds the session, where no script can read it. */
async function expectSessionOutOfReach(page: Page): Promise<void> {
  const readable = await page.evaluate(() => [
    document.cookie,
    ...Object.keys(localStorage),
    ...Object.keys(sessionStorage),
  ])
  expect(readable).toEqual(['', 'countersign.demo-wallet'])
}

describe.skipIf(!hasBrowser)('in a browser', () => {
  const browser = useBrowser()

  test('direct sign-in, a reload that keeps the session, sign-out', async () => {
    const { url } = await startService()
    const { page, trail } = await browser.open()
    await page.goto(url)
    await signInOnDemo(page)
    const wallet = await addressOf(page)
    await expectHeading(page, 'You’re signed in')
    await expectSessionOutOfReach(page)
    await page.reload()
    await expectSignedIn(page, wallet)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await expectHeading(page, 'Sign in')
    await page.reload()
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
    expect(trail.faults).toEqual([])
  })

  test('where orders need a start key, a phone signs the demo’s user in, and the demo starts no other orders', async () => {
    const { url } = await startService({ orderStartKeys: ['k'.repeat(43)] })
    const desktop = await browser.open()
    const phone = await browser.open({ viewport: { width: 390, height: 800 } })
    await reviewOnPhone(phone.page, await openForPhone(desktop.page, url))
    expect(await phone.page.locator('blockquote').filter({ visible: true }).count()).toBe(0)
    expect(await signCard(desktop.page).filter({ visible: true }).count()).toBe(0)
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectSignedIn(desktop.page)
    expect(desktop.trail.faults).toEqual([])
  })

  test('a phone scans the code and approves: the desktop is signed in without a reload', async () => {
    const { url } = await startService()
    const desktop = await browser.open()
    const phone = await browser.open({ viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true })
    const code = await openForPhone(desktop.page, url)
    await reviewOnPhone(phone.page, code)
    await expectReview(phone.page, /^Sign in to /)
    const wallet = await addressOf(phone.page)
    const shown = await codeOnPhone(phone.page)
    expect(shown).toMatch(/^\d\d$/)
    expect(await confirmationCode(signInCard(desktop.page))).toBe(shown)
    await expectAnswerAwaited(signInCard(desktop.page))
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(phone.page, approvedHeading)
    await expectSignedIn(desktop.page, wallet)
    await expectSessionOutOfReach(desktop.page)
    const pages = desktop.trail.requests.filter((request) => request.url === `${url}/`)
    expect(pages).toHaveLength(1)
    expect([...desktop.trail.faults, ...phone.trail.faults]).toEqual([])
  })
})
