import { expect, test } from 'vitest'
import { readFromRoot } from '../support/repository.ts'

/**
 * The most words that the pages of a subject have together, as `wc -w` counts them, generated parts included. A page that is
 * added takes its words from the others of its subject.
 */
const clusters: readonly (readonly [most: number, ...pages: string[]])[] = [
  [2200, 'docs/protocol.md'],
  [1700, 'docs/other-languages.md'],
  [1600, 'docs/faq.md', 'docs/migration.md', 'docs/nimiq-profile.md'],
  [6000, 'SECURITY.md', 'docs/cross-device-security.md'],
  [4200, 'docs/backends.md', 'docs/access-tokens.md', 'docs/forward-auth.md', 'docs/mounting.md'],
]

test.each(clusters)('at most %i words: %s and the others of its subject', async (most, ...pages) => {
  const texts = await Promise.all(pages.map((page) => readFromRoot(page)))
  const words = texts.flatMap((text) => text.match(/\S+/g) ?? []).length
  expect(words).toBeLessThanOrEqual(most)
})
