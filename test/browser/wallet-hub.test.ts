import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectNoFaults, hasBrowser, useBrowser } from './support.ts'
import { type ChooserPage, hubOrigin, serveChooser, serveHub } from './wallet-chooser-page.ts'

// biome-ignore lint/suspicious/noExplicitAny: what the page kept.
type Kept = any

const text = 'Text zum Unterschreiben'
const signed = { key: Array(32).fill(1), signature: Array(64).fill(2) }
const options = (redirect: boolean): string =>
  `{ finder: { adapterIds: ['nimiq'], hub: { load: loadHub, appName: 'Tally', url: hubUrl, redirect: ${redirect} } } }`

/** Waits for what the page keeps under a name. */
async function kept(page: Page, name: string): Promise<Kept> {
  await expect
    .poll(() => page.evaluate(`globalThis.seen?.some((entry) => '${name}' in entry)`).catch(() => false))
    .toBe(true)
  return page.evaluate(`seen.find((entry) => '${name}' in entry)`)
}

describe.runIf(hasBrowser)('the Nimiq Hub, at another origin', () => {
  const browser = useBrowser()
  let site: ChooserPage & { close(): void }
  beforeAll(async () => {
    site = await serveChooser()
  })
  afterAll(() => site?.close())

  async function open(redirect: boolean) {
    const { page, trail } = await browser.open()
    const asked = await serveHub(page.context())
    await site.open(page, options(redirect))
    return { page, trail, asked }
  }

  /** The Hub's page, once it has been asked. */
  async function hubOf(context: BrowserContext, click: Promise<void>): Promise<Page> {
    const opened = context.waitForEvent('page')
    await click
    const hub = await opened
    await hub.getByText(text).waitFor()
    return hub
  }

  const choose = (page: Page): Promise<void> =>
    page.getByRole('button', { name: 'Nimiq Hub Nimiq · opens its own site' }).click()

  test('signs in a window of its own', async () => {
    const { page, trail, asked } = await open(false)
    const hub = await hubOf(page.context(), choose(page))
    await hub.getByRole('button', { name: 'Sign' }).click()
    expect(await kept(page, 'signature')).toMatchObject(signed)
    expect(asked).toEqual([{ origin: site.origin, appName: 'Tally', message: text }])
    expectNoFaults(trail)
  })

  test('cancelled or closed in its window has signed nothing', async () => {
    const { page } = await open(false)
    const hub = await hubOf(page.context(), choose(page))
    // The click closes the window, for which the driver of Firefox can still wait.
    await hub
      .getByRole('button', { name: 'Cancel' })
      .click()
      .catch((error) => expect(error.message).toMatch(/closed/))
    expect(await kept(page, 'code')).toEqual({ code: 'WALLET_DECLINED' })
    await page.evaluate('seen.length = 0')
    const closed = await hubOf(page.context(), choose(page))
    await closed.close()
    expect(await kept(page, 'code')).toEqual({ code: 'WALLET_CLOSED' })
  })

  /** Goes to the Hub and comes back, with what the page then takes. */
  async function round(leave: (page: Page) => Promise<unknown>) {
    const { page, trail, asked } = await open(true)
    await choose(page)
    await page.waitForURL(`${hubOrigin}/**`)
    await page.getByText(text).waitFor()
    await leave(page)
    await page.waitForURL(`${site.origin}/**`)
    await page.waitForFunction('globalThis.takeAnswer !== undefined')
    return { page, trail, asked, answer: (await page.evaluate('takeAnswer()')) as Kept }
  }

  test('takes the place of the page and leads back to it, with the signature', async () => {
    const { page, trail, asked, answer } = await round((hub) => hub.getByRole('button', { name: 'Sign' }).click())
    expect(answer).toEqual({
      message: text,
      signature: { publicKeyHex: '01'.repeat(32), signatureHex: '02'.repeat(64), address: 'NQ07' },
    })
    expect(asked).toEqual([{ origin: site.origin, appName: 'Tally', message: text }])
    const { pathname, search, hash } = new URL(page.url())
    // The query that the page had is still there, and nothing of the answer.
    expect([pathname, hash]).toEqual(['/sign-in', ''])
    expect(search).toMatch(/^\?of=test&rpcId=\d+$/)
    expectNoFaults(trail)
    // As if the page is loaded again before it has used the answer.
    await page.reload()
    await page.waitForFunction('globalThis.takeAnswer !== undefined')
    expect(await page.evaluate('takeAnswer()')).toEqual(answer)
  })

  test('cancelled, leads back with the reason', async () => {
    const { answer } = await round((hub) => hub.getByRole('button', { name: 'Cancel' }).click())
    expect(answer).toEqual({ message: text, code: 'WALLET_DECLINED' })
  })

  test('left by the back button has signed nothing', async () => {
    const { answer } = await round((hub) => hub.goBack())
    expect(answer).toEqual({ message: text, code: 'WALLET_CLOSED' })
  })

  test('is not loaded by a page that does not come back from it', async () => {
    const { page } = await open(true)
    expect(await page.evaluate('takeAnswer()')).toBeUndefined()
    expect(await page.evaluate('loads')).toBe(1)
  })
})
