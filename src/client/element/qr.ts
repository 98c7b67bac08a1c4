import { encode } from 'uqr'

const svg = 'http://www.w3.org/2000/svg'

/** A QR code as an SVG image. It is black on white even on a dark page, because many scanners read nothing else. */
export function qrImage(text: string, label: string): SVGSVGElement {
  // The quiet zone of the standard, four modules on each side.
  const { data, size } = encode(text, { ecc: 'M', border: 4 })
  const image = document.createElementNS(svg, 'svg')
  image.setAttribute('viewBox', `0 0 ${size} ${size}`)
  image.setAttribute('shape-rendering', 'crispEdges')
  image.setAttribute('role', 'img')
  image.setAttribute('aria-label', label)
  const dark = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('')
  image.append(path(`M0 0h${size}v${size}H0z`, '#fff'), path(dark, '#000'))
  return image
}

function path(d: string, fill: string): SVGPathElement {
  const element = document.createElementNS(svg, 'path')
  element.setAttribute('d', d)
  element.setAttribute('fill', fill)
  return element
}
