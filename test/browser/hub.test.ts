import type { Page } from 'playwright-core'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { hasPart } from '../support/optional.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { Desktop } from './desktop.ts'
import { expectHeading, expectSignedIn, showWallets } from './flows.ts'
import { startHttpsService } from './https.ts'
import { belowBars, iPhone } from './phones.ts'
import { expectNoFaults, hasBrowser, provokes, useBrowser } from './support.ts'
import { expectAsked, hubOrigin, hubWindow, serveHub } from './wallets/hub.ts'

const settings: CountersignOptions = { adapters: ['nimiq'], pages: { demoWallet: false } }

const phone = { ...iPhone, ...belowBars }

/** Reviews a request and chooses the Hub. */
async function review(page: Page, { order }: Desktop): Promise<void> {
  await page.goto(order.claimUrl)
  await page.getByRole('button', { name: 'Continue', exact: true }).click()
  await chooseHub(page)
  await page.getByRole('button', { name: 'Approve' }).waitFor()
}

async function chooseHub(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Nimiq Hub' }).click()
}

async function click(page: Page, name: 'Approve' | 'Sign' | 'Cancel'): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click()
}

/** What the session storage of a tab has. */
async function kept(page: Page): Promise<string[]> {
  return await page.evaluate(() => Object.keys(sessionStorage))
}

describe.skipIf(!hasBrowser)('with the Nimiq Hub', () => {
  const browser = useBrowser()
  afterEach(() => void vi.useRealTimers())

  async function opened(more: CountersignOptions = {}) {
    const { url } = await startService({ ...settings, ...more })
    const { page, trail } = await browser.open()
    const hub = await serveHub(page.context())
    const start = (order?: object) => Desktop.start(url, order)
    return { url, start, page, trail, hub }
  }

  /** A phone. `local` is where its computer reaches the service: it does not trust the certificate. */
  async function openedOnPhone(more: CountersignOptions = {}) {
    const { url, local } = await startHttpsService({ ...settings, ...more })
    const { page, trail } = await browser.open({ ...phone, ignoreHTTPSErrors: true })
    const hub = await serveHub(page.context())
    const start = (order: object = { kind: 'login' }) => Desktop.start(local, order, { headers: { origin: url } })
    return { url, start, page, trail, hub }
  }

  const ways = [
    {
      way: 'in a window of its own,',
      skip: false,
      open: opened,
      /** The Hub's page, once it was asked. */
      hubOf: (page: Page) => hubWindow(page.context()),
      leave: (hub: Page): Promise<unknown> => hub.close(),
    },
    {
      way: 'in place of the page, on a phone,',
      skip: !hasPart('openssl'),
      open: openedOnPhone,
      hubOf: async (page: Page) => {
        await expectAsked(page)
        return page
      },
      leave: (hub: Page): Promise<unknown> => hub.goBack(),
    },
  ]

  for (const { way, skip, open, hubOf, leave } of ways) {
    describe.skipIf(skip)(way, () => {
      test('a user signs in: not if they cancel or leave, and with whichever account they choose there', async () => {
        const { url, page, trail, hub } = await open()
        await page.goto(url)
        if (open === opened) await showWallets(page)
        await chooseHub(page)
        await click(await hubOf(page), 'Cancel')
        await page.getByText('You declined in your wallet').waitFor()
        await chooseHub(page)
        await leave(await hubOf(page))
        await page.getByText('The wallet was closed without an answer').waitFor()
        hub.wallet = makeWallet()
        await chooseHub(page)
        await click(await hubOf(page), 'Sign')
        await expectSignedIn(page, hub.wallet.address)
        expect(page.url()).toBe(`${url}/`)
        expect(await kept(page)).toEqual([])
        expect(hub.requests.map(({ origin, appName }) => [origin, appName])).toEqual(
          Array(3).fill([url, 'Countersign']),
        )
        const elsewhere = trail.requests.filter(
          ({ referer }) => referer !== undefined && new URL(referer).origin !== url,
        )
        expect(elsewhere.every(({ referer }) => referer?.startsWith(hubOrigin))).toBe(true)
        expectNoFaults(trail)
      })

      test('a user approves: not if they cancel or leave, and with whichever account they choose there', async () => {
        provokes(/403 .*approve/)
        const { start, page, hub } = await open()
        const other = makeWallet()
        const expected = { adapterId: 'nimiq', expectedAddress: other.address }
        const desktop = await start({ kind: 'sign', displayTitle: 'Sell the house', ...expected })
        await review(page, desktop)
        await click(page, 'Approve')
        await click(await hubOf(page), 'Cancel')
        await page.getByText('You declined in your wallet').waitFor()
        await click(page, 'Approve')
        await leave(await hubOf(page))
        await page.getByText('The wallet closed without an answer').waitFor()
        await click(page, 'Approve')
        await click(await hubOf(page), 'Sign')
        await page.getByText('This request is for another wallet').waitFor()
        expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
        hub.wallet = other
        await click(page, 'Approve')
        await click(await hubOf(page), 'Sign')
        await expectHeading(page, 'Approved')
        expect((await desktop.finalize()).json.proofArtifact.address).toBe(other.address)
      })

      test('that answers after the request expired, nothing is approved, and the page says so', async () => {
        const { start, page } = await open()
        const desktop = await start()
        await review(page, desktop)
        await click(page, 'Approve')
        const hub = await hubOf(page)
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 125_000 })
        if (hub !== page) await expectHeading(page, 'The request expired while your wallet was signing')
        await click(hub, 'Sign')
        await expectHeading(page, 'The request expired while your wallet was signing')
        expect((await desktop.finalize()).json.code).toBe('ORDER_EXPIRED')
      })
    })
  }

  describe.skipIf(!hasPart('openssl'))('on the way to it and back, on a phone,', () => {
    test('a user approves, and what was chosen on the page counts', async () => {
      const { start, page, trail, hub } = await openedOnPhone()
      const desktop = await start()
      await review(page, desktop)
      await click(page, 'Approve')
      await expectAsked(page)
      await click(page, 'Sign')
      await expectHeading(page, 'Approved')
      expect((await desktop.finalize()).json.session.address).toBe(hub.wallet.address)
      await expectHeading(page, 'Your computer is signed in')
      expect(page.url()).not.toContain('rpcId')
      // What is left is for taking it back.
      expect(await kept(page)).toEqual(['countersign.claim'])
      expectNoFaults(trail)
    })

    test('a page that was not sent there takes no answer from an address', async () => {
      const { start, page, hub } = await openedOnPhone()
      const desktop = await start()
      await review(page, desktop)
      const result = JSON.stringify({ signer: hub.wallet.address })
      // A change of the fragment makes the page load again.
      await page.goto(`${page.url()}#id=1&status=ok&result=${encodeURIComponent(result)}`)
      await page.getByRole('button', { name: 'Decline' }).waitFor()
      expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
    })
  })
})
