/** The pages. Each has an HTML file and a script of its name in `src/browser/pages/`, and a row in `http/pages.ts`. */
export const pageNames = ['approve', 'demo', 'sign-in', 'account', 'issuer', 'not-found'] as const

/** One of {@link pageNames}. */
export type PageName = (typeof pageNames)[number]

/**
 * Path of the sign-in page under the base path. Its assets are below it, for proxies that pass on nothing but the base
 * path.
 */
export const signInPath = '/sign-in'

/** Path of the account page under the base path. */
export const accountPath = '/account'
