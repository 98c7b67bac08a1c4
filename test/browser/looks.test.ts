import type { Page } from 'playwright-core'
import { describe, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import {
  expectAnswerAwaited,
  expectHeading,
  expectSignedIn,
  phoneCard,
  qrCode,
  reviewOnPhone,
  showCode,
  signCard,
} from './flows.ts'
import { expectAccessible, expectNoSidewaysScroll, hasChromium, screenshot, useBrowser } from './support.ts'

const desktopSize = { width: 1280, height: 900 }
const phoneSize = { width: 390, height: 800 }

/** Looks at what a page shows now: in both colour schemes, and as narrow as screens get. */
async function look(page: Page, state: string): Promise<void> {
  const size = page.viewportSize()!
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await expectAccessible(page, `${state}, ${colorScheme}`)
    await screenshot(page, `${state}-${colorScheme}`)
  }
  await page.setViewportSize({ width: 320, height: 640 })
  await expectNoSidewaysScroll(page, state)
  await screenshot(page, `${state}-narrow`)
  await page.setViewportSize(size)
}

const invoice = {
  kind: 'sign',
  displayTitle: 'Approve invoice 1042',
  displaySummary: 'Pay 250 NIM to Green Bakery for twelve loaves of bread.',
  payloadHash: 'sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b',
}

describe.skipIf(!hasChromium)('in every main state a page is accessible, in light and dark, and fits 320 px:', () => {
  const browser = useBrowser()

  test('the demo', async () => {
    const { url } = await startService()
    const desktop = (await browser.open({ viewport: desktopSize })).page
    const phone = (await browser.open({ viewport: phoneSize })).page
    await desktop.goto(url)
    await desktop.getByRole('region', { name: 'On this device' }).waitFor()
    await look(desktop, 'demo-signed-out')
    const code = await showCode(desktop)
    await look(desktop, 'demo-code')
    await reviewOnPhone(phone, code)
    await expectAnswerAwaited(phoneCard(desktop))
    await look(desktop, 'demo-waiting')
    await phone.getByRole('button', { name: 'Decline' }).click()
    await phoneCard(desktop).getByText('Declined on the phone').waitFor()
    await look(desktop, 'demo-declined')
    for (let times = 0; times < 2; times++) {
      await desktop.context().clearCookies()
      await desktop.reload()
      await desktop.getByRole('button', { name: 'Sign in', exact: true }).click()
      await expectSignedIn(desktop)
    }
    await look(desktop, 'demo-signed-in')
    await signCard(desktop).getByRole('button', { name: 'Ask the phone' }).click()
    await reviewOnPhone(phone, qrCode(signCard(desktop)))
    await phone.getByRole('button', { name: 'Approve' }).click()
    await signCard(desktop).getByText('the signature is valid').waitFor()
    await look(desktop, 'demo-proof')
    await desktop.context().setOffline(true)
    await desktop.getByRole('button', { name: 'Sign out' }).click()
    await desktop.getByRole('button', { name: 'Try again' }).waitFor()
    await look(desktop, 'demo-offline')
  })

  test('the approval page, approving', async () => {
    const { url } = await startService()
    const { page } = await browser.open({ viewport: phoneSize })
    const { claimUrl } = (await rest(url, '/cross-device/start', { kind: 'login' })).json
    await page.goto(claimUrl)
    await page.getByRole('button', { name: 'Review the request' }).waitFor()
    await look(page, 'approve-start')
    await page.getByRole('button', { name: 'Review the request' }).click()
    await expectHeading(page, /^Sign in to localhost/)
    await look(page, 'approve-sign-in')
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('You are offline').waitFor()
    await look(page, 'approve-offline')
    await page.context().setOffline(false)
    await expectHeading(page, 'Approved')
    await look(page, 'approve-approved')
  })

  test('the approval page, signing with a code to enter', async () => {
    const { url } = await startService({ confirmationCode: 'required' })
    const { page } = await browser.open({ viewport: phoneSize })
    const { claimUrl } = (await rest(url, '/cross-device/start', invoice)).json
    await page.goto(claimUrl)
    await page.getByRole('button', { name: 'Review the request' }).click()
    await page.getByLabel('Enter the code').fill('12')
    await page.getByText('The exact text that is signed').click()
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('six digits').waitFor()
    await look(page, 'approve-enter-code')
    await page.getByRole('button', { name: 'Decline' }).click()
    await expectHeading(page, 'Declined')
    await look(page, 'approve-declined')
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
    await page.getByRole('button', { name: 'Review the request' }).click()
    await expectHeading(page, 'Cancelled on your computer')
    await look(page, 'approve-cancelled')
  })
})
