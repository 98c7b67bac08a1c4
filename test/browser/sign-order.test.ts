import { describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import { addressOf, confirmationCode, qrCode, reviewOnPhone, signCard } from './flows.ts'
import { expectNoFaults, expectUntranslated, hasBrowser, provokes, useBrowser } from './support.ts'

describe.skipIf(!hasBrowser)('the demo has a content signed', () => {
  const browser = useBrowser()

  test('the proof has its canonical form, the page checks its hash, and no translation changes what is exact', async () => {
    const { url } = await startService()
    const { page, trail } = await browser.open()
    const phone = await browser.open()
    await page.goto(url)
    const card = signCard(page)
    await card.getByLabel('Content, as JSON').fill('{ "to": "Green Bakery",  "amount": 250.0 }')
    await card.getByRole('button', { name: 'Ask the phone' }).click()
    await qrCode(card).waitFor()
    await reviewOnPhone(phone.page, qrCode(card))
    const code = await confirmationCode(card)
    await expectUntranslated(page, code)
    const wallet = await addressOf(phone.page)
    const message = (await phone.page.locator('[data-slot=message]').textContent())!
    await expectUntranslated(phone.page, code, url, wallet, message, 'Green Bakery', 'Approve invoice 1042')
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await card.getByText('the signature is valid').waitFor()
    await expectUntranslated(page, wallet, message)
    expect(await card.getByText('{"amount":250,"to":"Green Bakery"}', { exact: true }).isVisible()).toBe(true)
    expectNoFaults(trail, phone.trail)
  })

  test('says what is wrong with a content that cannot be signed, and asks no phone', async () => {
    provokes(/400 .*StartOrder/)
    const { url } = await startService()
    const { page } = await browser.open()
    await page.goto(url)
    const card = signCard(page)
    const problem = card.locator('#payload-error')
    await card.getByLabel('Content, as JSON').fill('{"amount": 250')
    await card.getByRole('button', { name: 'Ask the phone' }).click()
    await problem.filter({ hasText: 'This isn’t JSON.' }).waitFor()
    expect(await qrCode(card).count()).toBe(0)

    await card.getByLabel('Content, as JSON').fill('{"amount": 250, "amount": 25}')
    await card.getByRole('button', { name: 'Ask the phone' }).click()
    await problem.filter({ hasText: 'payload' }).waitFor()
    expect(await qrCode(card).count()).toBe(0)

    await card.getByLabel('Content, as JSON').fill('{"amount": 250}')
    await card.getByRole('button', { name: 'Ask the phone' }).click()
    await qrCode(card).waitFor()
    expect(await problem.textContent()).toBe('')
  })
})
