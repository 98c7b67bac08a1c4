import { accentOn, type Colour, cssColour, readColour } from './accent.ts'
import { metaContent } from './dom.ts'

/** Shows the operator's logo and accent colour, if the service names them. */
export function showBrand(): void {
  showLogo(metaContent('countersign-logo'))
  const colour = readColour(metaContent('countersign-accent-color'))
  if (colour === undefined) return
  applyAccent(colour)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => applyAccent(colour))
}

function showLogo(address: string): void {
  if (address === '') return
  const logo = document.createElement('img')
  logo.className = 'logo'
  // The name of the application stands beside it.
  logo.alt = ''
  logo.addEventListener('load', () => document.querySelector('.mark')?.replaceWith(logo))
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
