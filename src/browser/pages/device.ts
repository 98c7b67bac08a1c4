import type { Words } from './words.ts'

/** Patterns that identify browsers. Their order matters, because most browsers also claim to be Chrome or Safari. */
const browsers: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(A|iOS)?\//, 'Edge'],
  [/\b(OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(HeadlessChrome|Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bVersion\/[\d.]+.*\bSafari\//, 'Safari'],
]

const systems: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bMac OS X\b|\bMacintosh\b/, 'Mac'],
  [/\bLinux\b|\bX11\b/, 'Linux'],
]

/** A user agent in words, such as "Firefox on Windows". It is only the client's own claim. */
export function describeDevice(userAgent: string, words: Words): string {
  const browser = browsers.find(([pattern]) => pattern.test(userAgent))?.[1]
  const system = systems.find(([pattern]) => pattern.test(userAgent))?.[1]
  if (browser !== undefined && system !== undefined) return words.say('device.browser-and-system', { browser, system })
  if (browser !== undefined) return browser
  if (system !== undefined) return words.say('device.system', { system })
  // A program. Its name comes first, by convention.
  const name = /^[\w.-]{1,40}/.exec(userAgent)?.[0]
  return name === undefined ? words.say('device.unknown') : words.say('device.program', { name })
}

/** The kind of a device, as far as its user agent says it: a program is used in a terminal. */
export function kindOfDevice(userAgent: string): 'phone' | 'terminal' | 'computer' {
  if (isProgram(userAgent)) return 'terminal'
  return /\b(iPhone|iPad|Android)\b/.test(userAgent) ? 'phone' : 'computer'
}

/** Whether a user agent names a program that is no browser. */
export function isProgram(userAgent: string): boolean {
  return userAgent !== '' && ![...browsers, ...systems].some(([pattern]) => pattern.test(userAgent))
}

/** Whether the page is on a phone's small touch screen. Tablets do not count: their screen can be scanned. */
export function isSmallTouchScreen(): boolean {
  return matchMedia('(pointer: coarse)').matches && Math.min(screen.width, screen.height) < 600
}
