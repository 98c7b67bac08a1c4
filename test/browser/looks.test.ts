import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { newComputerKey } from '../relay/devices.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { Desktop } from './desktop.ts'
import {
  approvedHeading,
  expectAnswerAwaited,
  expectHeading,
  expectReview,
  qrCode,
  reviewOnPhone,
  signCard,
  signInCard,
  signInCode,
  signInOnDemo,
} from './flows.ts'
import { android } from './phones.ts'
import { hasBrowser, inFirefox, look, provokes, useBrowser } from './support.ts'

const desktopSize = { width: 1280, height: 900 }
const phoneSize = { width: 390, height: 664 }

const invoice = {
  kind: 'sign',
  displayTitle: 'Approve invoice 1042',
  displaySummary: 'Pay 250 NIM to Green Bakery for twelve loaves of bread.',
  payloadHash: 'sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b',
}

const payload = JSON.stringify({
  amount: 250,
  currency: 'NIM',
  invoice: {
    number: '1042',
    due: '2026-12-01',
    lines: [
      { item: 'Bread', count: 12 },
      { item: 'Delivery', note: '' },
    ],
  },
  payee: 'NQ07 0000 0000 0000 0000 0000 0000 0000 0000',
  reference: 'r'.repeat(300),
})

const desktopBrowser =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'

describe.skipIf(!hasBrowser || inFirefox)(
  'in every main state a page is accessible, in light and dark, and fits 320 px:',
  () => {
    const browser = useBrowser()
    // Failures are states, too.
    beforeEach(() => provokes(/./))

    test('the demo', async () => {
      const { url } = await startService()
      const desktop = (await browser.open({ viewport: desktopSize })).page
      const phone = (await browser.open({ viewport: phoneSize })).page
      await desktop.goto(url)
      await desktop.getByRole('region', { name: 'Sign in', exact: true }).waitFor()
      await look(desktop, 'demo-signed-out')
      const code = await signInCode(desktop)
      await look(desktop, 'demo-code')
      await reviewOnPhone(phone, code)
      await expectAnswerAwaited(signInCard(desktop))
      await look(desktop, 'demo-waiting')
      await phone.getByRole('button', { name: 'Decline' }).click()
      await signInCard(desktop).getByText('Declined on the phone').waitFor()
      await look(desktop, 'demo-declined')
      for (let times = 0; times < 2; times++) {
        await desktop.context().clearCookies()
        await desktop.reload()
        await signInOnDemo(desktop)
      }
      await look(desktop, 'demo-signed-in')
      await signCard(desktop).getByRole('button', { name: 'Ask the phone' }).click()
      await reviewOnPhone(phone, qrCode(signCard(desktop)))
      await phone.evaluate(() => scrollTo(0, 9999))
      await phone.getByRole('button', { name: 'Approve' }).click()
      await signCard(desktop).getByText('the signature is valid').waitFor()
      await look(desktop, 'demo-proof')
      await desktop.context().setOffline(true)
      await desktop.getByRole('button', { name: 'Sign out', exact: true }).click()
      await desktop.getByRole('button', { name: 'Try again' }).waitFor()
      await look(desktop, 'demo-offline')
    })

    test('the sign-in page', async () => {
      const { url } = await startService({ confirmationCode: 'return', appName: 'Green Bakery' })
      const desktop = (await browser.open({ viewport: desktopSize })).page
      const phone = (await browser.open({ viewport: phoneSize })).page
      await desktop.goto(`${url}/api/auth/sign-in?returnTo=/welcome`)
      const code = desktop.getByRole('img', { name: /QR code/ })
      await code.waitFor()
      await look(desktop, 'sign-in-code')
      await desktop.getByRole('button', { name: 'wallet on this device' }).click()
      await desktop.getByText('No wallet extension found. You can still use:').waitFor()
      await look(desktop, 'sign-in-wallets')
      await reviewOnPhone(phone, code)
      await phone.getByRole('button', { name: 'Approve' }).click()
      await desktop.getByLabel('Code on your phone').waitFor()
      await look(desktop, 'sign-in-return-code')
      // The browser stays on a page that leads to an answer without content.
      await desktop.route('**/welcome', (route) => route.fulfill({ status: 204 }))
      await desktop.getByRole('button', { name: 'Demo wallet' }).click()
      await desktop.getByRole('heading', { name: 'You’re signed in' }).waitFor()
      await look(desktop, 'sign-in-done')
    })

    test('the sign-in page on a phone, in German, and from right to left', async () => {
      const folder = temporaryFolder()
      const textsFile = join(folder, 'texts.json')
      writeFileSync(
        textsFile,
        JSON.stringify({ ar: { 'sign-in.title': 'تسجيل الدخول', 'sign-in.order.otherDevice': 'جهاز آخر' } }),
      )
      const { url } = await startService({ pages: { textsFile: textsFile }, adapters: ['nimiq', 'ethereum', 'solana'] })
      const { viewport, userAgent } = android
      for (const locale of ['de-DE', 'ar']) {
        const { page } = await browser.open({ viewport, userAgent, locale })
        await page.goto(`${url}/api/auth/sign-in`)
        await page.getByRole('button', { name: 'Nimiq Hub' }).waitFor()
        await look(page, `sign-in-phone-${locale}`)
      }
    })

    test('the approval page, approving', async () => {
      const { url } = await startService()
      const { page } = await browser.open({ viewport: phoneSize })
      const { claimUrl } = (await rest(url, '/cross-device/start', { kind: 'login' })).json
      await page.goto(claimUrl)
      await page.getByRole('button', { name: 'Continue', exact: true }).waitFor()
      await look(page, 'approve-start')
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await expectReview(page, /^Sign in to /)
      await look(page, 'approve-sign-in')
      await page.context().setOffline(true)
      await page.getByRole('button', { name: 'Approve' }).click()
      await page.getByText('You’re offline').waitFor()
      await look(page, 'approve-offline')
      await page.context().setOffline(false)
      await expectHeading(page, approvedHeading)
      await look(page, 'approve-approved')
    })

    test('the approval page, signing', async () => {
      const { url } = await startService()
      const { page } = await browser.open({ viewport: phoneSize })
      const { claimUrl } = (await rest(url, '/cross-device/start', invoice)).json
      await page.goto(claimUrl)
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await page.getByText('The exact text that is signed').click()
      await look(page, 'approve-sign')
      await page.getByRole('button', { name: 'Decline' }).click()
      await expectHeading(page, 'Declined')
      await look(page, 'approve-declined')
    })

    test('the approval page, with a code for the computer', async () => {
      const { url } = await startService({ confirmationCode: 'return', trustProxy: 1 })
      const { page } = await browser.open({
        viewport: phoneSize,
        extraHTTPHeaders: { 'x-forwarded-for': '198.51.100.1' },
      })
      const start = async (order: object = { kind: 'login' }): Promise<Desktop> => {
        const headers = { 'x-forwarded-for': '203.0.113.7', 'user-agent': desktopBrowser }
        const desktop = await Desktop.start(url, order, { headers, key: newComputerKey() })
        await page.goto(desktop.order.claimUrl)
        await page.getByRole('button', { name: 'Continue', exact: true }).click()
        await page.getByRole('button', { name: 'Approve' }).waitFor()
        return desktop
      }
      const desktop = await start({ ...invoice, kind: 'login', payloadHash: undefined })
      await look(page, 'approve-return')
      await page.getByRole('button', { name: 'Approve' }).click()
      await expectHeading(page, /^Enter this code only at/)
      await look(page, 'approve-code')
      const code = (await page.locator('#return-code > [aria-hidden]').textContent())!
      await desktop.finalize(code)
      await expectHeading(page, 'Your computer is signed in')
      await look(page, 'approve-finalized')
      await page.getByRole('button', { name: 'Not you?' }).click()
      await expectHeading(page, 'Signed out')
      await look(page, 'approve-session-ended')

      const other = await start()
      await page.getByRole('button', { name: 'Approve' }).click()
      await expectHeading(page, /^Enter this code only at/)
      const right = await page.locator('#return-code > [aria-hidden]').textContent()
      for (let times = 0; times < 3; times++) await other.finalize(right === '000000' ? '000001' : '000000')
      await expectHeading(page, 'Three wrong codes were entered')
      await look(page, 'approve-wrong-codes')
    })

    test('the approval page, continued in another browser', async () => {
      const { url } = await startService()
      const { page } = await browser.open({ viewport: phoneSize })
      await page.goto((await Desktop.start(url)).order.claimUrl)
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await page.getByRole('button', { name: 'Continue in another browser' }).click()
      const field = page.getByLabel('Open this link')
      await expect.poll(() => field.inputValue()).not.toBe('')
      const link = await field.inputValue()
      await look(page, 'approve-hand-over')
      const other = (await browser.open({ viewport: phoneSize })).page
      await other.goto(link)
      await expectHeading(other, 'Continue here?')
      await look(other, 'approve-continue')
      await other.getByRole('button', { name: 'Continue', exact: true }).click()
      await other.getByRole('button', { name: 'Approve' }).waitFor()
      await look(other, 'approve-continued')
      await expectHeading(page, 'Continued in another browser')
      await look(page, 'approve-moved')
    })

    test('the approval page, with a payload to read', async () => {
      const { url } = await startService()
      const { page } = await browser.open({ viewport: phoneSize })
      const desktop = await Desktop.start(url, { ...invoice, payloadHash: undefined, payload })
      await page.goto(desktop.order.claimUrl)
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      await page.getByText('The exact text that is signed').click()
      await look(page, 'approve-payload')
      await page.locator('#payload').getByRole('button', { name: 'Show more' }).click()
      await page.evaluate(() => scrollTo(0, 9999))
      await page.getByRole('button', { name: 'Approve' }).click()
      await expectHeading(page, 'Approved')
      await look(page, 'approve-sign-approved')
      await desktop.finalize()
      await expectHeading(page, 'Signed')
      await look(page, 'approve-sign-finalized')
    })

    test.each(['#ffe600', '#0a1a4f'])('the approval page in the operator’s %s', async (accentColor) => {
      const { url } = await startService({ pages: { accentColor: accentColor }, confirmationCode: 'return' })
      const { page } = await browser.open({ viewport: phoneSize })
      await page.goto((await Desktop.start(url)).order.claimUrl)
      await look(page, `approve-start-${accentColor.slice(1)}`)
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      await look(page, `approve-review-${accentColor.slice(1)}`)
      await page.getByRole('button', { name: 'Approve' }).click()
      await expectHeading(page, /^Enter this code only at/)
      await look(page, `approve-code-${accentColor.slice(1)}`)
    })

    test('the approval page, when the order is over', async () => {
      const { url } = await startService()
      const { page } = await browser.open({ viewport: phoneSize })
      const order = (await rest(url, '/cross-device/start', invoice)).json
      await page.goto(order.claimUrl.split('#')[0])
      await expectHeading(page, 'This link is incomplete')
      await look(page, 'approve-incomplete')
      await rest(url, '/cross-device/cancel', { orderId: order.orderId, desktopToken: order.desktopToken })
      await page.goto(order.claimUrl)
      await expectHeading(page, 'Cancelled on your computer')
      await look(page, 'approve-cancelled')
    })
  },
)
