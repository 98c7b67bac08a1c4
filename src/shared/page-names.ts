/** The pages. Each has an HTML file and a script of its name in `src/browser/pages/`, and a row in `http/pages.ts`. */
export const pageNames = ['approve', 'demo', 'sign-in', 'account', 'inbox', 'issuer', 'not-found'] as const

/** One of {@link pageNames}. */
export type PageName = (typeof pageNames)[number]

/**
 * Path of the sign-in page under the base path. Its assets are below it, for proxies that pass on nothing but the base
 * path.
 */
export const signInPath = '/sign-in'

/** Path of the account page under the base path. */
export const accountPath = '/account'

/** Path of the inbox under the base path. An order that was tapped there is below it, by its id. */
export const inboxPath = '/inbox'

/** Claim URLs as the service writes them by default: short, for a QR code that is quick to scan. */
export const defaultClaimUrlTemplate = '{origin}/c/{orderId}#token={claimToken}'

/** What the id of an order looks like: 16 bytes in base64url. */
export const orderIdForm = '[A-Za-z0-9_-]{22}'
