import type { BrowserContextOptions, Page } from 'playwright-core'
import type { FlatOptions } from '../../src/service/config.ts'
import { makeWallet } from '../support/wallet.ts'
import { Desktop } from './desktop.ts'

/** What a state is reached with. */
export interface StateParts {
  /** Starts a service, and opens a phone's page. */
  readonly open: (settings?: FlatOptions) => Promise<{ readonly url: string; readonly page: Page }>
  /** One more page of the same phone's kind. */
  readonly another: () => Promise<Page>
}

/** Brings a page into a state of the approval page, whatever its language. Returns the page to look at. */
type State = (parts: StateParts) => Promise<Page>

const windows =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'

const login = {
  kind: 'login',
  displayTitle: 'Sign in to Green Bakery',
  displaySummary: 'You asked to continue your order of twelve loaves on the big screen.',
}

const invoice = {
  kind: 'sign',
  displayTitle: 'Approve invoice 1042',
  payload: JSON.stringify({
    payee: 'Green Bakery',
    amount: 1234567.5,
    currency: 'NIM',
    dueDate: '2026-12-01',
    lines: [{ item: 'Bread', count: 12 }],
  }),
}

/** The phone of the states. */
export const phone: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
  userAgent:
    'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36',
}

const start = (url: string, order: object = login): Promise<Desktop> =>
  Desktop.start(url, order, { headers: { 'user-agent': windows } })

const tap = (page: Page, id: string): Promise<void> => page.locator(`#${id}`).click()

async function first({ open }: StateParts, settings?: FlatOptions, order?: object) {
  const { url, page } = await open(settings)
  const desktop = await start(url, order)
  await page.goto(desktop.order.claimUrl)
  await page.locator('#start:not([aria-busy])').waitFor()
  return { url, page, desktop }
}

async function review(parts: StateParts, settings?: FlatOptions, order?: object) {
  const opened = await first(parts, settings, order)
  await tap(opened.page, 'review-button')
  await opened.page.locator('#review').waitFor()
  return opened
}

async function approve(parts: StateParts, settings?: FlatOptions, order?: object) {
  const opened = await review(parts, settings, order)
  await tap(opened.page, 'approve-button')
  await opened.page.locator('#outcome').waitFor()
  return opened
}

async function ended(page: Page): Promise<Page> {
  await page.locator('#ended').waitFor()
  return page
}

const apps: FlatOptions = { adapters: ['nimiq', 'ethereum', 'solana'], demoWallet: false }

/** The states of the approval page that people see, by name. */
export const approvalStates: Readonly<Record<string, State>> = {
  start: async (parts) => (await first(parts)).page,
  async waiting({ open }) {
    const { url, page } = await open()
    await page.route('**/cross-device/preview**', () => {})
    await page.goto((await start(url)).order.claimUrl)
    await page.locator('#start[aria-busy]').waitFor()
    return page
  },
  review: async (parts) => (await review(parts)).page,
  async details(parts) {
    const { page } = await review(parts)
    await page.locator('summary').click()
    return page
  },
  'sign order': async (parts) => (await review(parts, {}, invoice)).page,
  async 'for another wallet'(parts) {
    const expected = { adapterId: 'nimiq', expectedAddress: makeWallet().address }
    const { page } = await review(parts, {}, { ...invoice, ...expected })
    await page.locator('[data-slot=walletWarning]').waitFor()
    return page
  },
  async 'no wallet'(parts) {
    const { page } = await review(parts, apps)
    await page.locator('countersign-wallets a').first().waitFor()
    return page
  },
  async 'hand-over'(parts) {
    const { page } = await review(parts, apps)
    await page.locator('countersign-wallets a').first().waitFor()
    await tap(page, 'hand-over-button')
    return page
  },
  async continue(parts) {
    const { page } = await review(parts)
    await tap(page, 'hand-over-button')
    const other = await parts.another()
    await page.locator('#hand-over').waitFor()
    await other.goto(await page.locator('#hand-over-input').inputValue())
    await other.locator('#continue').waitFor()
    return other
  },
  async moved(parts) {
    const { page } = await review(parts)
    await tap(page, 'hand-over-button')
    const other = await parts.another()
    await page.locator('#hand-over').waitFor()
    await other.goto(await page.locator('#hand-over-input').inputValue())
    await tap(other, 'continue-button')
    await page.locator('#outcome').waitFor()
    return page
  },
  async 'code entry'(parts) {
    const { page } = await review(parts, { confirmationCode: 'required' })
    await page.locator('#code-input').fill('123456')
    return page
  },
  async 'wrong code'(parts) {
    const { page, desktop } = await review(parts, { confirmationCode: 'required' })
    await page.locator('#code-input').fill(desktop.order.confirmationCode === '000000' ? '000001' : '000000')
    await tap(page, 'approve-button')
    await page.locator('#code-error:not(:empty)').waitFor()
    return page
  },
  'return code': async (parts) => (await approve(parts, { confirmationCode: 'return' })).page,
  approved: async (parts) => (await approve(parts)).page,
  async 'signed in'(parts) {
    const { page, desktop } = await approve(parts)
    await desktop.finalize()
    await page.locator('#outcome[data-stage=finalized]').waitFor()
    return page
  },
  async 'taken back'(parts) {
    const { page, desktop } = await approve(parts)
    await desktop.finalize()
    await page.locator('#outcome[data-stage=finalized]').waitFor()
    await tap(page, 'stop-button')
    return await ended(page)
  },
  async declined(parts) {
    const { page } = await review(parts)
    await tap(page, 'decline-button')
    return await ended(page)
  },
  async offline(parts) {
    const { page } = await review(parts)
    await page.context().setOffline(true)
    await tap(page, 'approve-button')
    await page.locator('#notice').waitFor()
    return page
  },
  async 'claimed elsewhere'(parts) {
    const { desktop } = await review(parts)
    const other = await parts.another()
    await other.goto(desktop.order.claimUrl)
    return await ended(other)
  },
  async cancelled(parts) {
    const { page, desktop } = await first(parts)
    await desktop.cancel()
    return await ended(page)
  },
  async incomplete({ open }) {
    const { url, page } = await open()
    await page.goto((await start(url)).order.claimUrl.split('#')[0]!)
    return await ended(page)
  },
  async 'not found'({ open }) {
    const { url, page } = await open()
    const { claimUrl, orderId } = (await start(url)).order
    await page.goto(claimUrl.replace(orderId, orderId.split('').reverse().join('')))
    return await ended(page)
  },
}
