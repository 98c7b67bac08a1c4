import type { Page } from 'playwright-core'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/index.ts'
import { startService } from '../support/service.ts'
import { Desktop } from './desktop.ts'
import { expectHeading, expectSignedIn } from './flows.ts'
import { expectNoFaults, hasChromium, useBrowser } from './support.ts'
import { injectEthereum } from './wallets/ethereum.ts'
import { injectSolana } from './wallets/solana.ts'

const settings: CountersignOptions = { adapters: ['nimiq', 'ethereum', 'solana'], demoWallet: false }

const login = { kind: 'login', displayTitle: 'Sign in to Green Bakery' }

/** Opens a claim URL and reviews the request. */
async function review(page: Page, { order }: Desktop): Promise<void> {
  await page.goto(order.claimUrl)
  await page.getByRole('button', { name: 'Review the request' }).click()
  await page.getByRole('button', { name: 'Decline' }).waitFor()
}

/** The exact text that the page says is signed. */
async function shownText(page: Page): Promise<string> {
  return (await page.locator('[data-slot=message]').textContent()) ?? ''
}

async function approve(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Approve' }).click()
}

describe.skipIf(!hasChromium)('with a wallet in the browser,', () => {
  const browser = useBrowser()
  afterEach(() => {
    vi.useRealTimers()
  })

  async function opened() {
    const { url } = await startService(settings)
    const { page, trail } = await browser.open()
    return { url, page, trail, context: page.context() }
  }

  describe('of Ethereum,', () => {
    test('a user signs in on the page, over a text that names the page and the account', async () => {
      const { url, page, trail, context } = await opened()
      const fox = await injectEthereum(context)
      await page.goto(url)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await expectSignedIn(page, fox.account.address)
      expect(fox.asked).toHaveLength(1)
      expect(fox.asked[0]).toMatch(
        new RegExp(`^${new URL(url).host} wants you to sign in with your Ethereum account:\n${fox.account.address}\n`),
      )
      expectNoFaults(trail)
    })

    test('a user approves; the page shows the address and the text before the wallet does', async () => {
      const { url, page, trail, context } = await opened()
      const fox = await injectEthereum(context)
      const desktop = await Desktop.start(url, login)
      await review(page, desktop)
      await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      const { address } = fox.account
      await page
        .locator('#signer')
        .getByText(`${address.slice(0, 6)} … ${address.slice(-4)}`)
        .waitFor()
      await page.getByText('The exact text that is signed').click()
      await page.locator('details').getByText(address, { exact: true }).waitFor()
      const text = await shownText(page)
      expect(text).toContain(`wants you to sign in with your Ethereum account:\n${address}\n`)
      expect(fox.asked).toEqual([])
      await approve(page)
      await expectHeading(page, 'Approved')
      expect(fox.asked).toEqual([text])
      expect((await desktop.finalize()).json.session.address).toBe(address)
      expectNoFaults(trail)
    })

    test('a signature names the account in its last line', async () => {
      const { url, page, context } = await opened()
      const fox = await injectEthereum(context)
      const desktop = await Desktop.start(url, { kind: 'sign', displayTitle: 'Sell the house' })
      await review(page, desktop)
      await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
      await approve(page)
      await expectHeading(page, 'Approved')
      const { proofArtifact } = (await desktop.finalize()).json
      expect(proofArtifact.message).toMatch(new RegExp(`\nAccount: eip155:1:${fox.account.address}$`, 'i'))
      expect(fox.asked).toEqual([proofArtifact.message])
    })

    test('declined in the wallet, first its account and then its signature: nothing is approved, and the user can go on', async () => {
      const { url, page, context } = await opened()
      const fox = await injectEthereum(context)
      const desktop = await Desktop.start(url, login)
      fox.connects = 'decline'
      await review(page, desktop)
      await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
      await page.getByText('You declined in your wallet').waitFor()
      fox.connects = 'sign'
      fox.signs = 'decline'
      await page.getByRole('button', { name: 'Try again' }).click()
      await approve(page)
      await page.getByText('You declined in your wallet').waitFor()
      expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
      fox.signs = 'sign'
      await approve(page)
      await expectHeading(page, 'Approved')
    })

    test('the account that the user switches to takes the place of the other one, on the page and in the text', async () => {
      const { url, page, context } = await opened()
      const fox = await injectEthereum(context)
      const desktop = await Desktop.start(url, login)
      await review(page, desktop)
      await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      const former = fox.account.address
      await fox.switchAccount(page)
      const { address } = fox.account
      await page
        .locator('#signer')
        .getByText(`${address.slice(0, 6)} … ${address.slice(-4)}`)
        .waitFor()
      await expect.poll(() => shownText(page)).toContain(address)
      expect(await shownText(page)).not.toContain(former)
      await approve(page)
      await expectHeading(page, 'Approved')
      expect((await desktop.finalize()).json.session.address).toBe(address)
    })

    test('an account that the wallet changes without a word does not sign', async () => {
      const { url, page, context } = await opened()
      const fox = await injectEthereum(context)
      const desktop = await Desktop.start(url, login)
      await review(page, desktop)
      await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      fox.changeAccount()
      await approve(page)
      await page.getByText('The wallet used a different key').waitFor()
      expect(fox.asked).toEqual([])
      expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
      // The user sees the other account before it signs.
      expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
      await page.getByRole('button', { name: 'Try again' }).click()
      await page.locator('#signer').getByText(fox.account.address.slice(-4)).waitFor()
      await approve(page)
      await expectHeading(page, 'Approved')
      expect((await desktop.finalize()).json.session.address).toBe(fox.account.address)
    })
  })

  describe('of Solana,', () => {
    test.each([true, false])('a user signs in and approves; it has solana:signIn: %s', async (signIn) => {
      const { url, page, trail, context } = await opened()
      const ghost = await injectSolana(context, { signIn })
      const desktop = await Desktop.start(url, login)
      await review(page, desktop)
      await page.getByRole('button', { name: 'Continue with Test Ghost' }).click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      const text = await shownText(page)
      expect(text).toContain(`wants you to sign in with your Solana account:\n${ghost.address}\n`)
      await approve(page)
      await expectHeading(page, 'Approved')
      expect(ghost.asked).toEqual([text])
      expect(ghost.signIns).toBe(signIn ? 1 : 0)
      expect((await desktop.finalize()).json.session.address).toBe(ghost.address)
      await page.goto(url)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await expectSignedIn(page, ghost.address)
      expectNoFaults(trail)
    })
  })

  test('of which there are two, the user chooses, and can choose again', async () => {
    const { url, page, context } = await opened()
    const fox = await injectEthereum(context)
    const ghost = await injectSolana(context)
    const desktop = await Desktop.start(url, login)
    await review(page, desktop)
    expect(await page.getByRole('button', { name: 'Approve' }).isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Test Fox' }).click()
    await page.locator('#signer').getByText(fox.account.address.slice(-4)).waitFor()
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByRole('button', { name: 'Test Ghost' }).click()
    await page.locator('#signer').getByText(ghost.address.slice(-4)).waitFor()
    expect(await shownText(page)).toContain(ghost.address)
    await approve(page)
    await expectHeading(page, 'Approved')
    expect(fox.asked).toEqual([])
    expect((await desktop.finalize()).json.session.address).toBe(ghost.address)
  })

  test('only wallets of the kind that the order asks for are offered', async () => {
    const { url, page, context } = await opened()
    await injectEthereum(context)
    await injectSolana(context)
    await review(page, await Desktop.start(url, { ...login, adapterId: 'solana' }))
    await page.getByRole('button', { name: 'Continue with Test Ghost' }).waitFor()
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByRole('list', { name: 'Wallets' }).getByRole('button').waitFor()
    const names = await page.getByRole('list', { name: 'Wallets' }).getByRole('button').allTextContents()
    expect(names).toEqual([expect.stringContaining('Test Ghost')])
  })

  test('that is slow, the page says what it waits for and how long; the order’s end ends it', async () => {
    const { url, page, context } = await opened()
    const fox = await injectEthereum(context)
    const desktop = await Desktop.start(url, login)
    await review(page, desktop)
    await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
    fox.signs = 'wait'
    await approve(page)
    await page.getByText('Look at Test Fox').waitFor()
    await page.getByText(/^Your wallet has (2:00|1:\d\d) left$/).waitFor()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 125_000 })
    await expectHeading(page, 'The request expired while your wallet was signing')
    await page.getByText('If your wallet still asks you, decline there').waitFor()
    fox.release()
    await expect.poll(() => fox.hasSigned).toBe(true)
    expect((await desktop.finalize()).json.code).toBe('ORDER_EXPIRED')
    await expectHeading(page, 'The request expired while your wallet was signing')
  })

  test('that is slow, the user hears of a cancellation, and can decline', async () => {
    const { url, page, context } = await opened()
    const fox = await injectEthereum(context)
    fox.signs = 'wait'
    const cancelled = await Desktop.start(url, login)
    await review(page, cancelled)
    await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
    await approve(page)
    await page.getByText('Look at Test Fox').waitFor()
    await cancelled.cancel()
    await expectHeading(page, 'Cancelled on your computer')
    const declined = await Desktop.start(url, login)
    await review(page, declined)
    await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
    await approve(page)
    await page.getByText('Look at Test Fox').waitFor()
    await page.getByRole('button', { name: 'Decline' }).click()
    await expectHeading(page, 'Declined')
  })

  test('that signs late but in time, the order is approved', async () => {
    const { url, page, context } = await opened()
    const fox = await injectEthereum(context)
    fox.signs = 'wait'
    const desktop = await Desktop.start(url, login)
    await review(page, desktop)
    await page.getByRole('button', { name: 'Continue with Test Fox' }).click()
    await approve(page)
    await page.getByText(/^Your wallet has/).waitFor()
    fox.release()
    await expectHeading(page, 'Approved')
    expect((await desktop.finalize()).json.session.address).toBe(fox.account.address)
  })

  test('without one, the page says so and what to do, and makes none', async () => {
    const { url, page, trail } = await opened()
    await review(page, await Desktop.start(url, login))
    await page.getByText('No wallet was found in this browser').waitFor()
    await page.getByText('scan the code with a phone that has one').waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Choose a wallet' }).click()
    const names = await page.getByRole('list', { name: 'Wallets' }).getByRole('button').allTextContents()
    expect(names).toEqual([expect.stringContaining('Nimiq Hub')])
    expect(await page.evaluate(() => Object.keys(localStorage))).toEqual([])
    expectNoFaults(trail)
  })
})
