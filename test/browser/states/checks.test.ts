import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { expectNoBrokenWords, expectNothingCutOff, hasBrowser, useBrowser } from '../support.ts'

/** The checks of page-states.test.ts, on pages that have the faults. */
describe.skipIf(!hasBrowser)('the checks of states', () => {
  const browser = useBrowser()

  async function shown(body: string, direction = 'ltr'): Promise<Page> {
    const { page } = await browser.open({ viewport: { width: 320, height: 640 } })
    await page.setContent(`<!doctype html><html dir="${direction}"><style>
      body { margin: 0; font: 20px monospace } .card { padding: 10px; overflow-wrap: anywhere }
      .clip { overflow: clip } input { font: inherit; letter-spacing: 10px }
    </style><body><section class="card">${body}</section>`)
    return page
  }

  const field = (style: string) => `<input value="ABC-DEF" style="${style}">`

  test.each([
    ['wider than its field', field('width: 90px'), 'ltr'],
    ['wider than its field, from right to left', field('width: 90px'), 'rtl'],
    [
      'that what is around its field clips at the end',
      `<div class="clip" style="width: 100px">${field('width: 200px')}</div>`,
      'ltr',
    ],
    [
      'that what is around its field clips at the beginning',
      `<div class="clip" style="width: 150px; direction: ltr; display: flex; justify-content: end">${field('width: 200px; flex: none; direction: ltr')}</div>`,
      'rtl',
    ],
  ])('see a code %s', async (_, body, direction) => {
    const page = await shown(body, direction)
    await expect(expectNothingCutOff(page, 'a state')).rejects.toThrow('ABC-DEF in a field')
  })

  test.each(['ltr', 'rtl'])('see nothing wrong with a code that fits, %s', async (direction) => {
    await expectNothingCutOff(await shown(field('width: 200px'), direction), 'a state')
    await expectNothingCutOff(await shown(field('width: 200px; text-align: center'), direction), 'a state')
  })

  test('see a word that is broken inside, in a shadow tree, too', async () => {
    const page = await shown('<p style="width: 30px">Demo Wallet</p><div id="host"></div>')
    await expect(expectNoBrokenWords(page, 'a state')).rejects.toThrow(/Demo.*Wallet/s)
    await page.locator('p').evaluate((paragraph) => paragraph.remove())
    await expectNoBrokenWords(page, 'a state')
    await page.locator('#host').evaluate((host) => {
      host.attachShadow({ mode: 'open' }).innerHTML = '<p style="width: 40px">Hidden</p>'
    })
    await expect(expectNoBrokenWords(page, 'a state')).rejects.toThrow('Hidden')
  })

  test('see nothing wrong with words that have a line each, are too long for the card, or are addresses', async () => {
    const long = 'Donaudampfschifffahrtsgesellschaftskapitänsmütze'
    const page = await shown(`<p style="width: 80px">Demo Wallet, on-chain</p><p>${long}</p>
      <p class="mono" style="width: 60px">NQ07000000000000</p>`)
    await expectNoBrokenWords(page, 'a state')
  })
})
