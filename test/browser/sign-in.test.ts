import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import { stores } from '../support/stores.ts'
import {
  addressOf,
  approvedHeading,
  confirmationCode,
  expectAnswerAwaited,
  expectHeading,
  expectSignedIn,
  openForPhone,
  phoneCard,
  qrCode,
  reviewOnPhone,
  signCard,
} from './flows.ts'
import { expectNoFaults, hasBrowser, provokes, useBrowser } from './support.ts'

/** Only the cookie holds the session, where no script can read it. */
async function expectSessionOutOfReach(page: Page): Promise<void> {
  const readable = await page.evaluate(() => [
    document.cookie,
    ...Object.keys(localStorage),
    ...Object.keys(sessionStorage),
  ])
  expect(readable).toEqual(['', 'countersign.demo-wallet'])
}

describe.skipIf(!hasBrowser).each(stores)('in a browser, on $name', ({ open }) => {
  const browser = useBrowser()

  test('direct sign-in, a reload that keeps the session, sign-out', async () => {
    const { url } = await startService(await open())
    const { page, trail } = await browser.open()
    await page.goto(url)
    const wallet = await addressOf(page)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await expectSignedIn(page, wallet)
    await expectHeading(page, 'You are signed in')
    await expectSessionOutOfReach(page)
    await page.reload()
    await expectSignedIn(page, wallet)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await expectHeading(page, 'Sign in on this device')
    await page.reload()
    await page.getByRole('heading', { name: 'Sign in on this device' }).waitFor()
    expect(trail.faults).toEqual([])
  })

  test('a phone scans the code and approves: the desktop is signed in without a reload', async () => {
    const { url } = await startService(await open())
    const desktop = await browser.open()
    const phone = await browser.open({ viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true })
    const code = await openForPhone(desktop.page, url)
    await reviewOnPhone(phone.page, code)
    await expectHeading(phone.page, 'Sign in on another device?')
    await phone.page.locator('blockquote').getByText('Sign in to the demo').waitFor()
    const wallet = await addressOf(phone.page)
    const shown = await phone.page.locator('#review .code').textContent()
    expect(shown).toMatch(/^\d\d$/)
    expect(await confirmationCode(phoneCard(desktop.page))).toBe(shown)
    await expectAnswerAwaited(phoneCard(desktop.page))
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(phone.page, approvedHeading)
    await expectSignedIn(desktop.page, wallet)
    await expectSessionOutOfReach(desktop.page)
    const pages = desktop.trail.requests.filter((request) => request.url === `${url}/`)
    expect(pages).toHaveLength(1)
    expect([...desktop.trail.faults, ...phone.trail.faults]).toEqual([])
  })

  test('declined on the phone', async () => {
    const { url } = await startService(await open())
    const desktop = await browser.open()
    const phone = await browser.open()
    await reviewOnPhone(phone.page, await openForPhone(desktop.page, url))
    await phone.page.getByRole('button', { name: 'Decline' }).click()
    await expectHeading(phone.page, 'Declined')
    await phoneCard(desktop.page).getByText('Declined on the phone').waitFor()
  })

  test('cancelled on the desktop, the phone hears of it at its next tap', async () => {
    provokes(/409 .*approve/)
    const { url } = await startService(await open())
    const desktop = await browser.open()
    const phone = await browser.open()
    await reviewOnPhone(phone.page, await openForPhone(desktop.page, url))
    await phoneCard(desktop.page).getByRole('button', { name: 'Cancel' }).click()
    await phoneCard(desktop.page).getByText('Cancelled').waitFor()
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(phone.page, 'Cancelled on your computer')
  })

  test('a signature order ends in a proof that the page itself can check', async () => {
    const { url } = await startService(await open())
    const desktop = await browser.open()
    const phone = await browser.open()
    await desktop.page.goto(url)
    const card = signCard(desktop.page)
    await card.getByLabel('Title').fill('Sell the house')
    await card.getByRole('button', { name: 'Ask the phone' }).click()
    await reviewOnPhone(phone.page, qrCode(card))
    await expectHeading(phone.page, 'Sign with your wallet?')
    await phone.page.locator('blockquote').getByText('Sell the house').waitFor()
    const wallet = await addressOf(phone.page)
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(desktop.page, 'Your proof')
    await card.getByText('the signature is valid').waitFor()
    const text = (await card.textContent())!
    expect(text).toContain('Title: Sell the house')
    expect(text).toContain(wallet)
    expect(text).toMatch(/Payload Hash: sha256:[\w-]{43}\n/)
  })

  test('the demo offers three things to try, in the language of its user', async () => {
    const { url } = await startService({ ...(await open()), appName: 'Tulip Shop' })
    const headings = async (locale: string) => {
      const { page, trail } = await browser.open({ locale })
      await page.goto(url)
      await page.getByRole('heading', { level: 2 }).first().waitFor()
      expectNoFaults(trail)
      expect(await page.title()).toMatch(/ · Tulip Shop$/)
      return await page.getByRole('heading', { level: 2 }).allInnerTexts()
    }
    const shown = (texts: string[]) => texts.map((text) => text.replace(/\s+/g, ' '))
    expect(shown(await headings('en-GB'))).toEqual([
      '1 Sign in with your phone',
      '2 Sign in on this device',
      '3 Request a signature',
    ])
    expect(shown(await headings('de-AT'))).toEqual([
      '1 Mit dem Handy anmelden',
      '2 Auf diesem Gerät anmelden',
      '3 Eine Signatur anfordern',
    ])
  })

  test('other sessions are listed and can be ended', async () => {
    const { url } = await startService(await open())
    const { page } = await browser.open()
    await page.goto(url)
    for (let times = 0; times < 3; times++) {
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await expectSignedIn(page)
      if (times === 2) break
      await page.context().clearCookies()
      await page.reload()
    }
    const list = page.getByRole('region', { name: 'Where you’re signed in' })
    const ends = list.getByRole('button', { name: /^Sign out: / })
    await expect.poll(() => ends.count()).toBe(2)
    await ends.first().click()
    await expect.poll(() => ends.count()).toBe(1)
    await list.getByRole('button', { name: 'Sign out everywhere else' }).click()
    await expect.poll(() => ends.count()).toBe(0)
    await page.reload()
    await expectSignedIn(page)
  })
})
