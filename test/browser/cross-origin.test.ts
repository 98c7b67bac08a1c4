import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import { addressOf, expectReview, qrCode, reviewOnPhone } from './flows.ts'
import { type ApplicationWindow, applicationPage, applicationScript, serveSite } from './other-site.ts'
import { hasBrowser, provokes, useBrowser } from './support.ts'

/** The window in which functions run that a test hands to a page. */
declare const window: ApplicationWindow

describe.skipIf(!hasBrowser)('an application on another origin', () => {
  const browser = useBrowser()
  let script = ''
  beforeAll(async () => {
    script = await applicationScript()
  })

  /** Opens the application under a host name of this machine; the service trusts `trusted` of its origins. */
  async function openApplication(host: string, trusts = true): Promise<{ page: Page; url: string }> {
    const { port } = await serveSite(applicationPage, script)
    const origin = `http://${host}:${port}`
    const { url } = await startService({ trustedOrigins: [trusts ? origin : 'https://app.example'] })
    const { page } = await browser.open()
    await page.goto(`${origin}/?service=${encodeURIComponent(url)}`)
    await page.waitForFunction(() => window.client !== undefined)
    return { page, url }
  }

  const signIn = (page: Page, autoPersistToken: boolean): Promise<string> =>
    page.evaluate(
      async (autoPersistToken) =>
        (await window.client.signInWallet({ wallet: window.wallet, autoPersistToken })).session.address,
      autoPersistToken,
    )
  const currentAddress = (page: Page): Promise<string | undefined> =>
    page.evaluate(async () => (await window.client.getCurrentSession())?.address)
  const reload = async (page: Page): Promise<void> => {
    await page.reload()
    await page.waitForFunction(() => window.client !== undefined)
  }

  test('signs in with the cookie where it is of the same site', async () => {
    const { page } = await openApplication('localhost')
    const address = await signIn(page, false)
    await reload(page)
    expect(await currentAddress(page)).toBe(address)
    expect(await page.evaluate(() => window.client.readStoredToken())).toBe(undefined)
    await page.evaluate(() => window.client.signOut())
    expect(await currentAddress(page)).toBe(undefined)
  })

  test('signs in with the bearer token where browsers send it no cookie', async () => {
    const { page } = await openApplication('127.0.0.1')
    const address = await signIn(page, true)
    await reload(page)
    expect(await currentAddress(page)).toBe(address)
    expect(await page.evaluate(() => window.client.readStoredToken())).toMatch(/^css_/)
    await page.evaluate(() => window.client.signOut())
    expect(await currentAddress(page)).toBe(undefined)
    expect(await page.evaluate(() => window.client.readStoredToken())).toBe(undefined)
  })

  test('signs in with a phone, which approves on the service\u2019s own page', async () => {
    const { page } = await openApplication('127.0.0.1')
    const phone = (await browser.open()).page
    await page.evaluate(() => window.showCode())
    const code = qrCode(page.locator('main'))
    await code.waitFor()
    await reviewOnPhone(phone, code)
    await expectReview(phone, /^Sign in to /)
    await phone.locator('main section:visible').getByText('http://127.0.0.1').first().waitFor()
    const address = await addressOf(phone)
    await phone.getByRole('button', { name: 'Approve' }).click()
    await page.waitForFunction(() => window.signedIn !== undefined)
    expect(await page.evaluate(() => window.signedIn)).toBe(address)
    await reload(page)
    expect(await currentAddress(page)).toBe(address)
  })

  test('gets nowhere when the service does not trust it', async () => {
    provokes(/nonce/)
    const { page } = await openApplication('127.0.0.1', false)
    await expect(signIn(page, true)).rejects.toThrow('CountersignClientError')
    expect(await page.evaluate(() => window.client.readStoredToken())).toBe(undefined)
  })
})
