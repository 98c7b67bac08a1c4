import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { shortAddress } from '../../src/shared/wallet-address.ts'
import { listen } from '../support/listening.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import {
  approvedHeading,
  expectAnswerAwaited,
  expectHeading,
  expectSignedIn,
  openForPhone,
  reviewOnPhone,
  signIn,
  signInCard,
  signInCode,
} from './flows.ts'
import { passOn } from './forwarding.ts'
import { expectUntranslated, hasBrowser, provokes, useBrowser } from './support.ts'

/** Makes a page hidden or visible, as far as its scripts can tell. */
async function makeVisible(page: Page, state: 'visible' | 'hidden'): Promise<void> {
  await page.evaluate((value) => {
    Object.defineProperty(document, 'visibilityState', { value, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }, state)
}

describe.skipIf(!hasBrowser)('a page and its session', () => {
  const { open } = useBrowser()

  test('a sign-in that the phone takes back ends on the computer by itself', async () => {
    const { url } = await startService()
    const [desktop, phone] = [await open(), await open()]
    await reviewOnPhone(phone.page, await openForPhone(desktop.page, url))
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await phone.page.getByRole('heading', { name: approvedHeading }).waitFor()
    await expectSignedIn(desktop.page)
    await phone.page.getByRole('button', { name: 'Sign that computer out' }).click()
    await expectHeading(phone.page, 'Signed out')
    await signInCode(desktop.page)
  })

  test('the sign-in page, opened with such a session, sees its end at once when it is shown', async () => {
    const { url } = await startService()
    const [desktop, phone] = [await open(), await open()]
    await reviewOnPhone(phone.page, await openForPhone(desktop.page, url))
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectSignedIn(desktop.page)
    await desktop.page.goto(`${url}/api/auth/sign-in`)
    await desktop.page.getByRole('heading', { name: 'You’re signed in' }).waitFor()
    await makeVisible(desktop.page, 'hidden')
    await phone.page.getByRole('button', { name: 'Sign that computer out' }).click()
    await expectHeading(phone.page, 'Signed out')
    await makeVisible(desktop.page, 'visible')
    await desktop.page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor({ timeout: 3000 })
  })

  test('a page from the back-forward cache shows nothing of a session that has ended', async () => {
    provokes(/401/)
    const { url } = await startService()
    for (const path of ['/api/auth/account', '/']) {
      const { page } = await open()
      const wallet = makeWallet()
      const token = await signIn(page, url, wallet)
      await page.goto(url + path)
      const address = page.getByText(shortAddress(wallet.address)).first()
      await address.waitFor()
      await expectUntranslated(page, shortAddress(wallet.address))
      await rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` })
      // As browsers tell a page that comes back as it was. Chromium keeps no page that read what must not be stored.
      await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })))
      await page
        .getByRole('heading', { name: /^Sign in/ })
        .first()
        .waitFor()
      await expect.poll(() => address.isVisible()).toBe(false)
    }
  })

  test('a phone that is deciding learns that the computer has cancelled', async () => {
    const { url } = await startService()
    const [desktop, phone] = [await open(), await open()]
    await reviewOnPhone(phone.page, await openForPhone(desktop.page, url))
    await expectAnswerAwaited(signInCard(desktop.page))
    await signInCard(desktop.page).getByRole('button', { name: 'Cancel' }).click()
    await phone.page.getByRole('heading', { name: 'Cancelled on your computer' }).waitFor()
  })

  test('a browser that does not keep the cookie is told so, and is led nowhere', async () => {
    const target = { url: '' }
    const port = await listen(
      createServer((request, response) => {
        const { writeHead } = response
        response.writeHead = ((status: number, { 'set-cookie': _, ...headers }: Record<string, string>) =>
          writeHead.call(response, status, headers)) as typeof writeHead
        passOn(request, response, target.url, 'http')
      }),
    )
    const origin = `http://localhost:${port}`
    target.url = (await startService({ publicUrl: origin })).url
    const { page } = await open()
    await page.goto(`${origin}/api/auth/sign-in?returnTo=/elsewhere`)
    await page.getByRole('button', { name: 'Use a wallet on this device' }).click()
    await page.getByRole('button', { name: 'Demo wallet' }).click()
    await page.getByText('This browser blocked the sign-in cookie.').waitFor()
    expect(new URL(page.url()).pathname).toBe('/api/auth/sign-in')
    await expectHeading(page, 'Sign in')
    await page.getByRole('img', { name: /QR code/ }).waitFor()
  })

  test('a signed-out visit leaves no error in the console', async () => {
    provokes(/404 .*nothing/)
    const { url } = await startService()
    const { page } = await open()
    const errors: string[] = []
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    const asked = page.waitForResponse(/GetCurrentSession/)
    await page.goto(url)
    await asked
    await signInCode(page)
    await page.goto(`${url}/api/auth/sign-in`)
    await page.getByRole('img', { name: /QR code/ }).waitFor()
    await page.evaluate('fetch("/nothing")')
    await expect.poll(() => errors).toHaveLength(1)
    expect(errors[0]).toContain('404')
  })

  test('seven tabs of the sign-in page load over HTTP/1.1, as hidden ones let their streams go', async () => {
    const { url } = await startService()
    const { page: first } = await open()
    const address = `${url}/api/auth/sign-in`
    let page = first
    for (let tab = 1; tab <= 7; tab++) {
      if (tab > 1) page = await first.context().newPage()
      await page.goto(address)
      await page.getByRole('img', { name: /QR code/ }).waitFor()
      await makeVisible(page, 'hidden')
    }
    // What happened meanwhile is seen when the page is shown again.
    await makeVisible(first, 'visible')
    await first.getByRole('img', { name: /QR code/ }).waitFor()
  })
})
