import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readFromRoot, root } from '../support/repository.ts'

interface Subject {
  /** The most words that its pages have together, as `wc -w` counts them, generated parts included. */
  readonly most: number
  readonly pages: readonly string[]
}

/** The subjects of the documents. A page that is added takes its words from the others of its subject. */
const subjects: readonly Subject[] = [
  { most: 3600, pages: ['README.md', 'CONTRIBUTING.md', 'docs/README.md', 'docs/start.md'] },
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
    most: 7200,
    pages: [
      ...['client', 'wallets', 'several-wallets', 'wagmi', 'frameworks', 'react'],
      ...['script-tag', 'headless', 'custom-wallet'],
    ].map((name) => `docs/${name}.md`),
  },
  {
    most: 5000,
    pages: ['oidc', 'oidc-applications', 'identity-providers', 'terminals', 'mcp', 'private-applications'].map(
      (name) => `docs/${name}.md`,
    ),
  },
  {
    most: 6200,
    pages: ['docs/operations.md', 'docs/scaling.md', 'docs/postgresql.md', 'docs/proxies.md', 'docs/containers.md'],
  },
]

/** Pages that are generated, whose words are not held by themselves. */
const unheld = ['docs/errors.md', 'docs/settings.md']

/** The most words of all pages. */
const mostInAll = 54_400

/** The words of pages, as `wc -w` counts them. */
async function wordsOf(pages: readonly string[]): Promise<number> {
  const texts = await Promise.all(pages.map((page) => readFromRoot(page)))
  return texts.flatMap((text) => text.match(/\S+/g) ?? []).length
}

test('every page is in one subject, or among the generated ones', async () => {
  const names = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md'))
  const all = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', ...names.map((name) => `docs/${name}`)]
  const listed = [...subjects.flatMap(({ pages }) => pages), ...unheld]
  expect(listed.filter((page) => !page.startsWith('docs/decisions/')).sort()).toEqual(all.sort())
})

test.each(subjects)('$pages have at most $most words', async ({ most, pages }) => {
  expect(await wordsOf(pages)).toBeLessThanOrEqual(most)
})

test('all pages have at most 54,400 words together, with those that are generated', async () => {
  const all = await wordsOf([...subjects.flatMap(({ pages }) => pages), ...unheld])
  console.info(`${all} words in all, of which errors and settings have ${await wordsOf(unheld)}`)
  expect(all).toBeLessThanOrEqual(mostInAll)
})
