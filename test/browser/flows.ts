import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { type RestAnswer, rest } from '../support/rest.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'
import { scan } from './support.ts'

/** Steps that people take on the pages, by what they see of them. */

/** Opens the demo on a desktop. Resolves with its code for the phone. */
export async function openForPhone(desktop: Page, url: string): Promise<Locator> {
  await desktop.goto(url)
  return await signInCode(desktop)
}

/** Has the demo show its code for the phone. */
export async function signInCode(desktop: Page): Promise<Locator> {
  await signInCard(desktop).getByRole('button', { name: 'Show the code', exact: true }).click()
  const code = qrCode(signInCard(desktop))
  await code.waitFor()
  return code
}

/** The part of the demo where its user signs in. */
export function signInCard(page: Page): Locator {
  return page.getByRole('region', { name: 'Sign in', exact: true })
}

/** Has the demo show the wallets on a computer; on a phone, it shows them by itself. */
export async function showWallets(page: Page): Promise<void> {
  await signInCard(page).getByRole('button', { name: 'Use a wallet on this device' }).click()
}

/** Signs in on the demo with the demo wallet. */
export async function signInOnDemo(page: Page): Promise<void> {
  await showWallets(page)
  await signInCard(page).getByRole('button', { name: 'Demo wallet' }).click()
  await expectSignedIn(page)
}

/** The part of the demo where the phone signs something. */
export function signCard(desktop: Page): Locator {
  return desktop.getByRole('region', { name: 'Request a signature' })
}

/** The QR code in a part of the demo. */
export function qrCode(card: Locator): Locator {
  return card.getByRole('img', { name: /QR code/ })
}

/** The confirmation code that a part of the demo shows. */
export async function confirmationCode(card: Locator): Promise<string> {
  return (await card.locator('[part=code] > [aria-hidden]').textContent()) ?? ''
}

/** Waits for a part of the demo to tell that the phone's user is to decide. */
export async function expectAnswerAwaited(card: Locator): Promise<void> {
  await card.getByText('Check that both codes match').waitFor()
}

/** Scans the code and opens the approval page on a phone. */
export async function openOnPhone(phone: Page, code: Locator): Promise<string> {
  const claimUrl = await scan(code)
  await phone.goto(claimUrl)
  await phone.getByRole('button', { name: 'Continue', exact: true }).waitFor()
  return claimUrl
}

/** Scans the code and has the phone review the request. */
export async function reviewOnPhone(phone: Page, code: Locator): Promise<string> {
  const claimUrl = await openOnPhone(phone, code)
  await phone.getByRole('button', { name: 'Continue', exact: true }).click()
  await phone.getByRole('button', { name: 'Approve' }).waitFor()
  return claimUrl
}

/** What the phone says of an order that it has approved, whether the computer has finished or not. */
export const approvedHeading = /^(Approved|Your computer is signed in|Signed)$/

/**
 * Expects a page to come to show a heading that says this, with the focus on it. The screen before may have a heading
 * with the same words, and the focus elsewhere: both are read in one look.
 */
export async function expectHeading(page: Page, name: string | RegExp): Promise<void> {
  const headings = page.getByRole('heading', { name })
  const isFocused = () => headings.evaluateAll((all) => all.some((heading) => heading === document.activeElement))
  await expect.poll(isFocused, { message: `the focus is on a heading ${name}` }).toBe(true)
}

/**
 * Expects a phone to show all of a request under this headline, with the focus on one of its headings: the first, or, if
 * that was there before the tap, the one above what is new.
 */
export async function expectReview(page: Page, headline: RegExp): Promise<void> {
  await page.getByRole('heading', { name: headline }).waitFor()
  await page.getByRole('button', { name: 'Decline' }).waitFor()
  await expectHeading(page, /./)
}

/** The digits to compare that the phone shows. */
export async function codeOnPhone(page: Page): Promise<string> {
  return (await page.locator('#code > [aria-hidden]').textContent()) ?? ''
}

/** Expects the desktop to be signed in with an address. */
export async function expectSignedIn(desktop: Page, address?: string): Promise<void> {
  const session = desktop.getByRole('region', { name: 'You’re signed in', exact: true })
  await session.waitFor()
  if (address !== undefined) expect(await session.locator('.who bdi').getAttribute('title')).toBe(address)
}

/** The address of the wallet that the phone is about to sign with, or of who is signed in. */
export async function addressOf(page: Page): Promise<string> {
  const text = await page.locator('main').innerHTML()
  return /NQ\d\d( [0-9A-Z]{4}){8}/.exec(text)![0]
}

/** The link that continues the order in another browser, once the phone's page shows it. */
export async function handOverLink(page: Page): Promise<string> {
  const link = page.getByLabel('Open this link in the other browser')
  await link.waitFor()
  return await link.inputValue()
}

/** Signs a page's browser in with a wallet, as another tab would. Resolves with the bearer token. */
export async function signIn(page: Page, url: string, wallet: TestWallet = makeWallet()): Promise<string> {
  const { json } = await rest(url, '/wallet/nonce', {})
  const answer = await rest(url, '/wallet/verify', proofOf(wallet, json))
  await keepCookie(page, url, answer)
  return answer.json.token
}

/** Gives the session cookie of an answer to a page's browser. */
export async function keepCookie(page: Page, url: string, { headers }: RestAnswer): Promise<void> {
  const [name = '', value = ''] = (headers.get('set-cookie') ?? '').split(/[=;]/)
  await page.context().addCookies([{ name, value, url, httpOnly: true, sameSite: 'Lax' }])
}
