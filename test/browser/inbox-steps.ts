import type { Page } from 'playwright-core'
import type { CountersignOptions } from '../../src/service/config.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'
import { keepCookie } from './flows.ts'

/** Steps of the tests of the inbox. */

const startKey = 'a-start-key-of-the-tests-of-the-inbox'

/** Settings of a service whose backend asks users. */
export const asking: CountersignOptions = { orderStartKeys: [`ops-agent=${startKey}`], pages: { demoWallet: true } }

/** What a backend asks, unless a test says otherwise. */
const usual = {
  displayTitle: 'Delete the database “orders-eu”',
  displaySummary: 'The nightly clean-up found it unused for 90 days.',
  payload: JSON.stringify({
    typ: 'countersign/action',
    action: { tool: 'delete_database', arguments: { name: 'orders-eu', sizeGb: 4.2, keepBackup: true } },
    nonce: 'b3BhcXVlLW5vbmNl',
  }),
}

/** A backend's request for a user's approval. */
export class Ask {
  readonly #url: string
  readonly #key: string
  readonly order: { readonly orderId: string; readonly desktopToken: string; readonly approvalUrl: string }

  private constructor(url: string, key: string, order: Ask['order']) {
    this.#url = url
    this.#key = key
    this.order = order
  }

  /** Asks a user at a service. Throws unless the service takes it. */
  static async start(url: string, userId: string, order: object = {}): Promise<Ask> {
    const body = { kind: 'sign', ...usual, inboxUserId: userId, requester: { origin: url }, ...order }
    const { status, json } = await rest(url, '/cross-device/start', body, { authorization: `Bearer ${startKey}` })
    if (status !== 200) throw new Error(JSON.stringify(json))
    return new Ask(url, crypto.randomUUID().replaceAll('-', ''), json)
  }

  /** Fetches the result. */
  async finalize(): Promise<RestAnswer> {
    const { orderId, desktopToken } = this.order
    return await rest(this.#url, '/cross-device/finalize', { orderId, desktopToken, finalizeKey: this.#key })
  }

  async cancel(): Promise<RestAnswer> {
    const { orderId, desktopToken } = this.order
    return await rest(this.#url, '/cross-device/cancel', { orderId, desktopToken })
  }
}

/** Signs a page's browser in with a wallet. Resolves with the user's id. */
export async function signInUser(page: Page, url: string, wallet: TestWallet = makeWallet()): Promise<string> {
  const { json } = await rest(url, '/wallet/nonce', {})
  const answer = await rest(url, '/wallet/verify', proofOf(wallet, json))
  await keepCookie(page, url, answer)
  return answer.json.session.userId
}

/** Signs a phone in with its demo wallet, on the page where it wants to go. Resolves with the user's id. */
export async function signInWithDemoWallet(page: Page, url: string, path = '/api/auth/inbox'): Promise<string> {
  await page.goto(`${url}${path}`)
  await page.waitForURL('**/api/auth/sign-in?**')
  // In any language. On phones, the list of wallets is there from the start.
  const [list, demo] = [page.locator('[part=this-device]'), page.locator('countersign-wallets .demo')]
  await list.or(demo).filter({ visible: true }).first().waitFor()
  if (await list.isVisible()) await list.click()
  await demo.click()
  await page.waitForURL(`${url}${path}`)
  const { session } = await (await page.request.get(`${url}/api/auth/session`)).json()
  return session.userId
}
