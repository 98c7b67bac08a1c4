import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeTestWallet } from 'countersign/testing'
import { chromium, type Page } from 'playwright-core'
import { startService } from './service.ts'

/** Has the pages of a browser find a wallet, as they do within Nimiq Pay. It signs without asking. */
async function injectWallet(page: Page) {
  const wallet = makeTestWallet()
  await page.exposeFunction('signForTest', (message: string) => ({
    publicKey: wallet.publicKeyHex,
    signature: wallet.sign(message),
  }))
  await page.addInitScript((address) => {
    const signForTest: unknown = Reflect.get(globalThis, 'signForTest')
    Object.assign(globalThis, { nimiq: { listAccounts: async () => [address], sign: signForTest } })
  }, wallet.address)
  return wallet
}

test('the sign-in page signs in with a wallet on this device', async (context) => {
  const { url, close } = await startService()
  context.after(close)
  const browser = await chromium.launch()
  context.after(() => browser.close())
  const page = await browser.newPage()
  const wallet = await injectWallet(page)

  await page.goto(`${url}/api/auth/sign-in?returnTo=/api/auth/session`)
  await page.getByRole('button', { name: 'wallet on this device' }).click()
  await page.getByRole('button', { name: 'Nimiq Pay' }).click()

  await page.waitForURL(`${url}/api/auth/session`)
  const { session } = JSON.parse(String(await page.textContent('body')))
  assert.equal(session.address, wallet.address)
})
