import type { BrowserContextOptions, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { walletApps } from '../../src/browser/wallets/index.ts'
import type { FlatOptions } from '../../src/service/config.ts'
import { startService } from '../support/service.ts'
import { Desktop } from './desktop.ts'
import { expectHeading } from './flows.ts'
import { expectNoFaults, hasBrowser, useBrowser } from './support.ts'
import { injectEthereum } from './wallets/ethereum.ts'

const settings: FlatOptions = { adapters: ['nimiq', 'ethereum', 'solana'], demoWallet: false }

const phone: BrowserContextOptions = {
  viewport: { width: 390, height: 664 },
  isMobile: true,
  hasTouch: true,
  userAgent:
    'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36',
}

async function openPanel(page: Page, { order }: Desktop): Promise<void> {
  await page.goto(order.claimUrl)
  await page.getByRole('button', { name: 'Review the request' }).click()
  await page.getByRole('button', { name: 'Open in another browser or wallet' }).click()
  await page.getByLabel('Open this link').waitFor()
}

describe.skipIf(!hasBrowser)('from the camera’s browser to that of a wallet', () => {
  const browser = useBrowser()

  test('the links of the apps are those that their makers publish, to an address without a fragment', async () => {
    const { url } = await startService(settings)
    const { page } = await browser.open(phone)
    await openPanel(page, await Desktop.start(url))
    const address = await page.getByLabel('Open this link').inputValue()
    expect(address).not.toContain('#')
    const links = await page
      .locator('#hand-over-apps a')
      .evaluateAll((all) => all.map((a) => (a as HTMLAnchorElement).href))
    expect(links).toEqual(walletApps.map((app) => app.linkTo(address)))
    expect(await page.locator('#hand-over-apps a').allTextContents()).toEqual(walletApps.map(({ name }) => name))
  })

  test('an order that asks for a kind of wallet is offered to its apps only; a computer is offered none', async () => {
    const { url } = await startService(settings)
    const { page } = await browser.open(phone)
    await openPanel(page, await Desktop.start(url, { kind: 'login', adapterId: 'solana' }))
    expect(await page.locator('#hand-over-apps a').allTextContents()).toEqual(['Phantom', 'Solflare'])
    const computer = await browser.open()
    await openPanel(computer.page, await Desktop.start(url))
    expect(await computer.page.locator('#hand-over-apps a').count()).toBe(0)
  })

  test('a tap opens the app’s link in the same tab; the wallet’s browser approves, and the first one says where it went on', async () => {
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
    await openPanel(camera.page, desktop)
    await camera.page.getByRole('link', { name: 'MetaMask' }).click()
    await expect.poll(() => opened.length).toBe(1)
    // The wallet opens what the link names.
    await wallet.page.goto(`http://${opened[0]!.slice('https://link.metamask.io/dapp/'.length)}`)
    await wallet.page.getByRole('button', { name: 'Continue here' }).click()
    await wallet.page.getByText('Continued from another browser').waitFor()
    await expectHeading(camera.page, 'Continued in your wallet')
    await wallet.page.getByRole('button', { name: 'Continue with MetaMask' }).click()
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
    expect(await camera.page.locator('#hand-over-apps a').first().getAttribute('href')).toContain(
      encodeURIComponent(second),
    )
    await other.page.goto(second)
    await other.page.getByRole('button', { name: 'Continue here' }).click()
    await other.page.getByText('Continued from another browser').waitFor()
  })

  test('a link that was taken is not voided by a new one', async () => {
    const { url } = await startService({ ...settings, orderTtlSeconds: 300 })
    const camera = await browser.open(phone)
    const other = await browser.open(phone)
    await camera.page.clock.install()
    await camera.page.route('https://link.metamask.io/**', (route) => route.fulfill({ status: 204 }))
    await openPanel(camera.page, await Desktop.start(url))
    const first = await camera.page.getByLabel('Open this link').inputValue()
    await camera.page.getByRole('link', { name: 'MetaMask' }).click()
    await camera.page.clock.runFor(45_000)
    expect(await camera.page.getByLabel('Open this link').inputValue()).toBe(first)
    expect(camera.trail.requests.filter(({ url }) => url.endsWith('/hand-over'))).toHaveLength(1)
    await other.page.goto(first)
    await other.page.getByRole('button', { name: 'Continue here' }).click()
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
    await wallet.page.getByRole('button', { name: 'Review the request' }).click()
    await wallet.page.getByRole('button', { name: 'Continue with Test Fox' }).click()
    await wallet.page.getByRole('button', { name: 'Approve' }).click()
    await expectHeading(wallet.page, 'Approved')
  })
})
