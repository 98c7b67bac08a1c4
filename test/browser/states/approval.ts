import type { Page } from 'playwright-core'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { rest } from '../../support/rest.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'
import { Desktop } from '../desktop.ts'
import { android } from '../phones.ts'
import { injectEthereum } from '../wallets/ethereum.ts'
import { injectSolana } from '../wallets/solana.ts'
import { noWallet, type StateParts, type States } from './order-states.ts'

const windows =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'

const login = {
  kind: 'login',
  displayTitle: 'Sign in to Green Bakery',
  displaySummary: 'You asked to continue your order of twelve loaves on the big screen.',
}

const link = { kind: 'link' }

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

async function start(url: string, order: object = login): Promise<Desktop> {
  const session = order === link ? await signedIn(url) : {}
  return await Desktop.start(url, order, { headers: { 'user-agent': windows, ...session } })
}

/** The header of a session that a wallet has made on its own device. */
async function signedIn(url: string): Promise<Record<string, string>> {
  const proof = proofOf(makeWallet(), (await rest(url, '/wallet/nonce', {})).json)
  return { authorization: `Bearer ${(await rest(url, '/wallet/verify', proof)).json.token}` }
}

const tap = (page: Page, id: string): Promise<void> => page.locator(`#${id}`).click()

const loaves = {
  kind: 'sign',
  payload: JSON.stringify({ loaves: Array.from({ length: 200 }, (_, index) => `Loaf ${index + 1}`), note: 'Rye' }),
}

async function first({ serve, open }: StateParts, settings?: CountersignOptions, order?: object) {
  const [url, page] = [await serve(settings), await open(android)]
  const desktop = await start(url, order)
  await page.goto(desktop.order.claimUrl)
  await page.locator('#request').waitFor()
  return { url, page, desktop }
}

async function review(parts: StateParts, settings?: CountersignOptions, order?: object) {
  const opened = await first(parts, settings, order)
  await tap(opened.page, 'review-button')
  await opened.page.locator('#review').waitFor()
  return opened
}

/** Opens the link that continues the order in another browser. */
async function handOver(parts: StateParts) {
  const { page } = await review(parts)
  await tap(page, 'hand-over-button')
  const other = await parts.open(android)
  await page.locator('#hand-over').waitFor()
  const link = await page.locator('#hand-over-input').inputValue()
  await other.goto(link)
  await other.locator('#continue').waitFor()
  return { page, other, link }
}

async function approve(parts: StateParts, settings?: CountersignOptions, order?: object) {
  const opened = await review(parts, settings, order)
  await tap(opened.page, 'approve-button')
  await opened.page.locator('#outcome').waitFor()
  return opened
}

/** Reviews an order with two wallets in the browser, the first of which never answers. */
async function withWallets(parts: StateParts, settings?: CountersignOptions) {
  const open = async () => {
    const page = await parts.open(android)
    const fox = await injectEthereum(page.context(), { name: 'Fox' })
    await injectSolana(page.context(), { name: 'محفظة \u202eتجريبية' })
    fox.signs = 'wait'
    return page
  }
  const { page } = await review({ ...parts, open }, { ...noWallet, ...settings })
  return { page, fox: page.getByRole('button', { name: /^Fox/ }) }
}

/** Approves with a wallet that does not answer. */
async function asked(parts: StateParts, settings?: CountersignOptions) {
  const { page, fox } = await withWallets(parts, settings)
  await fox.click()
  await tap(page, 'approve-button')
  await page.locator('#notice').filter({ hasText: 'Fox' }).waitFor()
  return page
}

async function ended(page: Page): Promise<Page> {
  await page.locator('#ended').waitFor()
  return page
}

export const approvalStates: States = {
  start: async (parts) => (await first(parts)).page,
  async waiting({ serve, open }) {
    const [url, page] = [await serve(), await open(android)]
    await page.route('**/cross-device/preview**', () => {})
    await page.goto((await start(url)).order.claimUrl)
    await page.locator('#choice').waitFor()
    return page
  },
  review: async (parts) => (await review(parts)).page,
  async details(parts) {
    const { page } = await review(parts)
    await page.locator('#review > details > summary').click()
    return page
  },
  'adding a wallet': async (parts) => (await review(parts, {}, link)).page,
  'sign order': async (parts) => (await review(parts, {}, invoice)).page,
  'sign order of many values': async (parts) => (await review(parts, {}, loaves)).page,
  async 'a title from right to left'(parts) {
    return (await review(parts, {}, { kind: 'login', displayTitle: 'تسجيل الدخول إلى المخبز الأخضر' })).page
  },
  async 'for another wallet'(parts) {
    const expected = { adapterId: 'nimiq', expectedAddress: makeWallet().address }
    const { page } = await review(parts, {}, { ...invoice, ...expected })
    await page.locator('[data-slot=walletWarning]').waitFor()
    return page
  },
  async 'no wallet'(parts) {
    const { page } = await review(parts, noWallet)
    await page.locator('countersign-wallets a').first().waitFor()
    return page
  },
  async 'wallet list'(parts) {
    const { page } = await review(parts)
    await tap(page, 'other-wallet-button')
    await page.locator('countersign-wallets button').first().waitFor()
    return page
  },
  async 'two wallets'(parts) {
    const { page, fox } = await withWallets(parts)
    await fox.waitFor()
    return page
  },
  'wallet asked': async (parts) => await asked(parts),
  'wallet too slow': async (parts) => await ended(await asked(parts, { orderTtlSeconds: 10 })),
  async 'wallet of another site'(parts) {
    const { page } = await review(parts, noWallet)
    await page.getByRole('button', { name: 'Nimiq Hub' }).click()
    await page.locator('#approve-button').waitFor()
    return page
  },
  async 'hand-over'(parts) {
    const { page } = await review(parts, noWallet)
    await page.locator('countersign-wallets a').first().waitFor()
    await tap(page, 'hand-over-button')
    return page
  },
  continue: async (parts) => (await handOver(parts)).other,
  async continued(parts) {
    const { other } = await handOver(parts)
    await tap(other, 'review-button')
    await other.locator('#review').waitFor()
    return other
  },
  async moved(parts) {
    const { page, other } = await handOver(parts)
    await tap(other, 'review-button')
    await page.locator('#outcome').waitFor()
    return page
  },
  async 'link used up'(parts) {
    const { other, link } = await handOver(parts)
    await tap(other, 'review-button')
    await other.locator('#review').waitFor()
    const third = await parts.open(android)
    await third.goto(link)
    await tap(third, 'review-button')
    return await ended(third)
  },
  'return code': async (parts) => (await approve(parts, { confirmationCode: 'return' })).page,
  async 'three wrong codes'(parts) {
    const { page, desktop } = await approve(parts, { confirmationCode: 'return' })
    const right = await page.locator('#return-code > [aria-hidden]').textContent()
    for (let times = 0; times < 3; times++) await desktop.finalize(right === '000000' ? '000001' : '000000')
    return await ended(page)
  },
  'review in yellow': async (parts) => (await review(parts, { pages: { accentColor: '#ffe600' } })).page,
  'return code in navy': async (parts) =>
    (await approve(parts, { pages: { accentColor: '#0a1a4f' }, confirmationCode: 'return' })).page,
  approved: async (parts) => (await approve(parts)).page,
  async signed(parts) {
    const { page, desktop } = await approve(parts, {}, invoice)
    await desktop.finalize()
    await page.locator('#outcome[data-stage=finalized]').waitFor()
    return page
  },
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
    const other = await parts.open(android)
    await other.goto(desktop.order.claimUrl)
    return await ended(other)
  },
  async used(parts) {
    const { desktop } = await approve(parts)
    await desktop.finalize()
    const other = await parts.open(android)
    await other.goto(desktop.order.claimUrl)
    return await ended(other)
  },
  async expired(parts) {
    const { page } = await first(parts, { orderTtlSeconds: 10 })
    return await ended(page)
  },
  async cancelled(parts) {
    const { page, desktop } = await first(parts)
    await desktop.cancel()
    return await ended(page)
  },
  async incomplete({ serve, open }) {
    const [url, page] = [await serve(), await open(android)]
    await page.goto((await start(url)).order.claimUrl.split('#')[0]!)
    return await ended(page)
  },
  async 'not found'({ serve, open }) {
    const [url, page] = [await serve(), await open(android)]
    const { claimUrl, orderId } = (await start(url)).order
    await page.goto(claimUrl.replace(orderId, orderId.split('').reverse().join('')))
    return await ended(page)
  },
}
