import { describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import {
  addressOf,
  expectHeading,
  expectReview,
  expectSignedIn,
  qrCode,
  reviewOnPhone,
  signCard,
  signInOnDemo,
} from './flows.ts'
import { expectNoFaults, hasBrowser, useBrowser } from './support.ts'

describe.skipIf(!hasBrowser)('in a browser', () => {
  const browser = useBrowser()

  test('a signature order ends in a proof that the page itself can check', async () => {
    const { url } = await startService()
    const desktop = await browser.open()
    const phone = await browser.open()
    await desktop.page.goto(url)
    const card = signCard(desktop.page)
    await card.getByLabel('Title').fill('Sell the house')
    await card.getByRole('button', { name: 'Ask the phone' }).click()
    await reviewOnPhone(phone.page, qrCode(card))
    await expectReview(phone.page, /^Sign for /)
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

  test('the demo offers two things to try, in the language of its user', async () => {
    const { url } = await startService({ appName: 'Tulip Shop' })
    const headings = async (locale: string) => {
      const { page, trail } = await browser.open({ locale })
      await page.goto(url)
      await page.getByRole('heading', { level: 2 }).first().waitFor()
      expectNoFaults(trail)
      expect(await page.title()).toMatch(/ · Tulip Shop$/)
      return await page.getByRole('heading', { level: 2 }).allInnerTexts()
    }
    const shown = (texts: string[]) => texts.map((text) => text.replace(/\s+/g, ' '))
    expect(shown(await headings('en-GB'))).toEqual(['Sign in', 'Request a signature'])
    expect(shown(await headings('de-AT'))).toEqual(['Anmelden', 'Eine Signatur anfordern'])
  })

  test('other sessions are listed and can be ended', async () => {
    const { url } = await startService()
    const { page } = await browser.open()
    await page.goto(url)
    for (let times = 0; times < 3; times++) {
      await signInOnDemo(page)
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
    await list.getByRole('group').getByRole('button', { name: 'Sign out' }).click()
    await expect.poll(() => ends.count()).toBe(0)
    await page.reload()
    await expectSignedIn(page)
  })
})
