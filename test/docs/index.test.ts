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

/** The documents with a picture. */
const pictures = {
  'sign-in.png': 'README.md',
  'add-wallet.png': 'docs/several-wallets.md',
  'inbox.png': 'docs/approvals.md',
  'consent.png': 'docs/oidc.md',
  'device.png': 'docs/terminals.md',
  'element.png': 'docs/client.md',
  'doctor.png': 'docs/doctor.md',
  'return-code.png': 'docs/cross-device-security.md',
}
const folder = new URL('docs/images/', root)

test.each(Object.entries(pictures))('%s is small, taken by the script, and has a text in %s', async (name, page) => {
  // The first one moves.
  expect((await stat(new URL(name, folder))).size).toBeLessThan((name === 'sign-in.png' ? 200 : 60) * 1024)
  expect(await readFile(new URL('scripts/pictures.ts', root), 'utf8')).toContain(`'${name}'`)
  const shown = new RegExp(`!\\[[^\\]]{40,}\\]\\((docs/)?images/${name}\\)`)
  expect(await readFile(new URL(page, root), 'utf8')).toMatch(shown)
})

test('there is no other picture', async () => {
  expect((await readdir(folder)).sort()).toEqual(Object.keys(pictures).sort())
})
