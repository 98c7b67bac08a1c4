import type { BrowserContextOptions, Page } from 'playwright-core'
import { startService } from '../support/service.ts'
import { Desktop, type DesktopOptions } from './desktop.ts'
import type { Trail, useBrowser } from './support.ts'

/** Steps of the tests of the approval page. */

/** What a phone of 390×844 shows of a page between the bars of its browser. */
export const phoneSize = { width: 390, height: 664 }

export const windows =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'

export const usual = {
  kind: 'login',
  displayTitle: 'Sign in to Green Bakery',
  displaySummary: 'You asked to continue your order of twelve loaves on the big screen.',
}

/** Opens a claim URL and reviews the request. */
export async function review(page: Page, desktop: Desktop): Promise<void> {
  await page.goto(desktop.order.claimUrl)
  await page.getByRole('button', { name: 'Continue', exact: true }).click()
  await page.getByRole('button', { name: 'Decline' }).waitFor()
}

/** What the user reads on the review screen, in one line. */
export async function seen(page: Page): Promise<string> {
  // biome-ignore lint/performance/useDomNodeTextContent: it must not contain what is hidden.
  return (await page.locator('#request').innerText()).replace(/\s+/g, ' ').trim()
}

export async function approve(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Approve' }).click()
}

/** The six digits on the phone's screen. */
export async function returnCode(page: Page): Promise<string> {
  await page.getByRole('heading', { name: /^Enter this code only at/ }).waitFor()
  return (await page.locator('#return-code > [aria-hidden]').textContent()) ?? ''
}

export function wrongOf(code: string): string {
  return code === '000000' ? '000001' : '000000'
}

export const signedIn = 'Your computer is signed in'

/** A phone that reviews an order, and the desktop that started it. */
export interface Reviewing {
  readonly url: string
  readonly desktop: Desktop
  readonly page: Page
  readonly trail: Trail
}

/** Makes, in a browser, a service, an order that a desktop started there, and a phone that reviews it. */
export function reviewingIn(browser: ReturnType<typeof useBrowser>) {
  return async (
    settings: Parameters<typeof startService>[0],
    order: object = usual,
    options: DesktopOptions & { readonly phone?: BrowserContextOptions } = {},
  ): Promise<Reviewing> => {
    const { url } = await startService(settings)
    const desktop = await Desktop.start(url, order, options)
    const { page, trail } = await browser.open({ viewport: phoneSize, ...options.phone })
    await review(page, desktop)
    return { url, desktop, page, trail }
  }
}
