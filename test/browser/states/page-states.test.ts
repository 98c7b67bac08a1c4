import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page, ViewportSize } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import { startService } from '../../support/service.ts'
import {
  expectAccessible,
  expectNamedControls,
  expectNoBrokenWords,
  expectNoSidewaysScroll,
  expectNothingCutOff,
  hasBrowser,
  inFirefox,
  provokes,
  useBrowser,
} from '../support.ts'
import { accountStates } from './account.ts'
import { approvalStates } from './approval.ts'
import { demoStates } from './demo.ts'
import { elementStates } from './element.ts'
import { inboxStates } from './inbox.ts'
import { issuerStates } from './issuer.ts'
import { notFoundStates } from './not-found.ts'
import type { States } from './order-states.ts'
import { signInStates } from './sign-in.ts'

/**
 * Every state of every page on screens of all kinds: part of the nightly run. By itself only where least fits; with
 * SHEET set, as for the nightly run, everywhere, and the pictures come into one sheet: screenshots/states.html.
 */
const isSheet = process.env.SHEET !== undefined

const pages: Readonly<Record<string, States>> = {
  'approval page': approvalStates,
  'sign-in page': signInStates,
  demo: demoStates,
  'element in a plain page': elementStates,
  'account page': accountStates,
  inbox: inboxStates,
  'page of the issuer': issuerStates,
  'page of a refusal': notFoundStates,
}

interface Screen {
  readonly name: string
  readonly locale: string
  readonly size: { readonly width: number; readonly height: number }
  readonly media?: { readonly colorScheme?: 'dark'; readonly forcedColors?: 'active' }
  /** Whether it is looked at without SHEET, too. */
  readonly isUsual?: boolean
  /** Whether its picture is made in a window of its own height: a higher one would get other styles. */
  readonly isLow?: boolean
}

const screens: readonly Screen[] = [
  { name: 'computer', locale: 'en-GB', size: { width: 1280, height: 720 } },
  { name: 'phone', locale: 'en-GB', size: { width: 390, height: 844 } },
  { name: 'dark', locale: 'en-GB', size: { width: 390, height: 844 }, media: { colorScheme: 'dark' } },
  { name: 'landscape', locale: 'en-GB', size: { width: 844, height: 390 }, isLow: true },
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
  { name: 'Spanish', locale: 'es-MX', size: { width: 390, height: 844 } },
  { name: 'Spanish at 200 %', locale: 'es-MX', size: { width: 195, height: 422 } },
  { name: 'Japanese', locale: 'ja-JP', size: { width: 390, height: 844 } },
  { name: 'Japanese on a computer', locale: 'ja-JP', size: { width: 1280, height: 720 } },
  { name: 'right to left', locale: 'ar-EG', size: { width: 390, height: 844 } },
]
const wanted = screens.filter(({ isUsual }) => isSheet || isUsual)

const screenshots = new URL('../../../screenshots/', import.meta.url)
const textsFile = new URL('./texts.json', import.meta.url).pathname
/** What has been seen, and so has a picture. */
const seen = new Set<string>()
const nameOf = (...words: readonly string[]): string => words.join(' ').replace(/\W+/g, '-')

describe.skipIf(!hasBrowser || inFirefox)(
  'nothing is cut off or broken, and all is accessible,',
  { timeout: 180_000 },
  () => {
    const browser = useBrowser()
    afterAll(() => isSheet && writeSheet())

    describe.each(Object.entries(pages))('on the %s, in the state', (page, states) => {
      test.each(Object.entries(states))('%s', async (state, reach) => {
        // Failures are states, too.
        provokes(/./)
        const faults: object[] = []
        const lookIn = async (locale: string): Promise<void> => {
          const shown = await reach({
            locale,
            open: async (device) => (await browser.open({ ...device, locale })).page,
            serve: async ({ pages, ...settings } = {}) => {
              const withTexts = { textsFile, ...(typeof pages === 'object' && pages) }
              return (await startService({ appName: 'Green Bakery', pages: withTexts, ...settings })).url
            },
          })
          for (const screen of wanted.filter((one) => one.locale === locale)) {
            const name = nameOf(page, state, screen.name)
            await look(shown, screen, name).catch(({ actual, message }) =>
              faults.push({ name, found: actual ?? message }),
            )
          }
        }
        // A page for each language, at the same time.
        await Promise.all([...new Set(wanted.map(({ locale }) => locale))].map(lookIn))
        expect(faults).toEqual([])
      })
    })
  },
)

async function look(page: Page, { size, media, isLow = false }: Screen, name: string): Promise<void> {
  await page.setViewportSize(size)
  await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none', reducedMotion: 'reduce', ...media })
  if (isSheet) await screenshot(page, name, isLow)
  seen.add(name)
  await expectNoSidewaysScroll(page, name)
  await expectNothingCutOff(page, name)
  await expectNoBrokenWords(page, name)
  await expectNamedControls(page, name)
  // axe is a script itself.
  const runsScripts = !(await page.evaluate(() => matchMedia('(scripting: none)').matches))
  if (runsScripts) await expectAccessible(page, name)
}

/**
 * Keeps a picture of all of a page for people to look at. What sticks to the bottom of the window is at the bottom of
 * the picture, whose window is as high as the page; not with `keepsWindow`.
 */
async function screenshot(page: Page, name: string, keepsWindow = false): Promise<void> {
  const path = fileURLToPath(new URL(`states/${name}.png`, screenshots))
  const size = page.viewportSize() as ViewportSize
  const whole = await page.evaluate(() => document.documentElement.scrollHeight)
  if (!keepsWindow) await page.setViewportSize({ width: size.width, height: Math.max(size.height, whole) })
  await page.screenshot({ path, fullPage: keepsWindow })
  if (!keepsWindow) await page.setViewportSize(size)
}

/** One page with all pictures, at half their size: a row for each state, and a line where the screen ends. */
function writeSheet(): void {
  const rows = Object.entries(pages).flatMap(([page, states]) => [
    `<h1>${page}</h1>`,
    ...Object.keys(states).map((state) => {
      const cells = screens
        .filter(({ name }) => seen.has(nameOf(page, state, name)))
        .map(({ name, size }) => {
          const picture = `<img src="states/${nameOf(page, state, name)}.png" width="${size.width / 2}" alt="">`
          return `<figure>${picture}<hr style="top:${size.height / 2}px"><figcaption>${name}</figcaption></figure>`
        })
      return `<h2>${state}</h2><div>${cells.join('')}</div>`
    }),
  ])
  const style =
    'body{font:14px sans-serif;background:#888}div{display:flex;gap:12px;align-items:start}figure{margin:0;position:relative}hr{position:absolute;width:100%;margin:0;border:0;border-top:1px dashed #f0f}'
  const html = `<!doctype html><meta charset="utf-8"><title>States of the pages</title><style>${style}</style>${rows.join('')}`
  writeFileSync(new URL('states.html', screenshots), html)
}
