import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, describe, test } from 'vitest'
import type { FlatOptions } from '../../src/service/config.ts'
import { startService } from '../support/service.ts'
import { approvalStates, phone, type StateParts } from './approval-states.ts'
import { expectAccessible, expectNoSidewaysScroll, expectNothingCutOff, hasBrowser, useBrowser } from './support.ts'

/**
 * Every state of the approval page as it is seen on screens of all kinds: part of the nightly run. By itself only where least fits; with
 * SHEET set, as for the nightly run, everywhere, and the pictures come into one sheet: screenshots/approval.html.
 */
const isSheet = process.env.SHEET !== undefined

interface Screen {
  readonly name: string
  readonly locale: string
  readonly size: { readonly width: number; readonly height: number }
  readonly media?: { readonly colorScheme?: 'dark'; readonly forcedColors?: 'active' }
  /** Whether it is looked at in the usual run, too. */
  readonly isUsual?: boolean
}

const screens: readonly Screen[] = [
  { name: 'computer', locale: 'en-GB', size: { width: 1280, height: 800 } },
  { name: 'phone', locale: 'en-GB', size: { width: 390, height: 844 } },
  { name: 'dark', locale: 'en-GB', size: { width: 390, height: 844 }, media: { colorScheme: 'dark' } },
  { name: 'small', locale: 'en-GB', size: { width: 320, height: 640 } },
  { name: 'German', locale: 'de-DE', size: { width: 390, height: 844 } },
  { name: 'German at 200 %', locale: 'de-DE', size: { width: 195, height: 422 }, isUsual: true },
  {
    name: 'forced colours',
    locale: 'de-DE',
    size: { width: 320, height: 640 },
    media: { forcedColors: 'active' },
    isUsual: true,
  },
  { name: 'right to left', locale: 'ar-EG', size: { width: 390, height: 844 } },
]

const folder = new URL('../../screenshots/', import.meta.url)
const textsFile = new URL('./texts.json', import.meta.url).pathname
const pictures: { readonly state: string; readonly screen: string; readonly file: string }[] = []

describe.skipIf(!hasBrowser)('nothing is cut off, and all is accessible, in the state', { timeout: 90_000 }, () => {
  const browser = useBrowser()
  afterAll(() => isSheet && writeSheet())

  test.each(Object.entries(approvalStates))('%s', async (state, reach) => {
    const wanted = screens.filter(({ isUsual }) => isSheet || isUsual)
    for (const locale of new Set(wanted.map((screen) => screen.locale))) {
      const another: StateParts['another'] = async () => (await browser.open({ ...phone, locale })).page
      const open = async (settings?: FlatOptions) => ({
        url: (await startService({ appName: 'Green Bakery', textsFile, ...settings })).url,
        page: await another(),
      })
      const page = await reach({ open, another })
      for (const { name, size, media } of wanted.filter((screen) => screen.locale === locale)) {
        await page.setViewportSize(size)
        await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none', reducedMotion: 'reduce', ...media })
        const seen = `${state}, ${name}`
        await expectNoSidewaysScroll(page, seen)
        await expectNothingCutOff(page, seen)
        if (media?.forcedColors === undefined) await expectAccessible(page, seen)
        if (isSheet) pictures.push({ state, screen: name, file: await picture(page, seen) })
      }
      await page.context().setOffline(false)
    }
  })
})

async function picture(page: Awaited<ReturnType<StateParts['another']>>, seen: string): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const file = `approval-${seen.replace(/\W+/g, '-')}.png`
  await page.screenshot({ path: new URL(file, folder).pathname })
  return file
}

/** One page with all pictures: a row for each state. */
function writeSheet(): void {
  const rows = Object.keys(approvalStates).map((state) => {
    const cells = pictures
      .filter((one) => one.state === state)
      .map(({ screen, file }) => `<figure><img src="${file}" alt=""><figcaption>${screen}</figcaption></figure>`)
    return `<h2>${state}</h2><div>${cells.join('')}</div>`
  })
  const style =
    'body{font:14px sans-serif;background:#888}div{display:flex;gap:12px;align-items:start}img{height:420px}figure{margin:0}'
  const html = `<!doctype html><meta charset="utf-8"><title>The approval page</title><style>${style}</style>${rows.join('')}`
  writeFileSync(new URL('approval.html', folder), html)
}
