import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/index.ts'
import { hasPart } from '../support/optional.ts'
import { startService } from '../support/service.ts'
import { Desktop } from './desktop.ts'
import { expectHeading, expectSignedIn } from './flows.ts'
import { startHttpsService } from './https.ts'
import { expectNoFaults, hasChromium, useBrowser } from './support.ts'
import { expectAsked, hubOrigin, hubWindow, serveHub } from './wallets/hub.ts'

const settings: CountersignOptions = { adapters: ['nimiq'], demoWallet: false }

const iPhone: BrowserContextOptions = {
  viewport: { width: 390, height: 664 },
  isMobile: true,
  hasTouch: true,
  userAgent:
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
}

/** Reviews a request and chooses the Hub. */
async function review(page: Page, { order }: Desktop): Promise<void> {
  await page.goto(order.claimUrl)
  await page.getByRole('button', { name: 'Review the request' }).click()
  await chooseHub(page)
  await page.getByRole('button', { name: 'Approve' }).waitFor()
}

async function chooseHub(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Nimiq Hub' }).click()
}

async function approve(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Approve' }).click()
}

/** What the session storage of a tab has. */
async function kept(page: Page): Promise<string[]> {
  return await page.evaluate(() => Object.keys(sessionStorage))
}

describe.skipIf(!hasChromium)('with the Nimiq Hub', () => {
  const browser = useBrowser()
  afterEach(() => {
    vi.useRealTimers()
  })

  async function opened(more: CountersignOptions = {}) {
    const { url } = await startService({ ...settings, ...more })
    const { page, trail } = await browser.open()
    const hub = await serveHub(page.context())
    return { url, page, trail, context: page.context(), hub }
  }

  /** A phone. `local` is where its computer reaches the service: it does not trust the certificate. */
  async function openedOnPhone(more: CountersignOptions = {}) {
    const { url, local } = await startHttpsService({ ...settings, ...more })
    const { page, trail } = await browser.open({ ...iPhone, ignoreHTTPSErrors: true })
    const hub = await serveHub(page.context())
    const start = () => Desktop.start(local, { kind: 'login' }, { headers: { origin: url } })
    return { url, start, page, trail, hub }
  }

  describe('in a window of its own,', () => {
    test('a user signs in, and approves', async () => {
      const { url, page, trail, context, hub } = await opened()
      await page.goto(url)
      await chooseHub(page)
      const first = await hubWindow(context)
      await page.getByText('Look at Nimiq Hub').waitFor()
      await first.getByRole('button', { name: 'Sign' }).click()
      await expectSignedIn(page, hub.wallet.address)

      const desktop = await Desktop.start(url)
      await review(page, desktop)
      await page.getByText('Nimiq Hub opens when you approve').waitFor()
      await approve(page)
      await (await hubWindow(context)).getByRole('button', { name: 'Sign' }).click()
      await expectHeading(page, 'Approved')
      expect((await desktop.finalize()).json.session.address).toBe(hub.wallet.address)
      expect(hub.requests.map(({ origin, appName }) => [origin, appName])).toEqual([
        [url, 'Countersign'],
        [url, 'Countersign'],
      ])
      expectNoFaults(trail)
    })

    test('cancelled or closed there, nothing is approved, and the user can go on', async () => {
      const { url, page, context } = await opened()
      const desktop = await Desktop.start(url)
      await review(page, desktop)
      await approve(page)
      await (await hubWindow(context)).getByRole('button', { name: 'Cancel' }).click()
      await page.getByText('You declined in your wallet').waitFor()
      await approve(page)
      await (await hubWindow(context)).close()
      await page.getByText('The wallet closed without an answer').waitFor()
      expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
      await approve(page)
      await (await hubWindow(context)).getByRole('button', { name: 'Sign' }).click()
      await expectHeading(page, 'Approved')
    })

    test('that answers after the request expired, nothing is approved', async () => {
      const { url, page, context } = await opened()
      const desktop = await Desktop.start(url)
      await review(page, desktop)
      await approve(page)
      const hub = await hubWindow(context)
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 125_000 })
      await expectHeading(page, 'The request expired while your wallet was signing')
      await hub.getByRole('button', { name: 'Sign' }).click()
      expect((await desktop.finalize()).json.code).toBe('ORDER_EXPIRED')
      await expectHeading(page, 'The request expired while your wallet was signing')
    })
  })

  describe.skipIf(!hasPart('openssl'))('in place of the page, on a phone,', () => {
    test('a user signs in', async () => {
      const { url, page, trail, hub } = await openedOnPhone()
      await page.goto(url)
      await chooseHub(page)
      await expectAsked(page)
      await page.getByRole('button', { name: 'Sign' }).click()
      await expectSignedIn(page, hub.wallet.address)
      expect(page.url()).toBe(`${url}/`)
      expect(await kept(page)).toEqual([])
      expect(trail.requests.filter(({ referer }) => referer !== undefined && !referer.startsWith(hubOrigin))).toEqual([
        expect.objectContaining({ referer: `${url}/` }),
      ])
      expectNoFaults(trail)
    })

    test('a user approves, and what was chosen on the page counts', async () => {
      const { start, page, trail, hub } = await openedOnPhone({ confirmationCode: 'required' })
      const desktop = await start()
      await review(page, desktop)
      await page.getByLabel('Enter the code').fill(desktop.order.confirmationCode)
      await approve(page)
      await expectAsked(page)
      await page.getByRole('button', { name: 'Sign' }).click()
      await expectHeading(page, 'Approved')
      expect((await desktop.finalize()).json.session.address).toBe(hub.wallet.address)
      await expectHeading(page, 'Your computer is signed in')
      expect(page.url()).not.toContain('rpcId')
      // What is left is for taking it back.
      expect(await kept(page)).toEqual(['countersign.claim'])
      expectNoFaults(trail)
    })

    test('cancelled there, or left by the way back, nothing is approved, and the user can go on', async () => {
      const { start, page } = await openedOnPhone()
      const desktop = await start()
      await review(page, desktop)
      await approve(page)
      await expectAsked(page)
      await page.getByRole('button', { name: 'Cancel' }).click()
      await page.getByText('You declined in your wallet').waitFor()
      await approve(page)
      await expectAsked(page)
      await page.goBack()
      await page.getByText('The wallet closed without an answer').waitFor()
      expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
      await approve(page)
      await expectAsked(page)
      await page.getByRole('button', { name: 'Sign' }).click()
      await expectHeading(page, 'Approved')
    })

    test('that takes longer than the request lives, the page says so on the way back', async () => {
      const { start, page } = await openedOnPhone()
      const desktop = await start()
      await review(page, desktop)
      await approve(page)
      await expectAsked(page)
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 125_000 })
      await page.getByRole('button', { name: 'Sign' }).click()
      await expectHeading(page, 'The request expired while your wallet was signing')
      expect((await desktop.finalize()).json.code).toBe('ORDER_EXPIRED')
    })

    test('a page that was not sent there takes no answer from an address', async () => {
      const { start, page, hub } = await openedOnPhone()
      const desktop = await start()
      await review(page, desktop)
      const result = JSON.stringify({ signer: hub.wallet.address })
      // A change of the fragment makes the page load again.
      await page.goto(`${page.url()}#id=1&status=ok&result=${encodeURIComponent(result)}`)
      await page.getByRole('button', { name: 'Review the request' }).waitFor()
      expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
    })
  })
})
