import { existsSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { withParts } from '../../scripts/docs/markdown.ts'
import { writtenDocuments } from '../../scripts/docs.ts'
import { allOptions } from '../../src/service/config.ts'

const documents = await writtenDocuments()

test.each(documents)('the generated parts of $path are those of the code; if not, run `npm run docs`', (document) => {
  expect(document.before).toBe(document.after)
})

test('llms.txt lists every document, and links it where it is', async () => {
  const text = documents.find(({ path }) => path === 'llms.txt')?.after ?? ''
  const links = [...text.matchAll(/^- \[(.+)\]\(\1\): /gm)].map(([, path = '']) => path)
  for await (const page of glob('docs/**/*.md', { cwd: new URL('../..', import.meta.url) })) {
    if (page !== 'docs/README.md') expect(links).toContain(page)
  }
  for (const path of links) expect(existsSync(new URL(`../../${path}`, import.meta.url)), path).toBe(true)
})

test('a part without its place is an error, not forgotten', () => {
  expect(() => withParts('page.md', '<!-- a: written by npm run docs -->\n\n', { a: 'text' })).toThrow(
    /^page\.md has no place for a:/,
  )
})

test('every setting has one row in docs/settings.md', () => {
  const page = documents.find(({ path }) => path === 'docs/settings.md')?.after ?? ''
  const listed = [...page.matchAll(/^\| (?:`(\w+)`<br>(?:`\1_FILE`<br>)?)?`([\w.]+)`(?:, in code only)? \|/gm)].map(
    ([, variable, option]) => [option, variable],
  )
  const all = allOptions.map(({ name, option: { variable } }) => [name, variable])
  expect(listed.sort()).toEqual(all.sort())
})
