import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import type { CountersignClient } from '../../../src/browser/client/index.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { phoneClient } from '../client/phone.ts'
import { servePage } from './page.ts'

/** Steps of the tests of the element, and what they see of it. */

export const wallet = makeWallet()
export const polling = { timeout: 15_000 }

export async function setUp(options: CountersignOptions = {}) {
  const { origin, show } = await servePage()
  const { url } = await startService({ trustedOrigins: [origin], ...options })
  const phone = phoneClient(url, wallet)
  return { origin, url, phone, show }
}

export const status = (page: Page) => page.getByRole('status')
export const code = (page: Page) => page.getByRole('img', { name: 'QR code for your phone' })
export const renew = (page: Page) => page.getByRole('button', { name: 'Show a new code' })
// biome-ignore lint/suspicious/noExplicitAny: what the page kept.
export const seen = (page: Page): Promise<any[]> => page.evaluate('globalThis.seen')
/** Waits for an event of the element and returns its detail. */
// biome-ignore lint/suspicious/noExplicitAny: what the page kept.
export async function detailOf(page: Page, type: string): Promise<any> {
  await expect.poll(async () => (await seen(page)).map((one) => one.type), polling).toContain(type)
  return (await seen(page)).find((one) => one.type === type).detail
}

export async function answer(phone: CountersignClient, claimUrl: string, yes: boolean): Promise<void> {
  const claim = await phone.claimOrder(claimUrl)
  const challenge = await phone.getOrderChallenge(claim)
  if (yes) await phone.approveOrder(claim, { challenge })
  else await phone.rejectOrder(claim)
}
