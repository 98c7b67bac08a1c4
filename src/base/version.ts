/**
 * The package's version. It is repeated here, because no path leads to package.json once this is in the bundle of an
 * application.
 */
export const version = '0.1.0'

/** The commit that the package was built from. `undefined` in a working tree; `npm run build` writes it into dist. */
export const commit: string | undefined = undefined
