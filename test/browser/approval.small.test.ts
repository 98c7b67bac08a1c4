import { describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import {
  approve,
  phoneSize,
  returnCode,
  reviewingIn,
  seen,
  signedIn,
  usual,
  windows,
  wrongOf,
} from './approval-steps.ts'
import { Desktop } from './desktop.ts'
import { codeOnPhone, expectHeading, expectReview, handOverLink } from './flows.ts'
import { hasBrowser, type Trail, useBrowser } from './support.ts'

const previews = (trail: Trail): string[] =>
  trail.requests
    .filter(({ url }) => url.includes('/api/'))
    .map(({ method, url }) => `${method} ${new URL(url).pathname}`)

describe.skipIf(!hasBrowser)('on a phone,', () => {
  const browser = useBrowser()
  const reviewing = reviewingIn(browser)

  test('who asks comes first: the headline is never the requester’s own, and what it writes is quoted after who it is', async () => {
    const { page } = await reviewing(
      {},
      {
        kind: 'login',
        displayTitle: 'Claim your   100 NIM\u2003reward',
        displaySummary: 'Countersign  says:  tap Approve',
      },
      { headers: { 'user-agent': windows } },
    )
    await expectReview(page, /^Sign in to /)
    await page.getByText('Anyone at that computer is then signed in as you.').waitFor()
    const text = await seen(page)
    expect(text).toMatch(
      /^Sign in to http:\/\/localhost:\d+\? .*Chrome on Windows · just now.* Were you just on http:\/\/localhost:\d+\? .* Message from the site: Claim your 100 NIM reward Countersign says: tap Approve/,
    )
    expect(await page.locator('.says-title').textContent()).toBe('Claim your 100 NIM reward')
    const quotes = await page
      .locator('blockquote > p')
      .evaluateAll((all) => all.map((line) => getComputedStyle(line, '::before').content))
    expect(quotes).toEqual(['open-quote', 'open-quote'])
    const sizes = await page.evaluate(() => {
      const size = (selector: string) => Number.parseFloat(getComputedStyle(document.querySelector(selector)!).fontSize)
      return { site: size('h1 bdi'), title: size('.says-title'), summary: size('blockquote p:last-child') }
    })
    expect(sizes.site).toBeGreaterThan(Math.max(sizes.title, sizes.summary) * 1.3)
  })

  test('a link does not choose the language of the warnings', async () => {
    const { url } = await startService()
    const desktop = await Desktop.start(url)
    const { page } = await browser.open({ viewport: phoneSize })
    const link = new URL(desktop.order.claimUrl)
    link.searchParams.set('ui_locales', 'de')
    await page.goto(link.href)
    await expectHeading(page, /^Sign in to /)
    expect(await page.locator('html').getAttribute('lang')).toBe('en-GB')
  })

  test('the first screen shows host, device and digits above two buttons, and takes nothing', async () => {
    const { url } = await startService()
    const desktop = await Desktop.start(url, usual, { headers: { 'user-agent': windows } })
    const { page, trail } = await browser.open({ viewport: phoneSize })
    await page.goto(desktop.order.claimUrl)
    await expectHeading(page, /^Sign in to /)
    const request = page.locator('#request')
    await request.getByRole('heading').getByText(new URL(url).host).waitFor()
    await request.getByText('Chrome on Windows').waitFor()
    expect(await codeOnPhone(page)).toBe(desktop.order.confirmationCode)
    expect(await page.getByRole('button').filter({ visible: true }).allTextContents()).toEqual(['Not me', 'Continue'])
    await page.getByText(/^Expires in (2:00|1:5\d)\. Then get a new code on your computer\.$/).waitFor()
    expect(new Set(previews(trail))).toEqual(new Set(['GET /api/auth/cross-device/preview']))
  })

  test('the return code: the phone shows it after the approval, says what the computer did, and can end the session', async () => {
    const { url, desktop, page } = await reviewing({ confirmationCode: 'return' })
    await page.getByText('Don’t share it with anyone').waitFor()
    expect(await page.locator('.code-box').filter({ visible: true }).count()).toBe(0)
    await approve(page)
    const code = await returnCode(page)
    expect(code).toMatch(/^\d{6}$/)
    await expectHeading(page, `Enter this code only at ${url}`)
    expect(await page.locator('#return-code .spoken').textContent()).toBe([...code].join(' '))
    await page.getByText(/^Expires in (3:00|2:[345]\d)$/).waitFor()
    expect((await desktop.finalize()).json.code).toBe('RETURN_CODE_REQUIRED')
    expect((await desktop.finalize(wrongOf(code))).json.code).toBe('RETURN_CODE_WRONG')
    const { token } = (await desktop.finalize(code)).json
    await expectHeading(page, signedIn)
    expect(await page.locator('#return-code').textContent()).toBe('')
    expect(await desktop.isSignedIn(token)).toBe(true)
    await page.getByRole('button', { name: 'Not you? Sign that computer out' }).click()
    await expectHeading(page, 'Signed out')
    expect(await desktop.isSignedIn(token)).toBe(false)
    expect((await desktop.finalize(code)).json.code).toBe('ORDER_REJECTED')
  })

  test('taking back works before the computer has finished', async () => {
    const { desktop, page } = await reviewing({})
    await approve(page)
    await page.getByRole('button', { name: 'Not you? Cancel it' }).click()
    await expectHeading(page, 'Cancelled')
    expect((await desktop.finalize()).json.code).toBe('ORDER_REJECTED')
  })

  test('another browser can go on after a tap; the first one can then only stop it', async () => {
    const { url, desktop, page } = await reviewing({ confirmationCode: 'return' })
    await page.getByRole('button', { name: 'Continue in another browser' }).click()
    const link = await handOverLink(page)
    expect(link.startsWith(`${url}/cross-device/continue/csh_`)).toBe(true)
    const ticket = link.split('/').at(-1)!
    const other = await browser.open({ viewport: phoneSize })
    await other.page.goto(link)
    await expectHeading(other.page, 'Continue here?')
    await other.page.waitForLoadState('networkidle')
    expect(other.trail.requests.filter(({ method }) => method !== 'GET')).toEqual([])
    expect(other.trail.requests.filter(({ url }) => url.includes('/api/'))).toEqual([])
    expect(other.page.url()).not.toContain(ticket)
    expect(await other.page.locator('html').innerHTML()).not.toContain(ticket)
    await other.page.reload()
    await other.page.getByRole('button', { name: 'Continue', exact: true }).click()
    await other.page.getByText('Continued from another browser').waitFor()
    await expectHeading(other.page, /^Sign in to /)
    const elsewhere = other.trail.requests.filter(({ url }) => url.includes(ticket))
    expect(elsewhere.map(({ url }) => url)).toEqual([link])
    expect(other.trail.requests.filter(({ referer }) => referer !== undefined)).toEqual([])

    await expectHeading(page, 'Continued in another browser')
    await approve(other.page)
    const code = await returnCode(other.page)
    const { token } = (await desktop.finalize(code)).json
    await expectHeading(other.page, signedIn)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await expectHeading(page, 'Signed out')
    expect(await desktop.isSignedIn(token)).toBe(false)
  })
})
