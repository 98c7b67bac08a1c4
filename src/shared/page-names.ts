/** The pages. Each has an HTML file and a script of its name in `src/browser/pages/`, and a row in `http/pages.ts`. */
export const pageNames = ['approve', 'demo', 'sign-in', 'issuer'] as const

/** One of {@link pageNames}. */
export type PageName = (typeof pageNames)[number]
