import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterEach, describe, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { startService } from '../support/service.ts'
import { Desktop } from './desktop.ts'
import { expectHeading, showWallets } from './flows.ts'
import { android, belowBars } from './phones.ts'
import { hasBrowser, inFirefox, look, screenshot, useBrowser } from './support.ts'
import { injectEthereum } from './wallets/ethereum.ts'
import { injectSolana } from './wallets/solana.ts'

const settings: CountersignOptions = { adapters: ['nimiq', 'ethereum', 'solana'], pages: { demoWallet: false } }

const phone: BrowserContextOptions = { ...belowBars, userAgent: android.userAgent }

async function review(page: Page, { order }: Desktop, button = 'Continue'): Promise<void> {
  await page.goto(order.claimUrl)
  await page.getByRole('button', { name: button }).click()
  await page.locator('#decline-button').waitFor()
}

describe.skipIf(!hasBrowser || inFirefox)(
  'where the user chooses a wallet, a page is accessible, in light and dark, and fits 320 px:',
  () => {
    const browser = useBrowser()
    afterEach(() => void vi.useRealTimers())

    test('the approval page, from the choice to the wallet that was too slow', async () => {
      const { url } = await startService(settings)
      const { page } = await browser.open(phone)
      const fox = await injectEthereum(page.context(), { name: `Fox ${'of the long name '.repeat(3)}` })
      await injectSolana(page.context(), { name: 'محفظة \u202eتجريبية' })
      const desktop = await Desktop.start(url, { kind: 'login', displayTitle: 'Sign in to Green Bakery' })
      await review(page, desktop)
      await look(page, 'wallet-choice')
      await page.getByRole('button', { name: /^Fox/ }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      await look(page, 'wallet-chosen')
      fox.signs = 'wait'
      await page.getByRole('button', { name: 'Approve' }).click()
      await page.getByText(/^Confirm in Fox/).waitFor()
      await look(page, 'wallet-awaited')
      await page.getByRole('button', { name: 'Decline' }).click()
      await expectHeading(page, 'Declined')
    })

    test('the approval page without a wallet, and the way to one', async () => {
      const { url } = await startService(settings)
      const { page } = await browser.open(phone)
      await review(page, await Desktop.start(url))
      await page.getByRole('link', { name: 'Open in MetaMask' }).waitFor()
      await look(page, 'wallet-apps')
      await page.getByRole('button', { name: 'Continue in another browser' }).click()
      await page.getByLabel('Open this link').waitFor()
      await look(page, 'wallet-link')
      await page.getByRole('button', { name: 'Nimiq Hub' }).click()
      await page.getByText('Nimiq Hub opens when you approve').waitFor()
      await look(page, 'wallet-hub')
    })

    test('the approval page in German, and after the end of a slow wallet’s time', async () => {
      const { url } = await startService(settings)
      const { page } = await browser.open({ ...phone, locale: 'de-DE' })
      const fox = await injectEthereum(page.context())
      await review(page, await Desktop.start(url), 'Weiter')
      await screenshot(page, 'wallet-german')
      fox.signs = 'wait'
      await page.getByRole('button', { name: 'Bestätigen' }).click()
      await page.getByText(/^Noch .* zum Signieren/).waitFor()
      await screenshot(page, 'wallet-german-awaited')
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 125_000 })
      await expectHeading(page, 'Die Anfrage lief ab, während deine Wallet signierte')
      await look(page, 'wallet-german-late')
    })

    test('the demo', async () => {
      const { url } = await startService({ ...settings, pages: { demoWallet: true } })
      const { page } = await browser.open({ viewport: { width: 1280, height: 900 } })
      await injectEthereum(page.context())
      await page.goto(url)
      await showWallets(page)
      await page.getByRole('button', { name: 'Demo wallet' }).waitFor()
      await look(page, 'wallet-demo')
    })
  },
)
