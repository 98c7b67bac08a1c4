import type { Page } from 'playwright-core'
import { makeWallet } from '../../support/wallet.ts'
import { phoneClient } from '../client/phone.ts'
import { Desktop } from '../desktop.ts'
import { keepCookie } from '../flows.ts'
import { Ask, asking, signInUser, signInWithDemoWallet } from '../inbox-steps.ts'
import { android } from '../phones.ts'
import { tap } from '../support.ts'
import { type StateParts, type States, withoutScripts } from './order-states.ts'

const long = {
  displayTitle:
    'Donaudampfschifffahrtsgesellschaftskapitänsmützenverordnung und mehr davon, in einem sehr langen Titel',
  displaySummary: 'The nightly clean-up found it unused for 90 days, and its owner has left. '.repeat(6),
  ttlSeconds: 60,
}
const rightToLeft = {
  displayTitle: 'احذف المستودع «تقارير» من الخادم',
  displaySummary: 'طلب من فريق العمليات بعد نقل كل الملفات إلى المكان الجديد',
  ttlSeconds: 86_400,
}

async function show(page: Page, url: string, query = ''): Promise<Page> {
  await page.goto(`${url}/api/auth/inbox${query}`)
  await page.locator('#head').waitFor()
  return page
}

/** The inbox of a user whom these requests are for. */
async function opened({ serve, open }: StateParts, ...orders: readonly object[]) {
  const [url, page] = [await serve({ ...asking, pages: { textsFile } }), await open(android)]
  const userId = await signInUser(page, url)
  for (const order of orders) await Ask.start(url, userId, order)
  return { url, userId, page: await show(page, url) }
}

const textsFile = new URL('./texts.json', import.meta.url).pathname

/** A request as the phone's user, signed in with the demo wallet, reviews it. */
async function reviewed({ serve, open }: StateParts, order: object = {}) {
  const [url, page] = [await serve({ ...asking, pages: { demoWallet: true, textsFile } }), await open(android)]
  const userId = await signInWithDemoWallet(page, url)
  const ask = await Ask.start(url, userId, order)
  await page.goto(ask.order.approvalUrl)
  await tap(page.locator('.request .button'))
  await page.locator('#approve-button').waitFor()
  return { page, ask }
}

export const inboxStates: States = {
  list: async (parts) => (await opened(parts, rightToLeft, long, {})).page,
  'one request': async (parts) => (await opened(parts, {})).page,
  empty: async (parts) => (await opened(parts)).page,
  async 'one of several, by its link'(parts) {
    const { url, userId, page } = await opened(parts, {})
    const { orderId } = (await Ask.start(url, userId, rightToLeft)).order
    return await show(page, url, `?order=${orderId}`)
  },
  async over(parts) {
    const { url, page } = await opened(parts, {})
    return await show(page, url, '?order=zzzzzzzzzzzzzzzzzzzzzz')
  },
  async 'signed in with a phone'({ serve, open }) {
    const [url, page] = [await serve(), await open(android)]
    const desktop = await Desktop.start(url)
    const client = phoneClient(url, makeWallet())
    const order = await client.claimOrder(desktop.order.claimUrl)
    await client.approveOrder(order, { challenge: await client.getOrderChallenge(order) })
    await keepCookie(page, url, await desktop.finalize())
    return await show(page, url)
  },
  async 'signed out'(parts) {
    const { page } = await opened(parts, {})
    await page.context().clearCookies()
    await page.locator('#closed').waitFor()
    return page
  },
  async offline(parts) {
    const { page } = await opened(parts, {})
    await page.context().setOffline(true)
    await page.locator('#notice').waitFor()
    return page
  },
  async 'no JavaScript'({ serve, open }) {
    const [url, page] = [await serve(), await open(withoutScripts)]
    await page.goto(`${url}/api/auth/inbox`)
    return page
  },
  review: async (parts) => (await reviewed(parts)).page,
  'long review': async (parts) => (await reviewed(parts, { ...long, ttlSeconds: 86_400 })).page,
  async approved(parts) {
    const { page } = await reviewed(parts)
    await tap(page.locator('#approve-button'))
    await page.locator('#outcome').waitFor()
    return page
  },
  async 'approval used'(parts) {
    const { page, ask } = await reviewed(parts)
    await tap(page.locator('#approve-button'))
    await page.locator('#outcome').waitFor()
    await ask.finalize()
    await page.locator('[data-stage=finalized]').waitFor()
    return page
  },
  async withdrawn(parts) {
    const { page, ask } = await reviewed(parts)
    await ask.cancel()
    await page.locator('#ended').waitFor()
    return page
  },
}
