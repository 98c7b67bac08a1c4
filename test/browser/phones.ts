import type { BrowserContextOptions } from 'playwright-core'

/** What a browser is opened with that is to be taken for a phone's. */

export const android = {
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
  userAgent:
    'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36',
} satisfies BrowserContextOptions

export const iPhone = {
  ...android,
  userAgent:
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
} satisfies BrowserContextOptions

/** The part of a phone's screen that is left to a page while the browser's own bars are there. */
export const belowBars = { viewport: { width: 390, height: 664 } } satisfies BrowserContextOptions
