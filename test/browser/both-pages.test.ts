import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import { expectHeading, expectSignedIn, openForPhone, reviewOnPhone, signInCard, signInCode } from './flows.ts'
import { expectUntranslated, hasBrowser, provokes, useBrowser } from './support.ts'

const phoneSize = { width: 390, height: 664 }

/** The digits that the phone shows for the computer. */
async function codeOnPhone(phone: Page): Promise<string> {
  await phone.getByRole('heading', { name: /^Enter this code only at / }).waitFor()
  return (await phone.locator('#return-code .spoken').textContent())!.replaceAll(' ', '')
}

describe.skipIf(!hasBrowser)('with return codes, a person with both pages in front of them', () => {
  const browser = useBrowser()

  test('types the code once, is signed in without one the next time, and can end that session from the phone', async () => {
    provokes(/401 .*session/)
    const { url } = await startService({ confirmationCode: 'return' })
    const { page: desktop } = await browser.open({ viewport: { width: 1280, height: 900 } })
    const { page: phone } = await browser.open({ viewport: phoneSize })

    await reviewOnPhone(phone, await openForPhone(desktop, url))
    await phone.getByRole('checkbox', { name: 'Remember this computer' }).check()
    await phone.getByRole('button', { name: 'Approve' }).click()
    const code = await codeOnPhone(phone)
    await expectUntranslated(phone, url, code.slice(0, 3))
    await signInCard(desktop).getByLabel('Code on your phone').fill(code)
    await expectSignedIn(desktop)
    await expectHeading(phone, 'Your computer is signed in')
    await expectUntranslated(phone, url)
    await desktop.getByRole('button', { name: 'Sign out' }).click()

    await reviewOnPhone(phone, await signInCode(desktop))
    await phone.getByRole('button', { name: 'Approve' }).click()
    await expectSignedIn(desktop)
    await expectHeading(phone, 'Your computer is signed in')

    await phone.getByRole('button', { name: 'Not you? Sign that computer out' }).click()
    await expectHeading(phone, 'Signed out')
    expect(await desktop.evaluate(async () => (await fetch('/api/auth/session')).status)).toBe(401)
    await desktop.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await desktop.getByText('You’re signed out: this session was ended on the phone').waitFor()

    // The phone has also made the service forget the computer.
    await reviewOnPhone(phone, await signInCode(desktop))
    await phone.getByRole('button', { name: 'Approve' }).click()
    await signInCard(desktop)
      .getByLabel('Code on your phone')
      .fill(await codeOnPhone(phone))
    await expectSignedIn(desktop)
  })
})
