import { buildOldPages } from '../../scripts/build-pages.ts'

/** Builds the pages before the tests if they are not those of the sources. */
export const setup = buildOldPages
