import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { makeWallet } from '../../support/wallet.ts'
import { phoneClient } from '../client/phone.ts'
import { scan } from '../support.ts'

/** What a state is reached with. */
export interface StateParts {
  /** Language of the screen (BCP 47). */
  readonly locale: string
  /** Starts a service. Resolves with its URL. */
  readonly serve: (settings?: CountersignOptions) => Promise<string>
  /** Opens a page in a browser of its own, in the language of the screen. Default: a computer's. */
  readonly open: (device?: BrowserContextOptions) => Promise<Page>
}

/** The states of a page that people see, by name: each brings a page into it, in any language, and returns the page. */
export type States = Readonly<Record<string, (parts: StateParts) => Promise<Page>>>

/**
 * The states of an order on the computer that has started it, each in a page that `opened` has brought to show its code.
 */
export function orderStates(opened: (parts: StateParts, settings?: CountersignOptions) => Promise<Page>) {
  const typed: CountersignOptions = { confirmationCode: 'return' }
  return {
    code: async (parts) => await code(await opened(parts)),
    async 'code to compare'(parts) {
      const page = await opened(parts)
      await (await claim(page)).read()
      return page
    },
    async 'code entry'(parts) {
      const page = await opened(parts, typed)
      await enterCode(page)
      return page
    },
    async 'wrong code'(parts) {
      const page = await opened(parts, typed)
      await (await enterCode(page)).enterWrongCode()
      return page
    },
    async declined(parts) {
      const page = await opened(parts)
      await (await claim(page)).decline()
      return await orderEnded(page)
    },
  } satisfies States
}

/** A browser that runs no scripts. */
export const withoutScripts: BrowserContextOptions = { javaScriptEnabled: false }

/** Settings of a service that takes wallets of several kinds, of which this browser has none. */
export const noWallet: CountersignOptions = { adapters: ['nimiq', 'ethereum', 'solana'], pages: { demoWallet: false } }

/** Waits for the QR code that a page, or a part of it, shows. */
export async function code(page: Page, place: Page | Locator = page): Promise<Page> {
  await place.locator('[part=qr] svg').waitFor()
  return page
}

/** Waits until the search for wallets is over. */
export async function foundWallets(page: Page): Promise<Page> {
  await page.locator('countersign-wallets [part=hint]:not(.unsaid)').waitFor({ state: 'attached' })
  return page
}

/** Has the element list the wallets on this device. */
export async function wallets(page: Page): Promise<Page> {
  await page.locator('[part=this-device]').click()
  return await foundWallets(page)
}

/** Opens the order whose code a page, or a part of it, shows, as a phone does. The returned functions answer it. */
export async function claim(page: Page, place: Page | Locator = page) {
  await code(page, place)
  const claimUrl = await scan(place.locator('[part=qr]'))
  const client = phoneClient(new URL(claimUrl).origin, makeWallet())
  const order = await client.claimOrder(claimUrl)
  await place.locator('[part=qr]').waitFor({ state: 'hidden' })
  return {
    /** Reads the text to sign: from then on, the user is to decide. */
    async read() {
      const status = place.locator('[part=stage] ~ [part=status]')
      const before = await status.textContent()
      const challenge = await client.getOrderChallenge(order)
      await status.filter({ hasNotText: before ?? '' }).waitFor()
      return challenge
    },
    /** Resolves with the code that the phone shows, if it shows one. */
    async approve(): Promise<string | undefined> {
      const challenge = await client.getOrderChallenge(order)
      return (await client.approveOrder(order, { challenge })).returnCode
    },
    decline: () => client.rejectOrder(order),
  }
}

/** Waits for the end of a page's order, which leaves a button for another one. */
export async function orderEnded(page: Page): Promise<Page> {
  await page.locator('[part=renew]').waitFor()
  return page
}

/** Has a page's order approved on a phone, which shows a code. The returned function enters a wrong one. */
export async function enterCode(page: Page) {
  const order = await claim(page)
  const right = await order.approve()
  const field = page.locator('[part=return-code-field]')
  await field.waitFor()
  return {
    order,
    async enterWrongCode(): Promise<void> {
      await field.fill(right === '000000' ? '000001' : '000000')
      await page.locator('[part=return-code-field][aria-invalid]:not([readonly])').waitFor()
    },
  }
}
