import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { clientsFile, discover, fileWith, request, shop } from '../oidc/support.ts'
import { listen } from '../support/listening.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { addressOf, expectHeading, signIn } from './flows.ts'
import { copiedOn, hasBrowser, look, provokes, useBrowser } from './support.ts'

const permissions = ['clipboard-write']

/** Texts of the pages in a language, as far as the steps need them, and a device to see them on. */
const english = {
  locale: 'en-GB',
  device: { viewport: { width: 1280, height: 720 } } as BrowserContextOptions,
  here: 'Use a wallet on this device',
  review: 'Continue',
  approve: 'Approve',
  demo: 'Demo wallet',
  notListed: 'This wallet isn’t on the list. Ask the operator of Tulips to add it.',
  copy: 'Copy the address',
  copied: 'Address copied',
  copyWallet: 'Copy this wallet',
  walletCopied: 'Copied',
  anotherWallet: 'Choose another wallet',
  wallets: 'Choose a wallet',
  otherWallet: 'Use another wallet',
  notForAccount: 'Not for this account',
  ask: 'Tulip Shop isn’t open to this wallet. Ask its operator to add you.',
  back: 'Back to Tulip Shop',
  unusable: 'The account on your other device can’t be used right now. Nothing was added. Ask the operator of Tulips.',
  again: 'Try again',
}
const german: typeof english = {
  locale: 'de-DE',
  device: { viewport: { width: 390, height: 844 }, userAgent: 'Mozilla/5.0 (Linux; Android 16; Pixel 9) Mobile' },
  here: '',
  review: 'Weiter',
  approve: 'Bestätigen',
  demo: 'Demo-Wallet',
  notListed: 'Diese Wallet steht nicht auf der Liste. Bitte den Betreiber von Tulips, sie aufzunehmen.',
  copy: 'Adresse kopieren',
  copied: 'Adresse kopiert',
  copyWallet: 'Diese Wallet kopieren',
  walletCopied: 'Kopiert',
  anotherWallet: 'Andere Wallet wählen',
  wallets: 'In deiner Wallet fortsetzen',
  otherWallet: 'Andere Wallet verwenden',
  notForAccount: 'Nicht für dieses Konto',
  ask: 'Tulip Shop ist für diese Wallet nicht freigegeben. Bitte den Betreiber, dich aufzunehmen.',
  back: 'Zurück zu Tulip Shop',
  unusable:
    'Das Konto auf deinem anderen Gerät lässt sich gerade nicht verwenden. Es wurde nichts hinzugefügt. Frag den Betreiber von Tulips.',
  again: 'Noch einmal versuchen',
}
const languages = [
  ['in English', english],
  ['in German', german],
] as const

/** A service for a wallet that is not in the browser. */
async function start() {
  const people = fileWith({ [`nimiq:${makeWallet().address}`]: {} })
  return await startService({ people, admit: 'people', appName: 'Tulips' })
}

/** Opens the link of an order as its phone, and reviews the request. */
async function review(page: Page, claimUrl: string, words: typeof english): Promise<void> {
  await page.goto(claimUrl)
  await page.getByRole('button', { name: words.review }).click()
  await page.getByRole('button', { name: words.approve, exact: true }).waitFor()
}

describe.skipIf(!hasBrowser)('a wallet that is not on the list', () => {
  const browser = useBrowser()

  test.each(languages)(
    'is refused on the sign-in page, which copies its address for the operator, %s',
    async (_, words) => {
      provokes(/403/)
      const { url } = await start()
      const { page } = await browser.open({ permissions, locale: words.locale, ...words.device })
      await page.goto(`${url}/api/auth/sign-in?returnTo=/`)
      // A phone has the list from the start.
      if (words === english) await page.getByRole('button', { name: words.here }).click()
      await page.getByRole('button', { name: words.demo }).click()
      await page.getByText(words.notListed).waitFor()
      await look(page, `not-listed-sign-in-${words.locale}`)
      await page.locator('#notice').getByRole('button', { name: words.copy }).click()
      await page.getByRole('button', { name: words.copied }).waitFor()
      expect(await copiedOn(page)).toMatch(/^nimiq:NQ\d\d /)
    },
  )

  test.each(languages)('is refused on the approval page, and approves nothing, %s', async (_, words) => {
    provokes(/403/)
    const { url } = await start()
    const { json: order } = await rest(url, '/cross-device/start', { kind: 'login' })
    const { page } = await browser.open({ permissions, locale: words.locale, ...words.device })
    await review(page, order.claimUrl, words)
    const address = await addressOf(page)
    await page.getByRole('button', { name: words.approve, exact: true }).click()
    await page.getByText(words.notListed).waitFor()
    await look(page, `not-listed-approval-${words.locale}`)
    await page.locator('#notice').getByRole('button', { name: words.copy }).click()
    await page.getByRole('button', { name: words.copied }).waitFor()
    expect(await copiedOn(page)).toBe(`nimiq:${address}`)
    await page.getByRole('button', { name: words.anotherWallet }).click()
    await expectHeading(page, words.wallets)
  })
})

describe.skipIf(!hasBrowser)('an account that has left the list', () => {
  const browser = useBrowser()

  test.each(languages)('takes no wallet of another device, which says so, until it is back, %s', async (_, words) => {
    provokes(/401 .*approve/)
    const wallet = makeWallet()
    const people = fileWith({ [`nimiq:${wallet.address}`]: {} })
    const { url, service } = await startService({ people, admit: 'people', appName: 'Tulips' })
    const { json: nonce } = await rest(url, '/wallet/nonce', {})
    const { token } = (await rest(url, '/wallet/verify', proofOf(wallet, nonce))).json
    const { json: order } = await rest(
      url,
      '/cross-device/start',
      { kind: 'link' },
      { authorization: `Bearer ${token}` },
    )
    const { page } = await browser.open({ locale: words.locale, ...words.device })
    await review(page, order.claimUrl, words)
    const listed = await readFile(people, 'utf8')
    await writeFile(people, JSON.stringify({ [`nimiq:${makeWallet().address}`]: {} }))
    await service.reload()
    await page.getByRole('button', { name: words.approve, exact: true }).click()
    await page.getByText(words.unusable).waitFor()
    await look(page, `account-unusable-${words.locale}`)

    await writeFile(people, listed)
    await service.reload()
    await page.getByRole('button', { name: words.again }).click()
    await page.locator('#return-code').waitFor()
  })
})

describe.skipIf(!hasBrowser)('an application for groups', () => {
  const browser = useBrowser()

  test.each(languages)('shows others a page, with ways to another wallet and back, %s', async (_, words) => {
    provokes(/403/)
    const server = createServer((_, response) => response.end('the application'))
    const redirect = `http://127.0.0.1:${await listen(server)}/callback`
    const metadata = { ...shop.metadata, redirect_uris: [redirect] }
    const { url } = await startService({ oidc: { clients: clientsFile({ metadata, groups: ['staff'] }) } })
    const { page } = await browser.open({ permissions, locale: words.locale, ...words.device })
    const wallet = makeWallet()
    await signIn(page, url, wallet)
    await page.goto((await request(await discover(url, metadata), { redirect_uri: redirect })).address)
    await expectHeading(page, words.notForAccount)
    await page.getByText(words.ask).waitFor()
    await look(page, `not-for-account-${words.locale}`)
    await page.getByRole('button', { name: words.copyWallet }).click()
    await page.getByRole('button', { name: words.walletCopied, exact: true }).waitFor()
    expect(await copiedOn(page)).toBe(`nimiq:${wallet.address}`)
    const other = page.getByRole('link', { name: words.otherWallet })
    expect(await other.getAttribute('href')).toMatch(/^\/api\/auth\/sign-in\?.*again=1/)
    await page.getByRole('button', { name: words.back }).click()
    await page.waitForURL(`${redirect}?error=access_denied*`)
  })
})
