import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../src/index.ts'
import { Browser, connect, decide, discover, request, startIssuer } from '../oidc/support.ts'
import { freePort } from '../support/redis-server.ts'
import { bearer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { expectHeading, keepCookie, signIn } from './flows.ts'
import {
  expectAccessible,
  expectNoFaults,
  expectNoSidewaysScroll,
  hasBrowser,
  provokes,
  useBrowser,
} from './support.ts'

/** Expects the focus on a heading, which screen readers read with what was done. */
async function expectSaid(page: Page, heading: string, text: string): Promise<void> {
  await page.getByText(text, { exact: true }).waitFor()
  await expectHeading(page, heading)
  const description = page.locator(':focus').evaluate((one) => one.ariaDescribedByElements?.map((by) => by.textContent))
  expect(await description).toEqual([text])
}

describe.skipIf(!hasBrowser)('the account page', () => {
  const browser = useBrowser()

  test('shows wallets and sessions, ends one, and says that a second wallet is missing', async () => {
    const { url } = await startService()
    const { page, trail } = await browser.open()
    const wallet = makeWallet()
    await signIn(page, url, wallet)
    const other = (await rest(url, '/wallet/verify', proofOf(wallet, (await rest(url, '/wallet/nonce', {})).json))).json
    await page.goto(`${url}/api/auth/account`)
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
    await page.getByText('Add a second wallet. If you lose your only one').waitFor()
    await expectAccessible(page, 'account')
    await expectNoSidewaysScroll(page, 'account')
    await page.getByRole('button', { name: /^Sign out: / }).click()
    await expect.poll(async () => (await rest(url, '/session', undefined, bearer(other.token))).status).toBe(401)
    await page.getByRole('button', { name: 'Sign out everywhere else' }).waitFor({ state: 'hidden' })
    expectNoFaults(trail)
  })

  test('shows a wallet once, short and by its kind, and signing out is not what the page is for', async () => {
    const { url } = await startService()
    const { page } = await browser.open({ viewport: { width: 390, height: 844 } })
    const wallet = makeWallet()
    await signIn(page, url, wallet)
    await page.goto(`${url}/api/auth/account`)
    const [country, first, ...rest] = wallet.address.split(' ')
    const short = page.getByText(`${country} ${first} … ${rest.at(-1)}`)
    await short.waitFor()
    expect(await short.count()).toBe(1)
    expect(await short.getAttribute('title')).toBe(wallet.address)
    expect(await page.locator('main').textContent()).not.toContain(wallet.address)
    await page
      .locator('#wallets')
      .getByRole('listitem')
      .filter({ hasText: /Nimiq NQ.*Added .* · in use now/ })
      .waitFor()
    const area = async (name: string): Promise<number> => {
      const { width, height } = (await page.getByRole('button', { name, exact: true }).boundingBox())!
      return width * height
    }
    expect(await area('Sign out')).toBeLessThan((await area('Add a wallet')) / 2)
  })

  test('says what failed beside the button that was pressed, and tries it again from there', async () => {
    provokes(/net::ERR|Failed to load/)
    const { url } = await startService()
    const { page } = await browser.open({ viewport: { width: 390, height: 844 } })
    const wallet = makeWallet()
    await signIn(page, url, wallet)
    await rest(url, '/wallet/verify', proofOf(wallet, (await rest(url, '/wallet/nonce', {})).json))
    await page.goto(`${url}/api/auth/account`)
    const button = page.getByRole('button', { name: /^Sign out: / })
    await button.waitFor()
    await page.context().setOffline(true)
    await button.click()
    const again = page.getByRole('listitem').getByRole('button', { name: 'Try again' })
    await again.waitFor()
    const [pressed, notice] = [(await button.boundingBox())!, (await page.locator('#notice').boundingBox())!]
    expect(notice.y - pressed.y - pressed.height).toBeLessThan(40)
    await page.context().setOffline(false)
    await again.click()
    await button.waitFor({ state: 'detached' })
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.locator('#account').getByRole('button', { name: 'Try again' }).waitFor()
  })

  describe('has a way back to the application', () => {
    test('at the path that the application names, also after a sign-in in between', async () => {
      const { url } = await startService({ appName: 'Green Bakery', pages: { demoWallet: true } })
      const { page } = await browser.open()
      await page.goto(`${url}/api/auth/account?returnTo=/orders?page=2`)
      await page.getByRole('button', { name: 'wallet on this device' }).click()
      await page.getByRole('button', { name: /demo/i }).click()
      const link = page.getByRole('link', { name: 'Back to Green Bakery' })
      await link.waitFor()
      expect(await link.evaluate((element: HTMLAnchorElement) => element.href)).toBe(`${url}/orders?page=2`)
    })

    test('and none to another host, or if nothing led here', async () => {
      const { url } = await startService()
      const { page } = await browser.open()
      await signIn(page, url)
      await page.goto(`${url}/api/auth/account`, { referer: 'https://stranger.example/' })
      await page.getByRole('button', { name: 'Add a wallet', exact: true }).waitFor()
      expect(await page.getByRole('link').count()).toBe(0)
      await page.goto(`${url}/api/auth/account?returnTo=//stranger.example/`)
      await page.getByRole('button', { name: 'Add a wallet', exact: true }).waitFor()
      expect(
        await page.getByRole('link').evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href)),
      ).toEqual([`${url}/`])
    })

    test('to a connected application that the browser comes from', async () => {
      const { url } = await startIssuer()
      const { wallet } = await connect(url)
      const { page } = await browser.open()
      await signIn(page, url, wallet)
      await page.goto(`${url}/api/auth/account`, { referer: 'https://shop.example/orders' })
      const link = page.getByRole('link', { name: 'Back to Tulip Shop' })
      expect(await link.getAttribute('href')).toBe('https://shop.example/orders')
    })
  })

  test('has the focus on its heading once the last application is disconnected, whose section goes', async () => {
    const { url } = await startIssuer()
    const wallet = makeWallet()
    const application = new Browser(url)
    await application.signIn(wallet)
    await decide(application, await application.open((await request(await discover(url))).address))
    const { page } = await browser.open()
    await signIn(page, url, wallet)
    await page.goto(`${url}/api/auth/account`)
    await page.getByRole('button', { name: 'Disconnect: Tulip Shop' }).click()
    await page.getByRole('heading', { name: 'Connected applications' }).waitFor({ state: 'hidden' })
    await expectHeading(page, 'Your account')
  })

  test('without a session leads to the sign-in page, and from there back', async () => {
    const { url } = await startService({ pages: { demoWallet: true } })
    const { page } = await browser.open()
    await page.goto(`${url}/api/auth/account`)
    await page.waitForURL('**/api/auth/sign-in?**')
    await page.getByRole('button', { name: 'wallet on this device' }).click()
    await page.getByRole('button', { name: /demo/i }).click()
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
  })

  test('speaks German, on a phone, and nothing is wider than its screen', async () => {
    const { url } = await startService()
    const { page } = await browser.open({ locale: 'de-DE', viewport: { width: 320, height: 640 }, colorScheme: 'dark' })
    await signIn(page, url)
    await page.goto(`${url}/api/auth/account`)
    await page.getByRole('heading', { name: 'Dein Konto' }).waitFor()
    await page.getByText('Füge eine zweite Wallet hinzu.').waitFor()
    await expectNoSidewaysScroll(page, 'account-de')
  })

  test('speaks the language that an application asks for, and so does the sign-in that it leads to', async () => {
    const { url } = await startService({ pages: { demoWallet: true } })
    const { page } = await browser.open()
    await page.goto(`${url}/api/auth/account?ui_locales=de`)
    await page.getByRole('button', { name: 'Wallet auf diesem Gerät' }).click()
    await page.getByRole('button', { name: /demo/i }).click()
    await page.getByRole('heading', { name: 'Dein Konto' }).waitFor()
  })

  describe('cannot end or change what it must not', () => {
    test('a stale session adds no wallet: it signs in again, and is offered the button, which nothing has pressed', async () => {
      provokes(/403 .*IssueNonce|403 .*nonce/)
      const store = await openStore('sqlite::memory:')
      const { url } = await startService({ store, pages: { demoWallet: true } })
      const { page } = await browser.open()
      const wallet = makeWallet()
      await signIn(page, url, wallet)
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 11 * 60_000 })
      onTestFinished(() => void vi.useRealTimers())
      await page.goto(`${url}/api/auth/account`)
      await page.getByRole('button', { name: 'Add a wallet', exact: true }).click()
      await page.getByRole('button', { name: /demo/i }).click()
      await page.getByRole('button', { name: 'Sign in again' }).click()
      await page.waitForURL('**/api/auth/sign-in?**again=1**')
      // As the same user, in another way.
      await signIn(page, url, wallet)
      await page.goto(`${url}/api/auth/account`)
      await page.getByRole('button', { name: 'Add a wallet', exact: true }).waitFor()
      await page.getByText('Add a second wallet. If you lose your only one').waitFor()
    })

    test('a session that an order made has no button for wallets, and says where there is one', async () => {
      const { url } = await startService()
      const { page } = await browser.open()
      const wallet = makeWallet()
      const { json: order } = await rest(url, '/cross-device/start', { kind: 'login' })
      const claimToken = new URLSearchParams(new URL(order.claimUrl).hash.slice(1)).get('token')
      const { orderId, desktopToken } = order
      const { challengeToken } = (await rest(url, '/cross-device/claim', { orderId, claimToken })).json
      const read = await rest(url, `/cross-device/challenge?orderId=${orderId}`, undefined, bearer(challengeToken))
      const { nonceId: _, ...proof } = proofOf(wallet, { nonceId: '', message: read.json.message })
      await rest(url, '/cross-device/approve', { orderId, challengeToken, proof })
      await keepCookie(page, url, await rest(url, '/cross-device/finalize', { orderId, desktopToken }))
      await page.goto(`${url}/api/auth/account`)
      // The victim's own, by a direct sign-in.
      await rest(url, '/wallet/verify', proofOf(wallet, (await rest(url, '/wallet/nonce', {})).json))
      await page.getByText('open this page on your phone').waitFor()
      await page.reload()
      await page.getByText('open this page on your phone').waitFor()
      expect(await page.getByRole('button', { name: /^Sign out( everywhere else|: )/ }).count()).toBe(0)
      expect(await page.getByRole('button', { name: /wallet/i }).count()).toBe(0)
    })

    test('two tabs: what the one has ended, the other says is over, and a sign-out in one is a sign-out in both', async () => {
      provokes(/404 .*revoke/)
      const { url } = await startService()
      const { page } = await browser.open()
      const wallet = makeWallet()
      await signIn(page, url, wallet)
      const { json: nonce } = await rest(url, '/wallet/nonce', {})
      await rest(url, '/wallet/verify', proofOf(wallet, nonce))
      await page.goto(`${url}/api/auth/account`)
      const second = await page.context().newPage()
      await second.goto(`${url}/api/auth/account`)
      await second.getByRole('button', { name: /^Sign out: / }).click()
      await second.getByRole('button', { name: /^Sign out: / }).waitFor({ state: 'hidden' })
      await page.getByRole('button', { name: /^Sign out: / }).click()
      await page.getByText('Try again').waitFor()
      await second.getByRole('button', { name: 'Sign out', exact: true }).click()
      await second.waitForURL('**/api/auth/sign-in?**')
      await page.bringToFront()
      await page.waitForURL('**/api/auth/sign-in?**')
    })

    test('a page of another trusted origin ends no session of a visitor, and cannot frame the page', async () => {
      const app = 'https://app.example'
      const port = await freePort()
      const { url } = await startService({ port, trustedOrigins: [app, `http://localhost:${port}`] })
      const { page } = await browser.open()
      await signIn(page, url)
      const [{ name, value } = { name: '', value: '' }] = await page.context().cookies(url)
      const call = (origin: string) =>
        fetch(`${url}/api/auth/apps/disconnect`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', cookie: `${name}=${value}`, origin },
          body: '{"clientId":"shop"}',
        })
      for (const origin of [app, 'https://auth.app.example', 'null']) expect((await call(origin)).status).toBe(403)
      const { headers } = await fetch(`${url}/api/auth/account`)
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    })
  })

  test('adds a wallet, asks before it removes it, and says what was done', async () => {
    const { url } = await startService({ pages: { demoWallet: true } })
    const { page } = await browser.open()
    await signIn(page, url)
    await page.goto(`${url}/api/auth/account`)
    const add = page.getByRole('button', { name: 'Add a wallet', exact: true })
    await add.click()
    await expectHeading(page, 'Add a wallet')
    // The list is in the place of the buttons.
    expect(await page.getByRole('button', { name: 'Add a wallet' }).count()).toBe(0)
    await page.keyboard.press('Escape')
    await expect.poll(() => add.evaluate((one) => one === document.activeElement)).toBe(true)
    await add.click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'hidden' })
    await add.click()
    await page.getByRole('button', { name: /demo/i }).click()
    await expectSaid(page, 'Your wallets', 'Wallet added.')
    const row = page.getByRole('listitem').filter({ hasText: 'Nimiq 2' })
    const remove = row.getByRole('button', { name: 'Remove: Nimiq 2' })
    await remove.click()
    await row.getByRole('group', { name: /^Remove NQ\d\d \S+ … \S+\?$/ }).waitFor()
    await page.keyboard.press('Enter')
    // "Keep" had the focus.
    expect(await remove.evaluate((one) => one === document.activeElement)).toBe(true)
    await remove.click()
    await row.getByRole('button', { name: 'Remove', exact: true }).click()
    await expectSaid(page, 'Your wallets', 'Wallet removed.')
    await page.getByText('Add a second wallet. If you lose your only one').waitFor()
  })

  test('asks before it signs others out, and says how many those were', async () => {
    const { url } = await startService()
    const { page } = await browser.open()
    const wallet = makeWallet()
    await signIn(page, url, wallet)
    const others = [1, 2].map(async () => {
      const proof = proofOf(wallet, (await rest(url, '/wallet/nonce', {})).json)
      return (await rest(url, '/wallet/verify', proof)).json.token
    })
    const tokens = await Promise.all(others)
    const statuses = () =>
      Promise.all(tokens.map(async (one) => (await rest(url, '/session', undefined, bearer(one))).status))
    await page.goto(`${url}/api/auth/account`)
    await page.getByRole('button', { name: 'Sign out everywhere else' }).click()
    const question = page.getByRole('group', { name: 'Sign out 2 other browsers?' })
    await question.getByRole('button', { name: 'Keep' }).click()
    expect(await statuses()).toEqual([200, 200])
    await page.getByRole('button', { name: 'Sign out everywhere else' }).click()
    await question.getByRole('button', { name: 'Sign out' }).click()
    await expectSaid(page, 'Where you’re signed in', '2 browsers signed out.')
    expect(await statuses()).toEqual([401, 401])
  })
})
