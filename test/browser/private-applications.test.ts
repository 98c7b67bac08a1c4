import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { clientsFile, discover, fileWith, request, shop } from '../oidc/support.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { addressOf, expectHeading, openForPhone, reviewOnPhone, signIn } from './flows.ts'
import { expectAccessible, hasBrowser, provokes, useBrowser } from './support.ts'

const sentence = 'This wallet isn’t on the list. Ask the operator of Tulips to add it.'
const permissions = ['clipboard-read', 'clipboard-write']

/** A service for a wallet that is not in the browser. */
async function start() {
  const people = fileWith({ [`nimiq:${makeWallet().address}`]: {} })
  return await startService({ people, admit: 'people', appName: 'Tulips' })
}

describe.skipIf(!hasBrowser)('a wallet that is not on the list', () => {
  const browser = useBrowser()

  test('is told so on the sign-in page, which copies its address for the operator', async () => {
    provokes(/403/)
    const { url } = await start()
    const { page } = await browser.open({ permissions })
    await page.goto(`${url}/api/auth/sign-in?returnTo=/`)
    await page.getByRole('button', { name: 'wallet on this device' }).click()
    await page.getByRole('button', { name: 'Demo wallet' }).click()
    await page.getByText(sentence).waitFor()
    await expectAccessible(page, 'not-listed')
    await page.getByRole('button', { name: 'Copy the address' }).click()
    await page.getByRole('button', { name: 'Address copied' }).waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^NQ\d\d /)
  })

  test('is told so on the approval page, and approves nothing', async () => {
    provokes(/403/)
    const { url } = await start()
    const desktop = await browser.open()
    const phone = await browser.open({ permissions, viewport: { width: 390, height: 844 } })
    await reviewOnPhone(phone.page, await openForPhone(desktop.page, url))
    const address = await addressOf(phone.page)
    await phone.page.getByRole('button', { name: 'Approve' }).click()
    await phone.page.getByText(sentence).waitFor()
    await expectAccessible(phone.page, 'not-listed')
    await phone.page.getByRole('button', { name: 'Copy the address' }).click()
    await phone.page.getByRole('button', { name: 'Address copied' }).waitFor()
    expect(await phone.page.evaluate(() => navigator.clipboard.readText())).toBe(address)
  })
})

describe.skipIf(!hasBrowser)('an application for groups', () => {
  const browser = useBrowser()

  test('shows others a page, with a way to another wallet and one back to the application', async () => {
    provokes(/403/)
    const server = createServer((_, response) => response.end('the application')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const redirect = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
    const metadata = { ...shop.metadata, redirect_uris: [redirect] }
    const { url } = await startService({ oidc: { clients: clientsFile({ metadata, groups: ['staff'] }) } })
    const { page } = await browser.open()
    await signIn(page, url)
    await page.goto((await request(await discover(url, metadata), { redirect_uri: redirect })).address)
    await expectHeading(page, 'Not for this account')
    await page.getByText('Tulip Shop isn’t open to this wallet. Ask its operator to add you.').waitFor()
    await expectAccessible(page, 'not-for-account')
    const other = page.getByRole('link', { name: 'Use another wallet' })
    expect(await other.getAttribute('href')).toMatch(/^\/api\/auth\/sign-in\?.*again=1/)
    await page.getByRole('button', { name: 'Back to Tulip Shop' }).click()
    await page.waitForURL(`${redirect}?error=access_denied*`)
  })
})
