import type { CommonValues } from '../../shared/page-values.ts'

/** Shows the operator's logo and accent colour, if the service names them. */
export function showBrand({ logoUrl, accentColor = '' }: Pick<CommonValues, 'logoUrl' | 'accentColor'>): void {
  if (logoUrl !== undefined) showLogo(logoUrl)
  const colour = readColour(accentColor)
  if (colour === undefined) return
  applyAccent(colour)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => applyAccent(colour))
}

function showLogo(address: string): void {
  const logo = document.createElement('img')
  logo.className = 'logo'
  // The name of the application is next to it.
  logo.alt = ''
  logo.addEventListener('load', () => document.querySelector('.mark')?.replaceWith(logo))
  // The name is seen then, also if it is in the logo.
  logo.addEventListener('error', () => document.documentElement.toggleAttribute('data-no-logo', true))
  logo.src = address
}

function applyAccent(colour: Colour): void {
  const { style } = document.documentElement
  const accent = accentOn(surfaces(), colour)
  style.setProperty('--accent', cssColour(accent.area))
  style.setProperty('--accent-strong', cssColour(accent.areaHover))
  style.setProperty('--on-accent', cssColour(accent.onArea))
  style.setProperty('--accent-ink', cssColour(accent.ink))
  document.documentElement.toggleAttribute('data-own-accent', true)
}

/** What the colour is seen on in the present colour scheme. */
function surfaces(): Colour[] {
  const style = getComputedStyle(document.documentElement)
  return ['--card', '--paper']
    .map((name) => readColour(style.getPropertyValue(name)))
    .filter((surface) => surface !== undefined)
}

/**
 * Colours made of the operator's accent colour, so that what is written in it and on it can be read. Each channel is 0
 * to 1.
 */
export type Colour = readonly [red: number, green: number, blue: number]

/** The accent colour in one colour scheme. */
export interface Accent {
  /** For areas such as buttons. */
  readonly area: Colour
  /** For an area that the pointer is over. */
  readonly areaHover: Colour
  /** For text on an area: black or white. */
  readonly onArea: Colour
  /** For text on the page's own surfaces. */
  readonly ink: Colour
}

/**
 * Smallest contrast ratios to the page's surfaces. Text has that of WCAG 2.2, 1.4.3, with something to spare. An area
 * only has to be seen, because what is written on it has its own contrast to it.
 */
const contrasts = { area: 1.5, text: 5 } as const

const black: Colour = [0, 0, 0]
const white: Colour = [1, 1, 1]

/** Reads `#rgb` or `#rrggbb`; `undefined` for anything else. */
export function readColour(text: string): Colour | undefined {
  const [, digits] = /^#((?:[0-9a-f]{3}){1,2})$/i.exec(text.trim()) ?? []
  const channels = digits?.match(digits.length === 3 ? /./g : /../g)
  return channels?.map((each) => Number.parseInt(each.padEnd(2, each), 16) / 255) as
    | [number, number, number]
    | undefined
}

/** A colour as CSS has it. */
export function cssColour(colour: Colour): string {
  const bytes = colour.map((channel) => Math.round(channel * 255))
  return `#${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Contrast ratio of two colours (WCAG 2.2), 1 to 21. */
export function contrast(a: Colour, b: Colour): number {
  const [darker, lighter] = [luminance(a), luminance(b)].sort((one, other) => one - other) as [number, number]
  return (lighter + 0.05) / (darker + 0.05)
}

/**
 * The accent colour for pages with these surfaces. The colour is changed only as far as it could not be seen otherwise.
 */
export function accentOn(surfaces: readonly Colour[], colour: Colour): Accent {
  const area = seenOn(surfaces, colour, contrasts.area)
  const onArea = contrast(area, white) >= contrast(area, black) ? white : black
  // Away from the text on it.
  const areaHover = mix(area, onArea === white ? black : white, 0.14)
  return { area, areaHover, onArea, ink: seenOn(surfaces, colour, contrasts.text) }
}

function seenOn(surfaces: readonly Colour[], colour: Colour, minimum: number): Colour {
  const lowest = (tried: Colour): number => Math.min(...surfaces.map((surface) => contrast(tried, surface)))
  const end = contrast(white, surfaces[0] ?? white) > contrast(black, surfaces[0] ?? white) ? white : black
  const steps = 40
  for (let step = 0; step < steps; step++) {
    const tried = mix(colour, end, step / steps)
    if (lowest(tried) >= minimum) return tried
  }
  return end
}

function mix(from: Colour, to: Colour, share: number): Colour {
  const channel = (index: 0 | 1 | 2): number => from[index] + (to[index] - from[index]) * share
  return [channel(0), channel(1), channel(2)]
}

/** Relative luminance (WCAG 2.2). */
function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((channel) =>
    channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4,
  ) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
