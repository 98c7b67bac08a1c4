import { createHash } from 'node:crypto'

const ownImages = "'self' data:"

const otherHeaders: Readonly<Record<string, string>> = {
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // A wallet in a window of its own answers to the page that opened it; a page that opens this one gets no hold of it.
  'cross-origin-opener-policy': 'same-origin-allow-popups',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'x-robots-tag': 'noindex',
}

/**
 * Security headers of the pages. A page can run its own scripts, but none inline, and its own styles; call this service
 * and no other; not be framed, so that no other page can steal a click on "Approve"; send no referrer, submit no form
 * and use no device. Script sinks accept no text at all (Trusted Types), so that no text of an order can become markup.
 */
export const pageHeaders: Readonly<Record<string, string>> = headersOf({})

/** The images of a page. The operator's logo is one: exactly that image, if it is on another origin. */
function imagesWith(logoUrl: string | undefined): string {
  if (logoUrl === undefined || logoUrl.startsWith('/')) return ownImages
  const { origin, pathname } = new URL(logoUrl)
  return `${ownImages} ${origin}${pathname}`
}

/** The styles of a page. The style sheet that the build wrote into it is one: exactly that text. */
function stylesIn(html: string): string {
  const inline = /<style>([^<]*)<\/style>/.exec(html)?.[1]
  return inline === undefined ? "'self'" : `'self' 'sha256-${createHash('sha256').update(inline).digest('base64')}'`
}

/** The security headers of one page: its own style sheet and the operator's logo are allowed. */
export function headersOfPage(html: string, logoUrl: string | undefined): Readonly<Record<string, string>> {
  return headersOf({ images: imagesWith(logoUrl), styles: stylesIn(html) })
}

function headersOf({ images = ownImages, styles = "'self'" }): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${styles}`,
    `img-src ${images}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ]
  return { 'content-security-policy': policy.join('; '), ...otherHeaders }
}
