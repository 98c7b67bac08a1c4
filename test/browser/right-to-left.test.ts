import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import { Desktop } from './desktop.ts'
import { signIn } from './flows.ts'
import { hasBrowser, useBrowser } from './support.ts'

const textsFile = new URL('./states/texts.json', import.meta.url).pathname

/** Languages of the places with these texts. */
const languagesOf = (page: Page, ...texts: readonly string[]): Promise<(string | undefined)[]> =>
  Promise.all(
    texts.map((text) =>
      page
        .getByText(text, { exact: true })
        .first()
        .evaluate((place) => place.closest<HTMLElement>('[lang]')?.lang),
    ),
  )

describe.skipIf(!hasBrowser)('a page that is written from right to left', () => {
  const browser = useBrowser()

  test('shows codes from left to right, their groups apart', async () => {
    const { url } = await startService({ confirmationCode: 'return', pages: { textsFile } })
    const { page } = await browser.open({ locale: 'ar-EG', viewport: { width: 390, height: 844 } })
    await page.goto((await Desktop.start(url)).order.claimUrl)
    await page.getByRole('button', { name: 'متابعة' }).click()
    await page.getByRole('button', { name: 'موافقة' }).click()
    const groups = page.locator('#return-code > [aria-hidden] > span')
    await groups.nth(1).waitFor()
    const [first, second] = [(await groups.nth(0).boundingBox())!, (await groups.nth(1).boundingBox())!]
    expect(second.x - first.x - first.width).toBeGreaterThanOrEqual(0)
    const text = (index: number) =>
      groups.nth(index).evaluate((group) => {
        const range = document.createRange()
        range.selectNodeContents(group)
        return range.getBoundingClientRect()
      })
    expect((await text(1)).left - (await text(0)).right).toBeGreaterThan(5)
  })

  test('aligns all rows at its edge, and says which texts are English', async () => {
    const { url } = await startService({ pages: { textsFile, demoWallet: true } })
    const { page } = await browser.open({ locale: 'ar-EG', viewport: { width: 390, height: 844 } })
    await signIn(page, url)
    await page.goto(`${url}/api/auth/account`)
    await page.getByRole('button', { name: 'إضافة محفظة', exact: true }).click()
    await page.getByText('You can still use').waitFor()
    const texts = [
      'محافظك',
      'No wallet extension found. You can still use:',
      'Open this page in a browser with your other wallet.',
    ]
    const edges = texts.map((text) =>
      page.getByText(text, { exact: true }).evaluate((place) => {
        const range = document.createRange()
        range.selectNodeContents(place)
        return Math.round(range.getBoundingClientRect().right)
      }),
    )
    expect(new Set(await Promise.all(edges)).size).toBe(1)
    expect(await languagesOf(page, 'Add a wallet from another device', 'محافظك', ...texts.slice(1))).toEqual([
      'en',
      'ar-EG',
      'en',
      'en',
    ])
  })
})
