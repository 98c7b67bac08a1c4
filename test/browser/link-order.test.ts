import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { bearer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { returnCode } from './approval-steps.ts'
import { expectHeading, keepCookie, signIn } from './flows.ts'
import { expectNoFaults, hasBrowser, look, provokes, scan, useBrowser } from './support.ts'

const computerSize = { viewport: { width: 1280, height: 900 } }
const phoneSize = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
/** Texts of the pages in a language, as far as the steps need them. */
const english = {
  add: 'Add a wallet from another device',
  review: 'Continue',
  approve: 'Approve',
  approved: /^Enter this code only at/,
  code: 'Code on the other device',
  added: 'Your wallet is added',
}
const german: typeof english = {
  add: 'Wallet von einem anderen Gerät hinzufügen',
  review: 'Weiter',
  approve: 'Bestätigen',
  approved: /^Gib diesen Code nur auf/,
  code: 'Code auf dem anderen Gerät',
  added: 'Deine Wallet ist hinzugefügt',
}

/** Counts what a person taps on a page. */
class Person {
  readonly page: Page
  taps = 0

  constructor(page: Page) {
    this.page = page
  }

  async tap(name: string): Promise<void> {
    this.taps++
    await this.page.getByRole('button', { name, exact: true }).click()
  }
}

function qrCode(page: Page): Locator {
  return page.locator('countersign-sign-in').getByRole('img', { name: /QR/ })
}

describe.skipIf(!hasBrowser)('a wallet of another device', () => {
  const browser = useBrowser()

  test.each([
    ['a phone is added at a computer', computerSize, phoneSize, english],
    ['a computer is added at a phone', phoneSize, computerSize, english],
    ['a computer is added at a phone, in German', phoneSize, computerSize, german],
  ] as const)('of %s, with one tap here and two there', async (_, here, there, words) => {
    const options: BrowserContextOptions = { locale: words === german ? 'de-DE' : 'en-GB' }
    const { url } = await startService()
    const [starting, approving] = [
      await browser.open({ ...here, ...options }),
      await browser.open({ ...there, ...options }),
    ]
    const [starter, approver] = [new Person(starting.page), new Person(approving.page)]
    const own = makeWallet()
    const token = await signIn(starter.page, url, own)

    await starter.page.goto(`${url}/api/auth/account`)
    await starter.tap(words.add)
    await qrCode(starter.page).waitFor()

    await approver.page.goto(await scan(qrCode(starter.page)))
    await approver.tap(words.review)
    await approver.page.locator('#account').getByTitle(own.address).waitFor()
    expect(await approver.page.locator('#request h1').textContent()).toContain(url)
    await approver.tap(words.approve)
    await expectHeading(approver.page, words.approved)
    const code = (await approver.page.locator('#return-code > [aria-hidden]').textContent()) ?? ''

    const field = starter.page.getByLabel(words.code)
    await field.waitFor()
    const answered = await starter.page.locator('#adding .who [title]').getAttribute('title')
    await field.fill(code)
    await expectHeading(approver.page, words.added)
    await look(approver.page, 'a wallet is added')
    await starter.page.locator('#wallets [data-rows] > li').nth(1).waitFor()

    const { wallets } = (await rest(url, '/wallet/list', undefined, bearer(token))).json
    expect(wallets).toHaveLength(2)
    expect(wallets[0].address).toBe(own.address)
    expect(answered).toBe(wallets[1].address)
    expect([starter.taps, approver.taps]).toEqual([1, 2])
    expectNoFaults(starting.trail, approving.trail)
  })

  test('is sent the link in a way that the phone offers', async () => {
    const { url } = await startService()
    const { page } = await browser.open(phoneSize)
    await page.addInitScript(() => {
      Object.defineProperty(navigator, 'share', {
        value: async ({ url }: ShareData) => void document.body.setAttribute('data-shared', url ?? ''),
      })
    })
    await signIn(page, url)
    await page.goto(`${url}/api/auth/account`)
    await page.getByRole('button', { name: english.add }).click()
    const claimUrl = await scan(qrCode(page))
    await page.getByRole('button', { name: 'Send the link' }).click()
    await expect.poll(() => page.locator('body').getAttribute('data-shared')).toBe(claimUrl)
  })

  test('is asked for by a session of the last ten minutes; a later one signs in again', async () => {
    provokes(/403 .*start/)
    const store = await openStore('sqlite::memory:')
    const { url } = await startService({ store })
    const { page } = await browser.open(computerSize)
    await signIn(page, url)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 11 * 60_000 })
    onTestFinished(() => void vi.useRealTimers())
    await page.goto(`${url}/api/auth/account`)
    await page.getByRole('button', { name: english.add }).click()
    await page.getByText('You signed in too long ago to change your wallets.').waitFor()
    await page.getByRole('button', { name: 'Sign in again' }).click()
    await page.waitForURL('**/api/auth/sign-in?**again=1**')
  })

  test('of an account without an address leaves no empty place for it', async () => {
    const { url } = await startService()
    const [starting, approving] = [await browser.open(computerSize), await browser.open(phoneSize)]
    await signIn(starting.page, url)
    await starting.page.goto(`${url}/api/auth/account`)
    await starting.page.getByRole('button', { name: english.add }).click()
    await approving.page.route('**/cross-device/challenge**', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), sessionAccount: undefined } })
    })
    await approving.page.goto(await scan(qrCode(starting.page)))
    await approving.page.getByRole('button', { name: english.review }).click()
    await approving.page.getByRole('button', { name: english.approve, exact: true }).waitFor()
    expect(await approving.page.locator('#account').isVisible()).toBe(false)
  })

  test('is removed again on the device that added it', async () => {
    const { url } = await startService()
    const [starting, approving] = [await browser.open(computerSize), await browser.open(phoneSize)]
    const token = await signIn(starting.page, url)
    await starting.page.goto(`${url}/api/auth/account`)
    await starting.page.getByRole('button', { name: english.add }).click()
    await approving.page.goto(await scan(qrCode(starting.page)))
    await approving.page.getByRole('button', { name: english.review }).click()
    await approving.page.getByRole('button', { name: english.approve, exact: true }).click()
    await starting.page.getByLabel(english.code).fill(await returnCode(approving.page))
    await approving.page.getByRole('button', { name: 'Not your account? Remove the wallet' }).click()
    await expectHeading(approving.page, 'Wallet removed')
    const { wallets } = (await rest(url, '/wallet/list', undefined, bearer(token))).json
    expect(wallets).toHaveLength(1)
  })

  test('that has an account already is refused there, with what to do', async () => {
    provokes(/409 .*approve/)
    const { url } = await startService()
    const [starting, approving] = [await browser.open(phoneSize), await browser.open(computerSize)]
    // Its own, by a sign-in on its device.
    await approving.page.goto(`${url}/api/auth/sign-in?returnTo=/api/auth/account`)
    await approving.page.getByRole('button', { name: 'wallet on this device' }).click()
    await approving.page.getByRole('button', { name: /demo/i }).click()
    await approving.page.getByRole('heading', { name: 'Your account' }).waitFor()
    await signIn(starting.page, url)
    await starting.page.goto(`${url}/api/auth/account`)
    await starting.page.getByRole('button', { name: english.add }).click()
    await approving.page.goto(await scan(qrCode(starting.page)))
    await approving.page.getByRole('button', { name: english.review }).click()
    await approving.page.getByRole('button', { name: english.approve, exact: true }).click()
    await approving.page.getByText('This wallet already has an account here.').waitFor()
    await look(approving.page, 'a wallet that is taken')
  })

  test('a session that an order made cannot start one, and says how', async () => {
    const { url } = await startService()
    const { page } = await browser.open(phoneSize)
    const wallet = makeWallet()
    const { json: order } = await rest(url, '/cross-device/start', { kind: 'login' })
    const { orderId, claimToken, desktopToken } = order
    const { challengeToken } = (await rest(url, '/cross-device/claim', { orderId, claimToken })).json
    const read = await rest(url, `/cross-device/challenge?orderId=${orderId}`, undefined, bearer(challengeToken))
    const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(read.json.message) }
    await rest(url, '/cross-device/approve', { orderId, challengeToken, proof })
    await keepCookie(page, url, await rest(url, '/cross-device/finalize', { orderId, desktopToken }))
    await page.goto(`${url}/api/auth/account`)
    await page.getByText('or open this page on your phone').waitFor()
    expect(await page.getByRole('button', { name: english.add }).count()).toBe(0)
  })
})
