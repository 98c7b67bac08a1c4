import { readdir, readFile, stat } from 'node:fs/promises'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const index = await readFile(new URL('docs/README.md', root), 'utf8')
const pages = (await readdir(new URL('docs/', root))).filter((name) => name.endsWith('.md') && name !== 'README.md')

test('every page under docs/ is in the index once, with a line on when to read it', () => {
  expect(pages.length).toBeGreaterThan(20)
  const rows = [...index.matchAll(/^- \[([\w-]+\.md)\]\(\1\): (.+)$/gm)]
  const listed = rows.map(([, page]) => page)
  expect(listed.filter((page, position) => listed.indexOf(page) !== position)).toEqual([])
  for (const page of pages) expect(listed).toContain(page)
  for (const [, page, when] of rows) expect(when?.length, page).toBeGreaterThan(15)
})

test('the pictures are small, and each has a text for those who cannot see it', async () => {
  const folder = new URL('docs/images/', root)
  const names = await readdir(folder)
  const sizes = await Promise.all(names.map(async (name) => (await stat(new URL(name, folder))).size))
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(300 * 1024)
  const shown = await Promise.all(
    ['README.md', 'docs/several-wallets.md'].map((page) => readFile(new URL(page, root), 'utf8')),
  )
  for (const name of names) expect(shown.join()).toMatch(new RegExp(`!\\[[^\\]]{40,}\\]\\((docs/)?images/${name}\\)`))
})
