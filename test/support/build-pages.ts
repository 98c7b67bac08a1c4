import { buildPages } from '../../scripts/build-pages.ts'

/** Builds the pages once, before all tests. */
export async function setup(): Promise<void> {
  await buildPages()
}
