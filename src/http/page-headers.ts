/**
 * What browsers may do with the pages: run their own scripts and styles, none inline; call the service and nobody else; stand
 * in no frame, where a click on "approve" could be stolen; say nowhere where they come from; submit no form, ask for no
 * device. Script sinks take no text at all (Trusted Types), so that nothing a desktop wrote into an order can become markup.
 */
export const pageHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'x-robots-tag': 'noindex',
}

/**
 * Tells the paths that claim URLs of the service's own origin have. None, when the template leads elsewhere: then another
 * application has the approval page.
 */
export function claimPath(template: string): (path: string) => boolean {
  const own = /^\{origin\}(\/[^?#]*)?/.exec(template)
  if (own === null) return () => false
  const escaped = (own[1] ?? '/').replace(/[.*+?^$()|[\]\\]/g, '\\$&')
  const pattern = new RegExp(`^${escaped.replaceAll('{orderId}', '[A-Za-z0-9_-]{1,64}')}$`)
  return (path) => pattern.test(path)
}
