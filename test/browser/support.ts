import { createHash } from 'node:crypto'
import axe from 'axe-core'
import jsQR from 'jsqr'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { PNG } from 'pngjs'
import { afterAll, beforeAll, beforeEach, expect, inject, onTestFinished } from 'vitest'
import { isBrowserInstalled, openBrowser } from '../support/browser.ts'

/** Whether there is a browser to test with. */
export const hasBrowser: boolean = isBrowserInstalled()

/** Whether that is Firefox, whose run leaves out what is Chromium's own. */
export const inFirefox: boolean = process.env.TEST_BROWSER === 'firefox'

// Its types are those of an ES module, which it is not.
const decodeQr = jsQR as unknown as typeof jsQR.default
/**
 * What browsers say of two things that are not the page's: a style that playwright adds for screenshots, and the icon,
 * which Chromium asks for where it is whole.
 */
const notThePages = [createHash('sha256').update('body {}').digest('base64'), '/favicon.ico']

/** What a test saw a context's pages do. */
export interface Trail {
  /** URL, method and Referer of each request. */
  readonly requests: { readonly url: string; readonly method: string; readonly referer: string | undefined }[]
  /** Violations of a page's Content-Security-Policy, and scripts that threw. */
  readonly faults: string[]
}

/** The answer that ends a page's polling of its order: it is over, forgotten, or continued in another browser. */
const orderEnded = /(401|404|409|410) .*\/cross-device\/(preview|challenge)\?/
/** Errors that the test provokes. */
const provoked: RegExp[] = []

/**
 * Names errors that the test provokes on purpose. Any other in the console of a page fails it: nothing is red after a
 * visit, an approval or a sign-out, except {@link orderEnded}.
 */
export function provokes(...errors: readonly RegExp[]): void {
  provoked.push(...errors)
}

/** A browser for this file's tests, that of the run if it has one; each of them makes contexts of its own. */
export function useBrowser(): { open(options?: BrowserContextOptions): Promise<{ page: Page; trail: Trail }> } {
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await openBrowser(inject('browser'))
  })
  afterAll(async () => await browser?.close())
  beforeEach(() => void provoked.splice(0, Infinity, orderEnded))
  return {
    async open(options = {}) {
      const context = await (browser as Browser).newContext({ reducedMotion: 'reduce', locale: 'en-GB', ...options })
      context.setDefaultTimeout(15_000)
      await context.addInitScript(watchFocus)
      await context.addInitScript(watchCopies)
      const red: string[] = []
      const trail: Trail = { requests: [], faults: [] }
      onTestFinished(async () => {
        await context.close()
        // Firefox has other words for the same.
        const unexpected = inFirefox ? [] : red.filter((line) => !notThePages.some((text) => line.includes(text)))
        expect(unexpected.filter((line) => !provoked.some((each) => each.test(line)))).toEqual([])
      })
      context.on('request', async (request) => {
        const entry = { url: request.url(), method: request.method(), referer: undefined as string | undefined }
        trail.requests.push(entry)
        entry.referer = await request.headerValue('referer').then(
          (value) => value || undefined,
          () => undefined,
        )
      })
      const note = (fault: string): void => {
        if (!notThePages.some((text) => fault.includes(text))) trail.faults.push(fault)
      }
      context.on('weberror', (error) => note(String(error.error())))
      context.on('console', (message) => {
        if (message.type() === 'error') red.push(`${message.text()} ${message.location().url}`)
        if (/Content.Security.Policy|Trusted/i.test(message.text())) note(message.text())
      })
      return { page: await context.newPage(), trail }
    },
  }
}

/**
 * Has a page write an error to its console, which fails the test, if a step shows a heading and leaves the focus on what
 * it hid: a screen reader then says nothing of the new screen.
 */
function watchFocus(): void {
  const observer = new MutationObserver((changes) => {
    const isShown = changes.some(
      ({ target }) =>
        target instanceof HTMLElement && !target.hidden && target.querySelector('[tabindex="-1"]:is(h1, h2)') !== null,
    )
    const focused = document.activeElement
    if (isShown && focused?.checkVisibility() === false) console.error(`hidden, with the focus: ${focused.outerHTML}`)
  })
  observer.observe(document, { subtree: true, attributeFilter: ['hidden'] })
}

/** Keeps what the page has copied. The clipboard itself is shared with the tests of other files in the same browser. */
function watchCopies(): void {
  const { clipboard } = navigator
  if (clipboard === undefined) return
  const write = clipboard.writeText.bind(clipboard)
  clipboard.writeText = async (text) => {
    await write(text)
    Object.assign(globalThis, { copiedText: text })
  }
}

/** What a page has copied last. */
export function copiedOn(page: Page): Promise<unknown> {
  return page.evaluate(() => Reflect.get(globalThis, 'copiedText'))
}

/** Expects the pages of a context to have broken none of their own rules. */
export function expectNoFaults(...trails: readonly Trail[]): void {
  expect(trails.flatMap(({ faults }) => faults)).toEqual([])
}

/** Reads a QR code off the screen, as a phone's camera does. */
export async function scan(code: Locator): Promise<string> {
  const found = readQr(await code.screenshot({ scale: 'css' }))
  if (found === undefined) throw new Error('there is no QR code to be read')
  return found
}

/** Reads the QR code in a picture, if there is one. */
export function readQr(picture: Buffer): string | undefined {
  const { width, height, data } = PNG.sync.read(picture)
  return decodeQr(new Uint8ClampedArray(data), width, height)?.data
}

/** Expects axe-core to find no serious fault in what a page shows now. */
export async function expectAccessible(page: Page, state: string): Promise<void> {
  await page.evaluate(axe.source)
  const found = await page.evaluate(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: axe puts itself into the window, untyped.
    const { violations } = await (globalThis as any).axe.run(document)
    return violations.map(({ id, impact, nodes }: { id: string; impact: string; nodes: { html: string }[] }) => {
      return { id, impact, nodes: nodes.map(({ html }) => html) }
    })
  })
  const serious = found.filter(({ impact }: { impact: string }) => /serious|critical/.test(impact))
  expect(serious, state).toEqual([])
}

/** Expects a page not to scroll sideways, and nothing in it to stand out of its card. */
export async function expectNoSidewaysScroll(page: Page, state: string): Promise<void> {
  const outside = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement
    const visible = [...document.querySelectorAll('.card *')].filter((element) => element.checkVisibility())
    const stickingOut = visible.filter((element) => {
      const card = element.closest('.card') as Element
      const inside = card.getBoundingClientRect().right - Number.parseFloat(getComputedStyle(card).paddingRight)
      const parent = element.parentElement as Element
      // What its parent clips is not seen there.
      const seen = getComputedStyle(parent).overflowX === 'clip' ? parent : element
      return seen.getBoundingClientRect().right > inside
    })
    return [...(scrollWidth > clientWidth ? ['the page'] : []), ...stickingOut.map((element) => element.outerHTML)]
  })
  expect(outside, state).toEqual([])
}

/**
 * Expects every text that a page shows now to be seen whole: inside the window, its button, its field, and all that
 * clips it. Long texts that a button unfolds are left out, and those for screen readers, in a field that is only read,
 * or in one for more than 60 characters, which scrolls.
 */
export async function expectNothingCutOff(page: Page, state: string): Promise<void> {
  const cutOff = await page.evaluate(() => {
    type Box = Pick<DOMRect, 'left' | 'right' | 'top' | 'bottom'>
    const found: string[] = []
    const isOutside = (text: Box, box: Box): boolean =>
      text.left < box.left - 1 || text.right > box.right + 1 || text.top < box.top - 1 || text.bottom > box.bottom + 1
    const clips = (element: Element): boolean =>
      element.matches('button, a') || !/visible/.test(getComputedStyle(element).overflow)
    const isCutOff = (text: Box, parent: Element | null): boolean => {
      const boxes: Box[] = [
        { left: 0, right: innerWidth, top: Number.NEGATIVE_INFINITY, bottom: Number.POSITIVE_INFINITY },
      ]
      for (let up = parent; up !== null && up !== document.body; up = up.parentElement) {
        if (clips(up)) boxes.push(up.getBoundingClientRect())
      }
      return boxes.some((box) => isOutside(text, box))
    }
    const isShort = ({ type, readOnly, maxLength }: HTMLInputElement): boolean =>
      /^(text|search|tel|url|email|number|password)$/.test(type) && !readOnly && maxLength <= 60
    /** The place of a field's text, which no range can be around: measured beside it, and put where the field has it. */
    const textOf = (field: HTMLInputElement): Box => {
      const style = getComputedStyle(field)
      const copy = document.createElement('span')
      copy.textContent = field.value || field.placeholder
      Object.assign(copy.style, {
        position: 'absolute',
        visibility: 'hidden',
        whiteSpace: 'pre',
        font: style.font,
        letterSpacing: style.letterSpacing,
      })
      field.after(copy)
      // The space after the last character is not seen.
      const width = copy.getBoundingClientRect().width - (Number.parseFloat(style.letterSpacing) || 0)
      copy.remove()
      const { left, right, top, bottom } = field.getBoundingClientRect()
      const inner = {
        left: left + Number.parseFloat(style.borderLeftWidth) + Number.parseFloat(style.paddingLeft),
        right: right - Number.parseFloat(style.borderRightWidth) - Number.parseFloat(style.paddingRight),
      }
      const isRight = style.textAlign === (style.direction === 'rtl' ? 'start' : 'end') || style.textAlign === 'right'
      const free = inner.right - inner.left - width
      const start = inner.left + (style.textAlign === 'center' ? free / 2 : isRight ? free : 0)
      return { left: start, right: start + width, top, bottom }
    }
    const look = (root: Node): void => {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT)
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        if (node instanceof Element && node.shadowRoot !== null) look(node.shadowRoot)
        if (node instanceof HTMLInputElement && node.checkVisibility({ visibilityProperty: true }) && isShort(node)) {
          const text = textOf(node)
          if (isCutOff(text, node.parentElement) || isOutside(text, node.getBoundingClientRect())) {
            found.push(`${node.value || node.placeholder} in a field`)
          }
        }
        const parent = node.parentElement
        if (!(node instanceof Text) || node.data.trim() === '' || parent === null) continue
        if (
          !parent.checkVisibility({ visibilityProperty: true }) ||
          parent.closest('.folding, .spoken, style, textarea')
        )
          continue
        const range = document.createRange()
        range.selectNodeContents(node)
        if (isCutOff(range.getBoundingClientRect(), parent)) found.push(node.data.trim())
      }
    }
    look(document.body)
    return found
  })
  expect(cutOff, state).toEqual([])
}

/** Expects each control that a hint of a page names, in quotes, to be there for the user. */
export async function expectNamedControls(page: Page, state: string): Promise<void> {
  const { named, controls } = await page.evaluate(() => {
    const [named, controls]: [string[], string[]] = [[], []]
    const look = (root: Node): void => {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT)
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        if (!(node instanceof HTMLElement) || !node.checkVisibility({ visibilityProperty: true })) continue
        if (node.shadowRoot !== null) look(node.shadowRoot)
        const text = node.textContent ?? ''
        if (node.matches('button, a, summary, label')) controls.push(text.trim())
        // Not in what a requester wrote.
        else if (node.matches('p:not([dir=auto])')) {
          named.push(...[...text.matchAll(/[“„](.+?)[”“]/g)].map((found) => found[1] as string))
        }
      }
    }
    look(document.body)
    return { named, controls }
  })
  expect(
    named.filter((name) => !controls.includes(name.replace(/[\u2068\u2069]/g, ''))),
    state,
  ).toEqual([])
}

/** Taps with a finger; with the mouse in Firefox, whose driver ignores fingers. */
export async function tap(target: Locator): Promise<void> {
  if (inFirefox) await target.click()
  else await target.tap()
}

/** Expects a page to have these texts, and to keep each place of them out of a translation by the browser. */
export async function expectUntranslated(page: Page, ...exact: readonly string[]): Promise<void> {
  const places = await page.evaluate((texts) => {
    const found: { text: string; place: string; translate: boolean }[] = []
    const look = (root: Node): void => {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT)
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        if (node instanceof Element && node.shadowRoot !== null) look(node.shadowRoot)
        const parent = node.parentElement
        if (!(node instanceof Text) || parent === null || parent.closest('script, style') !== null) continue
        // A code stands alone; its digits may occur in sentences by chance.
        for (const text of texts)
          if (/^\d+$/.test(text) ? node.data.trim() === text : node.data.includes(text))
            found.push({ text, place: node.data, translate: parent.translate })
      }
    }
    look(document.body)
    return found
  }, exact)
  expect(places.filter(({ translate }) => translate)).toEqual([])
  expect(exact.filter((text) => !places.some((place) => place.text === text))).toEqual([])
}

/**
 * Expects no word that a page shows now to be broken inside if it would fit into a line of its card. Addresses of all
 * kinds, hashes and texts to sign are broken anywhere.
 */
export async function expectNoBrokenWords(page: Page, state: string): Promise<void> {
  const broken = await page.evaluate(() => {
    const found: string[] = []
    // Whole words, but for the parts of addresses.
    const words = /(?<![.:/@\p{L}\p{M}\p{N}’])[\p{L}\p{M}\p{N}’]+(?![\p{L}\p{M}\p{N}’]|[.:/@]\S)/gu
    // Japanese has no spaces: the browser knows its words.
    const japanese = new Intl.Segmenter('ja', { granularity: 'word' })
    const wordsIn = (text: string) =>
      [...text.matchAll(words)].flatMap(({ 0: run, index }) => {
        if (!/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(run)) return { word: run, index }
        return [...japanese.segment(run)].map(({ segment, index: at }) => ({ word: segment, index: index + at }))
      })
    const widthIn = (element: Element): number => {
      const { paddingLeft, paddingRight } = getComputedStyle(element)
      return element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight)
    }
    const look = (root: Node, around: Element): void => {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT)
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        if (node instanceof Element && node.shadowRoot !== null) look(node.shadowRoot, node.closest('.card') ?? around)
        const parent = node.parentElement
        if (!(node instanceof Text) || parent === null || !parent.checkVisibility({ visibilityProperty: true }))
          continue
        if (parent.closest('.mono, .folding, .spoken, pre, code, style, textarea')) continue
        for (const { word, index } of wordsIn(node.data)) {
          const range = document.createRange()
          range.setStart(node, index)
          range.setEnd(node, index + word.length)
          const parts = [...range.getClientRects()].filter(({ width }) => width > 0)
          const lines = new Set(parts.map(({ top }) => Math.round(top)))
          const width = parts.reduce((sum, part) => sum + part.width, 0)
          if (lines.size > 1 && width <= widthIn(parent.closest('.card') ?? around)) found.push(word)
        }
      }
    }
    look(document.body, document.body)
    return found
  })
  expect(broken, `${state}: words broken inside`).toEqual([])
}

/** Has a page count what moves in it without the user having done anything. Call it before the page is opened. */
export async function watchShifts(page: Page): Promise<() => Promise<unknown[]>> {
  await page.addInitScript(() => {
    const shifts: unknown[] = []
    // biome-ignore lint/suspicious/noExplicitAny: TypeScript has no type for this entry, nor for the page's own property.
    const scope = globalThis as any
    scope.shifts = shifts
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    const keep = ({ value, hadRecentInput, sources }: any): void => {
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      if (!hadRecentInput) shifts.push({ value, moved: sources.map(({ node }: any) => node?.outerHTML?.slice(0, 80)) })
    }
    new PerformanceObserver((list) => list.getEntries().forEach(keep)).observe({ type: 'layout-shift', buffered: true })
  })
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  return () => page.evaluate(() => (globalThis as any).shifts)
}

/** Looks at what a page shows now: in both colour schemes, and as narrow as screens get. */
export async function look(page: Page, state: string): Promise<void> {
  const size = page.viewportSize()!
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    // The page hears of it before the next frame, and then chooses the operator's colour for it.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
    await expectAccessible(page, `${state}, ${colorScheme}`)
  }
  await page.setViewportSize({ width: 320, height: 640 })
  await expectNoSidewaysScroll(page, state)
  await page.setViewportSize(size)
}
