/**
 * The package's version. It stands here, too, because no path leads to package.json once this is in the bundle of an
 * application.
 */
export const version = '0.1.0'
