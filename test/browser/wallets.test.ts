import type { BrowserContext, Page } from 'playwright-core'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { countOf, startChain } from '../support/evm.ts'
import { startService } from '../support/service.ts'
import vectors from '../vectors/ethereum.json' with { type: 'json' }
import { Desktop } from './desktop.ts'
import { expectHeading, expectSignedIn, showWallets } from './flows.ts'
import { expectNoFaults, hasBrowser, provokes, useBrowser } from './support.ts'
import { injectEthereum } from './wallets/ethereum.ts'
import type { InjectedWallet } from './wallets/injected-wallet.ts'
import { injectSolana } from './wallets/solana.ts'

const settings: CountersignOptions = { adapters: ['nimiq', 'ethereum', 'solana'], pages: { demoWallet: false } }

const login = { kind: 'login', displayTitle: 'Sign in to Green Bakery' }

interface Kind {
  readonly kind: string
  readonly inject: (context: BrowserContext) => Promise<InjectedWallet>
  /** Whose account the text asks for. */
  readonly chain: string
  /** The account in the last line of what a sign order has signed. */
  readonly account: (address: string) => string
  /** What the page says if the user switches accounts while the wallet asks for a signature. */
  readonly switched: string
}

const solana = {
  chain: 'Solana',
  account: (address: string) => `solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:${address}`,
  switched: 'The account or network in the wallet has changed',
}

const kinds: readonly Kind[] = [
  {
    kind: 'Ethereum',
    inject: injectEthereum,
    chain: 'Ethereum',
    account: (address) => `eip155:1:${address}`,
    switched: 'You declined in your wallet',
  },
  { kind: 'Solana with solana:signIn', inject: injectSolana, ...solana },
  {
    kind: 'Solana with signMessage only',
    inject: (context) => injectSolana(context, { signIn: false }),
    ...solana,
  },
]

/** Opens a claim URL and reviews the request. */
async function review(page: Page, { order }: Desktop): Promise<void> {
  await page.goto(order.claimUrl)
  await page.getByRole('button', { name: 'Continue', exact: true }).click()
  await page.getByRole('button', { name: 'Decline' }).waitFor()
}

/** Goes on with the only wallet. */
async function connect(page: Page, { name }: InjectedWallet): Promise<void> {
  await page.getByRole('button', { name: `Continue with ${name}` }).click()
}

async function click(page: Page, name: 'Approve' | 'Decline' | 'Try again' | 'Change'): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click()
}

/** Waits until the page shows which account is going to sign. */
async function expectSigner(page: Page, { address }: InjectedWallet): Promise<void> {
  await page
    .locator('#signer')
    .getByText(`${address.slice(0, 6)} … ${address.slice(-4)}`)
    .waitFor()
}

/** The exact text that the page says is signed. */
async function shownText(page: Page): Promise<string> {
  return (await page.locator('[data-slot=message]').textContent()) ?? ''
}

/** Waits until a wallet has been asked to sign so many texts. */
async function expectAsked({ asked }: InjectedWallet, times: number): Promise<void> {
  await expect.poll(() => asked.length).toBe(times)
}

describe.skipIf(!hasBrowser)('with a wallet in the browser,', () => {
  const browser = useBrowser()
  afterEach(() => void vi.useRealTimers())

  async function opened(more: CountersignOptions = {}) {
    const { url } = await startService({ ...settings, ...more })
    const { page, trail } = await browser.open()
    return { url, page, trail, context: page.context() }
  }

  /** With a wallet that is chosen for an order. */
  async function chosen(inject: Kind['inject'], order: object = login) {
    const { url, page, trail, context } = await opened()
    const wallet = await inject(context)
    const desktop = await Desktop.start(url, order)
    await review(page, desktop)
    await connect(page, wallet)
    await expectSigner(page, wallet)
    return { url, page, trail, wallet, desktop }
  }

  describe.each(kinds)('of $kind,', ({ inject, chain, account, switched }) => {
    const textOf = (url: string, { address }: InjectedWallet): string =>
      `${new URL(url).host} wants you to sign in with your ${chain} account:\n${address}\n`

    test('a user signs in on the page: not if they decline, close the wallet or switch accounts', async () => {
      const { url, page, trail, context } = await opened()
      const wallet = await inject(context)
      await page.goto(url)
      await showWallets(page)
      wallet.connects = 'close'
      await page.getByRole('button', { name: wallet.name }).click()
      await page.getByText('The wallet was closed without an answer').waitFor()
      wallet.connects = 'sign'
      wallet.signs = 'decline'
      await page.getByRole('button', { name: wallet.name }).click()
      await expectAsked(wallet, 1)
      await page.getByText('You declined in your wallet').waitFor()
      wallet.signs = 'wait'
      await page.getByRole('button', { name: wallet.name }).click()
      await page.getByText(`Confirm in ${wallet.name}`).waitFor()
      await expectAsked(wallet, 2)
      await wallet.switchAccount(page)
      wallet.release()
      await page.getByText(switched).waitFor()
      await page.getByRole('button', { name: wallet.name }).click()
      await page.getByText(`Confirm in ${wallet.name}`).waitFor()
      await expectAsked(wallet, 3)
      wallet.release()
      await expectSignedIn(page, wallet.address)
      expect(wallet.asked[2]?.startsWith(textOf(url, wallet))).toBe(true)
      expectNoFaults(trail)
    })

    test('a user approves; the page shows account and text before the wallet does, and goes on after a refusal', async () => {
      const { url, page, trail, context } = await opened()
      const wallet = await inject(context)
      const desktop = await Desktop.start(url, login)
      wallet.connects = 'decline'
      await review(page, desktop)
      await connect(page, wallet)
      await page.getByText('You declined in your wallet').waitFor()
      wallet.connects = 'sign'
      await click(page, 'Try again')
      await expectSigner(page, wallet)
      await page.getByText('The exact text that is signed').click()
      await page.locator('details').getByText(wallet.address, { exact: true }).waitFor()
      const text = await shownText(page)
      expect(text.startsWith(textOf(url, wallet))).toBe(true)
      expect(wallet.asked).toEqual([])
      wallet.signs = 'close'
      await click(page, 'Approve')
      await page.getByText('The wallet closed without an answer').waitFor()
      wallet.signs = 'decline'
      await click(page, 'Approve')
      await page.getByText('You declined in your wallet').waitFor()
      expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
      wallet.signs = 'sign'
      await click(page, 'Approve')
      await expectHeading(page, 'Approved')
      expect(wallet.asked).toEqual([text, text, text])
      expect((await desktop.finalize()).json.session.address).toBe(wallet.address)
      expectNoFaults(trail)
    })

    test('an account that the user switches to takes the place of the other one, and one that the page does not know of signs nothing', async () => {
      const { page, wallet, desktop } = await chosen(inject)
      const former = wallet.address
      await wallet.switchAccount(page)
      await expectSigner(page, wallet)
      await expect.poll(() => shownText(page)).toContain(wallet.address)
      expect(await shownText(page)).not.toContain(former)
      await wallet.changeAccount(page)
      await click(page, 'Approve')
      await page.getByText('The wallet used a different key').waitFor()
      expect(wallet.asked).toEqual([])
      expect((await desktop.finalize()).json.code).toBe('ORDER_NOT_APPROVED')
      // The user sees the other account before it signs.
      expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
      await click(page, 'Try again')
      await expectSigner(page, wallet)
      await click(page, 'Approve')
      await expectHeading(page, 'Approved')
      expect((await desktop.finalize()).json.session.address).toBe(wallet.address)
    })

    test('that is slow, the page says how long it waits; in time it signs, with its account in the last line, and after the end it signs nothing', async () => {
      const { url, page, wallet, desktop } = await chosen(inject, { kind: 'sign', displayTitle: 'Sell the house' })
      wallet.signs = 'wait'
      await click(page, 'Approve')
      await page.getByText(`Confirm in ${wallet.name}`).waitFor()
      await page.getByText(/^Your wallet has (2:00|1:\d\d) left$/).waitFor()
      await expectAsked(wallet, 1)
      wallet.release()
      await expectHeading(page, 'Approved')
      const { proofArtifact } = (await desktop.finalize()).json
      expect(proofArtifact.message.split('\n').at(-1)).toBe(`Account: ${account(wallet.address)}`)
      expect(wallet.asked).toEqual([proofArtifact.message])

      const late = await Desktop.start(url, login)
      await review(page, late)
      await connect(page, wallet)
      wallet.hasSigned = false
      await click(page, 'Approve')
      await expectAsked(wallet, 2)
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 125_000 })
      await expectHeading(page, 'The request expired while your wallet was signing')
      await page.getByText('If your wallet still asks you, decline there').waitFor()
      wallet.release()
      await expect.poll(() => wallet.hasSigned).toBe(true)
      expect((await late.finalize()).json.code).toBe('ORDER_EXPIRED')
      await expectHeading(page, 'The request expired while your wallet was signing')
    })
  })

  test('that is slow, the user hears of a cancellation, and can decline', async () => {
    const { url, page, wallet, desktop } = await chosen(injectEthereum)
    wallet.signs = 'wait'
    await click(page, 'Approve')
    await page.getByText('Confirm in Test Fox').waitFor()
    await desktop.cancel()
    await expectHeading(page, 'Cancelled on your computer')
    await review(page, await Desktop.start(url, login))
    await connect(page, wallet)
    await click(page, 'Approve')
    await page.getByText('Confirm in Test Fox').waitFor()
    await click(page, 'Decline')
    await expectHeading(page, 'Declined')
  })

  test('whose contract was asked about three times, the user is told to take another one', async () => {
    provokes(/(401|429) .*approve/)
    const chain = await startChain()
    const { url, page, context } = await opened({ evmRpc: { 1: chain.url } })
    const fox = await injectEthereum(context)
    const ghost = await injectSolana(context)
    // A contract wallet whose signer is not the one that it knows.
    const address = await chain.deploy(vectors.contract.runtime)
    fox.account = { ...privateKeyToAccount(generatePrivateKey()), address }
    const desktop = await Desktop.start(url, login)
    await review(page, desktop)
    await page.getByRole('button', { name: 'Test Fox' }).click()
    for (const asked of [1, 2, 3]) {
      await click(page, 'Approve')
      await expect.poll(() => countOf(chain, 'eth_call')).toBe(asked)
      await page.getByText('The service didn’t accept the wallet’s signature').waitFor()
    }
    await click(page, 'Approve')
    await page.getByText('That was the third try with this wallet.').waitFor()
    expect(await page.getByRole('button', { name: 'Try again' }).isVisible()).toBe(false)
    expect([countOf(chain, 'eth_call'), fox.asked.length]).toEqual([3, 4])
    await click(page, 'Change')
    await page.getByRole('button', { name: 'Test Ghost' }).click()
    await expectSigner(page, ghost)
    await click(page, 'Approve')
    await expectHeading(page, 'Approved')
    expect((await desktop.finalize()).json.session.address).toBe(ghost.address)
  })

  test('of which there are two, the user chooses, and can choose again', async () => {
    const { url, page, context } = await opened()
    const fox = await injectEthereum(context)
    const ghost = await injectSolana(context)
    const desktop = await Desktop.start(url, login)
    await review(page, desktop)
    expect(await page.getByRole('button', { name: 'Approve' }).isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Test Fox' }).click()
    await expectSigner(page, fox)
    await click(page, 'Change')
    await page.getByRole('button', { name: 'Test Ghost' }).click()
    await expectSigner(page, ghost)
    expect(await shownText(page)).toContain(ghost.address)
    await click(page, 'Approve')
    await expectHeading(page, 'Approved')
    expect(fox.asked).toEqual([])
    expect([ghost.asked.length, ghost.signIns]).toEqual([1, 1])
    expect((await desktop.finalize()).json.session.address).toBe(ghost.address)
  })

  test('only wallets of the kind that the order asks for are offered', async () => {
    const { url, page, context } = await opened()
    await injectEthereum(context)
    const ghost = await injectSolana(context)
    await review(page, await Desktop.start(url, { ...login, adapterId: 'solana' }))
    await page.getByRole('button', { name: `Continue with ${ghost.name}` }).waitFor()
    await click(page, 'Change')
    await page.getByRole('list', { name: 'Wallets' }).getByRole('button').waitFor()
    const names = await page.getByRole('list', { name: 'Wallets' }).getByRole('button').allTextContents()
    expect(names).toEqual([expect.stringContaining(ghost.name)])
  })

  test('without one, the page says so and what to do, and makes none', async () => {
    const { url, page, trail } = await opened()
    await review(page, await Desktop.start(url, login))
    await page.getByText('No wallet extension found. You can still use:').waitFor()
    await page.getByText('tap “Continue in another browser”').waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    const names = await page.getByRole('list', { name: 'Wallets' }).getByRole('button').allTextContents()
    expect(names).toEqual([expect.stringContaining('Nimiq Hub')])
    expect(await page.evaluate(() => Object.keys(localStorage))).toEqual([])
    expectNoFaults(trail)
  })
})
