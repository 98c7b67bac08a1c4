import type { Locator, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { walletApps } from '../../src/browser/wallets/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { startService } from '../support/service.ts'
import { Desktop } from './desktop.ts'
import { expectHeading } from './flows.ts'
import { android, belowBars } from './phones.ts'
import { expectNoFaults, hasBrowser, provokes, useBrowser } from './support.ts'
import { injectEthereum } from './wallets/ethereum.ts'

const settings: CountersignOptions = { adapters: ['nimiq', 'ethereum', 'solana'], pages: { demoWallet: false } }

const phone = { ...android, ...belowBars }

async function openReview(page: Page, { order }: Desktop): Promise<void> {
  await page.goto(order.claimUrl)
  await page.getByRole('button', { name: 'Continue', exact: true }).click()
}

async function openPanel(page: Page, desktop: Desktop): Promise<void> {
  await openReview(page, desktop)
  await page.getByRole('button', { name: 'Continue in another browser' }).click()
  await page.getByLabel('Open this link').waitFor()
}

/** The rows of wallets' apps, once they are links. */
const appRows = (page: Page): Locator => page.getByRole('link', { name: /^Open in / })

/** The names of the rows, once there are that many. */
async function appNames(page: Page, count: number): Promise<string[]> {
  await expect.poll(() => appRows(page).count()).toBe(count)
  return (await appRows(page).allTextContents()).map((text) => text.slice('Open in '.length))
}

describe.skipIf(!hasBrowser)('from the camera’s browser to that of a wallet', () => {
  const browser = useBrowser()

  /** A phone that reviews an order of a new service. */
  async function reviewing(device = phone) {
    const { url } = await startService(settings)
    const { page } = await browser.open(device)
    await openReview(page, await Desktop.start(url))
    return { page }
  }

  test('the rows of the apps are links that their makers publish, to an address without a fragment, before any tap', async () => {
    const { page } = await reviewing()
    await page.getByRole('heading', { name: 'Continue in your wallet' }).waitFor()
    const names = ['Nimiq Pay', 'MetaMask', 'Coinbase Wallet', 'Trust Wallet', 'Phantom', 'Solflare']
    expect(await appNames(page, walletApps.length)).toEqual(names)
    await page.getByRole('button', { name: 'Continue in another browser' }).click()
    await expect.poll(() => page.getByLabel('Open this link').inputValue()).not.toBe('')
    const address = await page.getByLabel('Open this link').inputValue()
    expect(address).not.toContain('#')
    const links = await appRows(page).evaluateAll((all) => all.map((a) => (a as HTMLAnchorElement).href))
    expect(links).toEqual(names.map((name) => walletApps.find((app) => app.name === name)?.linkTo(address)))
  })

  test('each row is as wide as the page lets it be, has its wallet’s mark, and is high enough for a finger', async () => {
    const { page } = await reviewing()
    await appNames(page, walletApps.length)
    const wanted = (await page.locator('#wallet-list').boundingBox())!.width
    for (const row of await appRows(page).all()) {
      const box = (await row.boundingBox())!
      expect(box.width).toBeCloseTo(wanted, 0)
      expect(box.height).toBeGreaterThanOrEqual(48)
      const icon = row.locator('.icon')
      expect(await icon.locator('img').getAttribute('src')).toMatch(/^data:image\/svg/)
      expect((await icon.boundingBox())!.x - box.x).toBeLessThan(20)
    }
  })

  test('the button of the bar leads to the rows, and is gone where they are seen', async () => {
    const { page } = await reviewing({ ...phone, viewport: { width: 320, height: 480 } })
    // Not `click()`, which may scroll first.
    await page.getByRole('button', { name: 'Choose a wallet' }).evaluate((button) => (button as HTMLElement).click())
    await page.getByRole('button', { name: 'Choose a wallet' }).waitFor({ state: 'hidden' })
    const row = (await appRows(page).first().boundingBox())!
    expect(row.y + row.height).toBeLessThan((await page.locator('.bottom').boundingBox())!.y)
    expect(await page.getByRole('button', { name: 'Decline' }).isVisible()).toBe(true)
  })

  test('an order that asks for a kind of wallet is offered to its apps only; a computer is offered none', async () => {
    const { url } = await startService(settings)
    const { page } = await browser.open(phone)
    await openReview(page, await Desktop.start(url, { kind: 'login', adapterId: 'solana' }))
    expect(await appNames(page, 2)).toEqual(['Phantom', 'Solflare'])
    const computer = await browser.open()
    await openPanel(computer.page, await Desktop.start(url))
    expect(await appRows(computer.page).count()).toBe(0)
    // Without apps there is no link before it is asked for.
    const asked = computer.trail.requests.filter(({ url }) => url.endsWith('/hand-over'))
    expect(asked).toHaveLength(1)
  })

  test('a tap before the link is there opens the app as soon as it is; one that fails is tried again', async () => {
    provokes(/400 .*hand-over/)
    const { url } = await startService(settings)
    const { page } = await browser.open(phone)
    await page.route('**/cross-device/hand-over', (route) =>
      route.fulfill({ status: 400, json: { code: 'INVALID_REQUEST', message: 'broken' } }),
    )
    await openReview(page, await Desktop.start(url))
    const row = page.getByRole('button', { name: 'Open in Trust Wallet' })
    await row.click()
    await page.getByText('Something went wrong. Try again.').waitFor()
    await page.unroute('**/cross-device/hand-over')
    const opened = page.waitForRequest('https://link.trustwallet.com/**')
    await page.route('https://link.trustwallet.com/**', (route) => route.fulfill({ status: 204 }))
    await row.click()
    expect((await opened).url()).toContain(encodeURIComponent(`${url}/cross-device/continue/csh_`))
    await page.getByText('If the app didn’t open, tap again.').waitFor()
  })

  test('from scan to approved, it is two taps with a wallet in the browser', async () => {
    const { url } = await startService(settings)
    const here = await browser.open(phone)
    await injectEthereum(here.page.context(), { name: 'MetaMask', rdns: 'io.metamask' })
    await here.page.goto((await Desktop.start(url)).order.claimUrl)
    await here.page.getByRole('button', { name: 'Continue', exact: true }).click()
    await here.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(here.page, 'Approved')
  })

  test('a wallet that asks which account it is to be stands before the request; declined, it waits for a tap', async () => {
    const { url } = await startService(settings)
    const { page } = await browser.open(phone)
    const fox = await injectEthereum(page.context())
    fox.connects = 'decline'
    await openReview(page, await Desktop.start(url))
    await page.getByText('You declined in your wallet').waitFor()
    await page.getByRole('heading', { name: /^Sign in to / }).waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).isVisible()).toBe(false)
    fox.connects = 'sign'
    await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
    await page.getByRole('button', { name: 'Approve' }).waitFor()
  })

  test('a tap opens the app’s link in the same tab; the wallet’s browser approves, four taps from the scan, and the first one says where it went on', async () => {
    const { url } = await startService(settings)
    const camera = await browser.open(phone)
    const wallet = await browser.open(phone)
    const fox = await injectEthereum(wallet.page.context(), { name: 'MetaMask', rdns: 'io.metamask' })
    // Nobody answers under the app's address: the phone would open the app.
    const opened: string[] = []
    await camera.page.route('https://link.metamask.io/**', (route) => {
      opened.push(route.request().url())
      return route.fulfill({ status: 204 })
    })
    const desktop = await Desktop.start(url)
    await openReview(camera.page, desktop)
    await camera.page.getByRole('link', { name: 'Open in MetaMask' }).click()
    await expect.poll(() => opened.length).toBe(1)
    // The wallet opens what the link names.
    await wallet.page.goto(`http://${opened[0]!.slice('https://link.metamask.io/dapp/'.length)}`)
    await wallet.page.getByRole('button', { name: 'Continue', exact: true }).click()
    await wallet.page.getByText('Continued from another browser').waitFor()
    await expectHeading(camera.page, 'Continued in your wallet')
    await wallet.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(wallet.page, 'Approved')
    expect((await desktop.finalize()).json.session.address).toBe(fox.address)
    expectNoFaults(camera.trail, wallet.trail)
  })

  test('the link works as long as it is shown: a new one takes its place before it ends', async () => {
    const { url } = await startService({ ...settings, orderTtlSeconds: 300 })
    const camera = await browser.open(phone)
    const other = await browser.open(phone)
    await camera.page.clock.install()
    await openPanel(camera.page, await Desktop.start(url))
    const link = camera.page.getByLabel('Open this link')
    const first = await link.inputValue()
    await camera.page.clock.runFor(45_000)
    await expect.poll(() => link.inputValue()).not.toBe(first)
    const second = await link.inputValue()
    expect(second).toContain('/cross-device/continue/csh_')
    expect(await appRows(camera.page).first().getAttribute('href')).toContain(encodeURIComponent(second))
    await other.page.goto(second)
    await other.page.getByRole('button', { name: 'Continue', exact: true }).click()
    await other.page.getByText('Continued from another browser').waitFor()
  })

  test('a tap while the link for the apps is being made gets that link, and a decline does not wait for it', async () => {
    // The link that comes after the decline.
    provokes(/409 .*hand-over/)
    const { url } = await startService(settings)
    /** A phone whose link is not made before `made` is called, and whose user has asked for it. */
    const waiting = async () => {
      const { page, trail } = await browser.open(phone)
      const { promise, resolve: made } = Promise.withResolvers<void>()
      await page.route('**/cross-device/hand-over', async (route) => {
        await promise
        await route.continue()
      })
      const asked = () => trail.requests.filter(({ url }) => url.endsWith('/hand-over')).length
      await openReview(page, await Desktop.start(url))
      await expect.poll(asked).toBe(1)
      await page.getByRole('button', { name: 'Continue in another browser' }).click()
      return { page, asked, made }
    }
    const { page, asked, made } = await waiting()
    made()
    await page.getByLabel('Open this link').waitFor()
    expect(await page.getByLabel('Open this link').inputValue()).toContain('/cross-device/continue/csh_')
    expect(asked()).toBe(1)
    const other = await waiting()
    await other.page.getByRole('button', { name: 'Decline' }).click()
    await expectHeading(other.page, 'Declined')
    other.made()
  })

  test('a link that was taken is not voided by a new one', async () => {
    const { url } = await startService({ ...settings, orderTtlSeconds: 300 })
    const camera = await browser.open(phone)
    const other = await browser.open(phone)
    await camera.page.clock.install()
    await camera.page.route('https://link.metamask.io/**', (route) => route.fulfill({ status: 204 }))
    await openPanel(camera.page, await Desktop.start(url))
    const first = await camera.page.getByLabel('Open this link').inputValue()
    await camera.page.getByRole('link', { name: 'Open in MetaMask' }).click()
    await camera.page.clock.runFor(45_000)
    expect(await camera.page.getByLabel('Open this link').inputValue()).toBe(first)
    expect(camera.trail.requests.filter(({ url }) => url.endsWith('/hand-over'))).toHaveLength(1)
    await other.page.goto(first)
    await other.page.getByRole('button', { name: 'Continue', exact: true }).click()
    await other.page.getByText('Continued from another browser').waitFor()
  })

  test('a wallet’s browser that is given the QR code’s address goes on with its fragment, and without it says what to do', async () => {
    const { url } = await startService(settings)
    const desktop = await Desktop.start(url)
    const wallet = await browser.open(phone)
    await injectEthereum(wallet.page.context())
    await wallet.page.goto(desktop.order.claimUrl.split('#')[0]!)
    await expectHeading(wallet.page, 'This link is incomplete')
    await wallet.page.getByText('with your phone’s camera').waitFor()
    expect(wallet.trail.requests.filter(({ url }) => url.includes('/api/'))).toEqual([])
    await wallet.page.goto(desktop.order.claimUrl)
    await wallet.page.getByRole('button', { name: 'Continue', exact: true }).click()
    await wallet.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(wallet.page, 'Approved')
  })
})
