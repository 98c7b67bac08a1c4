import { createServer } from 'node:http'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { clientsFile, discover, request, shop } from '../oidc/support.ts'
import { launchFirefox } from '../support/browser.ts'
import { listen } from '../support/listening.ts'
import { hasPart } from '../support/optional.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { phoneClient } from './client/phone.ts'
import { CuttableProxy } from './client/proxy.ts'
import { servePage } from './element/page.ts'
import {
  approvedHeading,
  expectHeading,
  expectSignedIn,
  openForPhone,
  reviewOnPhone,
  signInCode,
  signInOnDemo,
} from './flows.ts'
import { scan } from './support.ts'

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

  test('a wallet on this device signs in', async () => {
    const { url } = await startService()
    const page = await open()
    await page.goto(url)
    await signInOnDemo(page)
  })

  test('a phone that scans the code signs the computer in, and takes it back', async () => {
    const { url } = await startService()
    const [desktop, phone] = [await open(), await open()]
    await reviewOnPhone(phone, await openForPhone(desktop, url))
    await phone.getByRole('button', { name: 'Approve' }).click()
    await phone.getByRole('heading', { name: approvedHeading }).waitFor()
    await expectSignedIn(desktop)
    await phone.getByRole('button', { name: 'Sign that computer out' }).click()
    await expectHeading(phone, 'Signed out')
    await signInCode(desktop)
  })

  test('the issuer’s page asks for consent and leads on, and asks before a sign-out and leads back', async () => {
    const client = createServer((call, response) => response.end(`called: ${call.url}`))
    const redirect = `http://127.0.0.1:${await listen(client)}/callback`
    const metadata = { ...shop.metadata, redirect_uris: [redirect], post_logout_redirect_uris: [redirect] }
    const { url } = await startService({ oidc: { clients: clientsFile({ metadata }) } })
    const page = await open()
    await page.goto(url)
    await signInOnDemo(page)
    const { address, redeem } = await request(await discover(url, metadata), { redirect_uri: redirect })
    await page.goto(address)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${redirect}?*`)
    const { id_token: hint = '' } = await redeem(new URL(page.url()))
    const query = new URLSearchParams({ id_token_hint: hint, post_logout_redirect_uri: redirect })
    await page.goto(`${url}/api/auth/oidc/logout?${query}`)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(redirect)
    await page.goto(url)
    await signInCode(page)
  })

  test('a declined request is declined on the computer', async () => {
    const { url } = await startService()
    const [desktop, phone] = [await open(), await open()]
    await reviewOnPhone(phone, await openForPhone(desktop, url))
    await phone.getByRole('button', { name: 'Decline' }).click()
    await expectHeading(phone, 'Declined')
    await desktop.getByText('Declined on the phone.').waitFor()
  })

  test('the element signs in on a page of another origin', async () => {
    const { origin, show } = await servePage()
    const { url } = await startService({ trustedOrigins: [origin] })
    const page = await open()
    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    const code = page.getByRole('img', { name: 'QR code for your phone' })
    await code.waitFor()
    const phone = phoneClient(url, makeWallet())
    const claim = await phone.claimOrder(await scan(code))
    await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
    await page.getByText('You’re signed in.').waitFor()
  })

  test('the element on a page that the service does not trust says so, and what is down is down', async () => {
    const { show } = await servePage()
    const { url } = await startService()
    const page = await open()
    await show(page, `<countersign-sign-in base-url="${url}"></countersign-sign-in>`, url)
    await page.getByText('This site isn’t set up for signing in here.').waitFor()
    const away = await CuttableProxy.start(url)
    void away.refuse()
    await show(page, `<countersign-sign-in base-url="${away.url}"></countersign-sign-in>`, away.url)
    await page.getByText('Can’t reach the sign-in service.').waitFor()
  })

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
    await page.getByText('The wallets could not be loaded.').waitFor()
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
