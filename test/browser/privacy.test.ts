import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { type ServiceProcess, spawnService, startService } from '../support/service.ts'
import {
  approvedHeading,
  expectHeading,
  expectReview,
  expectSignedIn,
  handOverLink,
  openForPhone,
  qrCode,
  reviewOnPhone,
  signCard,
} from './flows.ts'
import { serveSite } from './other-site.ts'
import { expectNoFaults, hasBrowser, provokes, useBrowser } from './support.ts'

/** The tokens in the answers that a page gets, streams aside. */
function collectTokens(page: Page, tokens: Set<string>): void {
  page.on('response', async (response) => {
    if (!/json/.test(response.headers()['content-type'] ?? '')) return
    const text = await response.text().catch(() => '')
    for (const [token] of text.matchAll(/cs[a-z]_[A-Za-z0-9_-]{43}/g)) tokens.add(token)
  })
}

async function spawnLogged(): Promise<ServiceProcess> {
  return await spawnService({ COUNTERSIGN_STORE: 'sqlite::memory:', LOG_LEVEL: 'debug' })
}

async function startOrder(url: string, order: object = { kind: 'login' }): Promise<Record<string, string>> {
  return (await rest(url, '/cross-device/start', order)).json
}

describe.skipIf(!hasBrowser)('what leaves a page and what comes in', () => {
  const browser = useBrowser()

  test('link previews claim nothing, not even those that run scripts', async () => {
    const { url } = await startService()
    const { claimUrl, orderId, claimToken } = await startOrder(url)
    for (let times = 0; times < 10; times++) {
      const response = await fetch(claimUrl!, { method: times % 2 === 0 ? 'GET' : 'HEAD' })
      expect(response.status).toBe(200)
    }
    const preview = await browser.open()
    await preview.page.goto(claimUrl!)
    await preview.page.waitForLoadState('networkidle')
    expect(preview.trail.requests.filter(({ method }) => method !== 'GET')).toEqual([])
    const claimed = await rest(url, '/cross-device/claim', { orderId, claimToken })
    expect([claimed.status, claimed.json.status]).toEqual([200, 'claimed'])
  })

  test('the token leaves the address bar at once, and no way back leads to it', async () => {
    const { url } = await startService()
    const { claimUrl, claimToken } = await startOrder(url)
    const { page } = await browser.open()
    await page.goto(url)
    await page.goto(claimUrl!)
    await page.getByRole('button', { name: 'Continue', exact: true }).waitFor()
    expect(page.url()).toBe(claimUrl!.split('#')[0])
    await page.goBack()
    await page.goForward()
    await page.getByRole('button', { name: 'Continue', exact: true }).waitFor()
    expect(await page.evaluate(() => document.URL)).not.toContain(claimToken)
    expect(await page.locator('html').innerHTML()).not.toContain(claimToken)
  })

  test('no token is in a URL, a Referer or the log', async () => {
    const service = await spawnLogged()
    const desktop = await browser.open()
    const phone = await browser.open()
    const tokens = new Set<string>()
    for (const { page } of [desktop, phone]) collectTokens(page, tokens)
    const claimUrls = [await reviewOnPhone(phone.page, await openForPhone(desktop.page, service.url))]
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await expectSignedIn(desktop.page)
    await signCard(desktop.page).getByRole('button', { name: 'Ask the phone' }).click()
    claimUrls.push(await reviewOnPhone(phone.page, qrCode(signCard(desktop.page))))
    await phone.page.getByRole('button', { name: 'Decline' }).click()
    await expectHeading(phone.page, 'Declined')
    // And one that fails, which the log has a line for.
    await phone.page.goto(claimUrls[0]!)
    await expectHeading(phone.page, 'This request is complete')
    provokes(/net::ERR/)
    expect(await service.stop()).toBe(0)
    expect(new Set([...tokens].map((token) => token.slice(0, 4)))).toEqual(new Set(['csc_', 'csp_', 'csd_', 'css_']))
    const log = service.log()
    expect(log).toContain('ORDER_FINALIZED')
    const requests = [...desktop.trail.requests, ...phone.trail.requests]
    for (const token of tokens) {
      expect(log).not.toContain(token)
      const inUrl = requests.filter(({ url }) => url.includes(token)).map(({ url }) => url)
      // The address that was scanned: what a browser sends of it ends before the fragment.
      expect(inUrl.filter((url) => !claimUrls.includes(url))).toEqual([])
    }
    expect(requests.filter(({ referer }) => referer !== undefined)).toEqual([])
    expectNoFaults(desktop.trail, phone.trail)
  })

  test('the ticket of a hand-over is in no log, cache or Referer, however its address is used', async () => {
    const service = await spawnLogged()
    const { claimUrl } = await startOrder(service.url)
    const { page } = await browser.open()
    await page.goto(claimUrl!)
    await page.getByRole('button', { name: 'Continue', exact: true }).click()
    await page.getByRole('button', { name: 'Continue in another browser' }).click()
    const link = await handOverLink(page)
    const answer = await fetch(link)
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
    await fetch(link, { method: 'POST', body: '{}' })
    for (const address of [`${link}/`, `${link}?x=1`, `${link}%20`, link.replace('/cross-device', '//cross-device')]) {
      await fetch(address)
    }
    const ticket = link.split('/').at(-1)!
    const refused = { ticket: ticket.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')) }
    expect((await rest(service.url, '/cross-device/redeem', refused)).json.code).toBe('HANDOVER_INVALID')
    const taker = await browser.open()
    await taker.page.goto(link)
    await taker.page.getByRole('button', { name: 'Continue', exact: true }).click()
    await taker.page.getByRole('button', { name: 'Approve' }).waitFor()
    expect(taker.trail.requests.filter(({ referer }) => referer !== undefined)).toEqual([])
    provokes(/net::ERR/)
    expect(await service.stop()).toBe(0)
    expect(service.log()).toContain('HANDOVER_INVALID')
    for (const secret of [ticket, refused.ticket]) expect(service.log()).not.toContain(secret.slice(0, 40))
    expectNoFaults(taker.trail)
  })

  test('what a desktop writes into an order stays text', async () => {
    const { url } = await startService()
    const markup = '<img src=x onerror="document.body.dataset.broken=1"><h1>Free money</h1>'
    const { claimUrl } = await startOrder(url, {
      kind: 'sign',
      displayTitle: markup,
      displaySummary: `{{appName}} ${markup}`,
    })
    const { page, trail } = await browser.open()
    await page.goto(claimUrl!)
    await page.getByRole('button', { name: 'Continue', exact: true }).click()
    await expectReview(page, /^Sign for /)
    await page.locator('blockquote').getByText(markup, { exact: true }).waitFor()
    expect(await page.locator('main img[src="x"]').count()).toBe(0)
    expect(await page.evaluate(() => document.body.dataset.broken)).toBe(undefined)
    expectNoFaults(trail)
  })

  test('the pages run no script but their own, and load from and connect to nowhere else', async () => {
    provokes(/violates|Trusted/)
    const { url } = await startService()
    const { url: site } = await serveSite('document.documentElement.dataset.broken = "loaded"')
    const { page, trail } = await browser.open()
    // Markup that got into a page on the server, under the server's own headers.
    await page.route(`${url}/`, async (route) => {
      const response = await route.fetch()
      const added = `<script>document.documentElement.dataset.broken = "inline"</script><script src="${site}"></script>
        <img src="${site}" onerror="document.documentElement.dataset.broken = 'handler'"><base href="${site}">`
      await route.fulfill({ response, body: (await response.text()).replace('<main>', `${added}<main>`) })
    })
    await page.goto(url)
    await page.getByRole('region', { name: 'Sign in', exact: true }).waitFor()
    expect(await page.evaluate(() => document.documentElement.dataset.broken)).toBe(undefined)
    expect(trail.faults).toHaveLength(5)
    // And what a script of its own might be talked into.
    const attempts = {
      markup: () => document.body.insertAdjacentHTML('beforeend', '<p>markup</p>'),
      handler: () => document.body.setAttribute('onclick', 'alert(1)'),
    }
    for (const attempt of Object.values(attempts)) await expect(page.evaluate(attempt)).rejects.toThrow('TypeError')
    await page.unroute(`${url}/`)
    await page.reload()
    await expect(page.evaluate((site) => fetch(site).then(() => {}), site)).rejects.toThrow('TypeError')
    await expect.poll(() => trail.faults.join()).toContain('connect-src')
  })

  test('no other site can frame the pages', async () => {
    provokes(/frame-ancestors/)
    const { url } = await startService()
    const { claimUrl } = await startOrder(url)
    const { url: site } = await serveSite(`<iframe src="${claimUrl}"></iframe><iframe src="${url}"></iframe>`)
    const { page } = await browser.open()
    await page.goto(site)
    await expect.poll(() => page.frames().length).toBe(3)
    await page.waitForLoadState('networkidle')
    for (const frame of page.frames().slice(1)) expect(await frame.locator('main').count()).toBe(0)
  })

  test('a phone on another origin than the desktop’s approves on the service’s own page', async () => {
    const { url } = await startService({ trustedOrigins: ['https://shop.example'] })
    const order = (await rest(url, '/cross-device/start', { kind: 'login' }, { origin: 'https://shop.example' })).json
    const { page } = await browser.open()
    await page.goto(order.claimUrl)
    await page.getByRole('button', { name: 'Continue', exact: true }).click()
    await expectReview(page, /^Sign in to /)
    await page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(page, approvedHeading)
  })
})
