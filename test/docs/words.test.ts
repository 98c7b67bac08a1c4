import { expect, test } from 'vitest'
import { readFromRoot } from '../support/repository.ts'

interface Subject {
  /** The most words that its pages have together, as `wc -w` counts them, generated parts included. */
  readonly most: number
  readonly pages: readonly string[]
}

/** The subjects of the documents. A page that is added takes its words from the others of its subject. */
const subjects: readonly Subject[] = [
  { most: 2200, pages: ['docs/protocol.md'] },
  { most: 1700, pages: ['docs/other-languages.md'] },
  { most: 1600, pages: ['docs/faq.md', 'docs/migration.md', 'docs/nimiq-profile.md'] },
  { most: 6000, pages: ['SECURITY.md', 'docs/cross-device-security.md'] },
  {
    most: 4200,
    pages: ['docs/backends.md', 'docs/access-tokens.md', 'docs/forward-auth.md', 'docs/mounting.md'],
  },
  { most: 3700, pages: ['audit', 'metrics', 'tracing', 'doctor', 'admin'].map((name) => `docs/${name}.md`) },
  { most: 2500, pages: ['docs/approvals.md', 'docs/proofs.md'] },
  { most: 1500, pages: ['docs/pages.md'] },
  {
    most: 4700,
    pages: [
      ...['better-auth', 'testing', 'architecture'],
      ...['oidc-provider', 'one-package', 'own-wire', 'two-records'].map((name) => `decisions/${name}`),
    ].map((name) => `docs/${name}.md`),
  },
  {
    most: 6200,
    pages: ['docs/operations.md', 'docs/scaling.md', 'docs/postgresql.md', 'docs/proxies.md', 'docs/containers.md'],
  },
]

test.each(subjects)('$pages have at most $most words', async ({ most, pages }) => {
  const texts = await Promise.all(pages.map((page) => readFromRoot(page)))
  const words = texts.flatMap((text) => text.match(/\S+/g) ?? []).length
  expect(words).toBeLessThanOrEqual(most)
})
