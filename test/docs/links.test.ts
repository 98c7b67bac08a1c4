import { existsSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../support/repository.ts'

/** All Markdown files of the repository, by their paths. */
const pages = new Map<string, string>()
for await (const path of glob('**/*.md', {
  cwd: root,
  exclude: ['node_modules', '**/node_modules/**', 'dist', '.git'],
})) {
  pages.set(path, await readFile(join(root, path), 'utf8'))
}

test('the pages are found', () => {
  expect([...pages.keys()]).toEqual(
    expect.arrayContaining(['README.md', 'docs/protocol.md', 'examples/react/README.md']),
  )
})

test.each([...pages])('%s: every link to a file and to a heading leads there', (path, page) => {
  const dead = linksOf(page).filter((link) => !leadsSomewhere(path, link))
  expect(dead).toEqual([])
})

test.each([...pages])('%s: no two headings have one anchor', (_path, page) => {
  const headings = headingsOf(page).map(slugOf)
  expect(headings.filter((heading, index) => headings.indexOf(heading) !== index)).toEqual([])
})

test('a link to a heading that is not there is noticed, and so is one to a file', () => {
  expect(leadsSomewhere('README.md', 'docs/protocol.md#issuenonce')).toBe(true)
  expect(leadsSomewhere('README.md', 'docs/protocol.md#nowhere')).toBe(false)
  expect(leadsSomewhere('docs/protocol.md', '#nowhere')).toBe(false)
  expect(leadsSomewhere('docs/protocol.md', 'nowhere.md')).toBe(false)
})

/** What the links and pictures of a page lead to, but for other sites. */
function linksOf(page: string): string[] {
  const text = withoutCode(page)
  const inline = [...text.matchAll(/\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"]*")?\s*\)/g)]
  const references = [...text.matchAll(/^\[[^\]]+\]:\s*<?([^\s>]+)>?/gm)]
  const tags = [...text.matchAll(/<(?:a|img|source)\b[^>]*\b(?:href|src|srcset)="([^"]+)"/g)]
  return [...inline, ...references, ...tags]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target))
}

function leadsSomewhere(from: string, link: string): boolean {
  const [file = '', anchor] = link.split('#').map(decodeURIComponent)
  const target = file === '' ? from : normalize(join(dirname(from), file))
  if (!existsSync(join(root, target))) return false
  const page = pages.get(target)
  if (anchor === undefined || page === undefined) return true
  return headingsOf(page).some((heading) => slugOf(heading) === anchor) || page.includes(` id="${anchor}"`)
}

function headingsOf(page: string): string[] {
  return [...withoutFences(page).matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading = '']) => heading)
}

/** The anchor of a heading on code hosts: in lower case, without punctuation, with hyphens for spaces. */
function slugOf(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

function withoutFences(page: string): string {
  return page.replaceAll(/^ *(```|~~~)[\s\S]*?^ *\1/gm, '')
}

function withoutCode(page: string): string {
  return withoutFences(page).replaceAll(/`[^`\n]+`/g, (code) => code.replaceAll(/[[\]()<>]/g, ''))
}
