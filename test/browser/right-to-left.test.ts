import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { fileWith } from '../oidc/support.ts'
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
    const texts = JSON.parse(readFileSync(textsFile, 'utf8'))
    delete texts.ar['account.second']
    const { url } = await startService({ pages: { textsFile: fileWith(texts), demoWallet: true } })
    const { page } = await browser.open({ locale: 'ar-EG', viewport: { width: 390, height: 844 } })
    await signIn(page, url)
    await page.goto(`${url}/api/auth/account`)
    await page.getByRole('button', { name: 'إضافة محفظة', exact: true }).click()
    await page.getByText('You can still use').waitFor()
    const advice = 'Add a second wallet. If you lose your only one, you can’t sign in anymore.'
    const shown = [
      'محافظك',
      advice,
      'No wallet extension found. You can still use:',
      'Open this page in a browser with your other wallet.',
    ]
    // From the end of the last line to the edge of what it is in.
    const distances = shown.map((text) =>
      page.getByText(text, { exact: true }).evaluate((place) => {
        const range = document.createRange()
        range.selectNodeContents(place)
        const edge = place.getBoundingClientRect().right - Number.parseFloat(getComputedStyle(place).paddingRight)
        return Math.abs(Math.round(edge - ([...range.getClientRects()].at(-1)?.right ?? 0)))
      }),
    )
    expect(await Promise.all(distances)).toEqual([0, 0, 0, 0])
    expect(await languagesOf(page, ...shown)).toEqual(['ar-EG', 'en', 'en', 'en'])
    expect(await languagesOf(page, 'Add a wallet from another device')).toEqual(['en'])
  })
})
