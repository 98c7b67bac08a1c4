const otherHeaders: Readonly<Record<string, string>> = {
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // A wallet in a window of its own answers to the page that opened it; nobody who opens the page gets hold of it.
  'cross-origin-opener-policy': 'same-origin-allow-popups',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'x-robots-tag': 'noindex',
}

/** Path of the page that continues an order in another browser. The ticket follows it. */
export const continuePath = '/cross-device/continue'

/**
 * Security headers of the pages. A page can run its own scripts and styles, but none inline; call this service and no
 * other; not be framed, so that no other page can steal a click on "Approve"; send no referrer, submit no form and use
 * no device. Script sinks accept no text at all (Trusted Types), so that no text of an order can become markup.
 */
export const pageHeaders: Readonly<Record<string, string>> = headersOf("'self' data:")

/** The same, with the operator's logo allowed: exactly that image, if it is on another origin. */
export function pageHeadersWith(logoUrl: string | undefined): Readonly<Record<string, string>> {
  if (logoUrl === undefined || logoUrl.startsWith('/')) return pageHeaders
  const { origin, pathname } = new URL(logoUrl)
  return headersOf(`'self' data: ${origin}${pathname}`)
}

function headersOf(images: string): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
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

/**
 * Makes a function that says whether a path is that of a claim URL on the service's own origin. If the template leads
 * to another origin, which then has the approval page, no path is.
 */
export function claimPath(template: string): (path: string) => boolean {
  const own = claimPathTemplate(template)
  if (own === undefined) return () => false
  const escaped = own.replace(/[.*+?^$()|[\]\\]/g, '\\$&')
  const pattern = new RegExp(`^${escaped.replaceAll('{orderId}', '[A-Za-z0-9_-]{1,64}')}$`)
  return (path) => pattern.test(path)
}

/** The path in a claim URL template; `undefined` if the template leads to another origin. */
export function claimPathTemplate(template: string): string | undefined {
  const own = /^\{origin\}(\/[^?#]*)?/.exec(template)
  return own === null ? undefined : (own[1] ?? '/')
}

/** Whether a path is where a hand-over continues an order, by a ticket; or, after the page has removed it, by the order's id. */
export function isContinuePath(path: string): boolean {
  return path.startsWith(`${continuePath}/`) && /^[A-Za-z0-9_-]{1,128}$/.test(path.slice(continuePath.length + 1))
}
