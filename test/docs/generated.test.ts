import { expect, test } from 'vitest'
import { withParts } from '../../scripts/docs/markdown.ts'
import { writtenDocuments } from '../../scripts/docs.ts'
import { allOptions } from '../../src/service/config.ts'

const documents = await writtenDocuments()

test.each(documents)('the generated parts of $path are those of the code; if not, run `npm run docs`', (document) => {
  expect(document.before).toBe(document.after)
})

test('a part without its place is an error, not forgotten', () => {
  expect(() => withParts('page.md', '<!-- a: written by npm run docs -->\n\n', { a: 'text' })).toThrow(
    /^page\.md has no place for a:/,
  )
})

test('every setting has one row in docs/settings.md', () => {
  const page = documents.find(({ path }) => path === 'docs/settings.md')?.after ?? ''
  const listed = [...page.matchAll(/^\| (?:`(\w+)`(?:, `\1_FILE`)?|code only) \| `([\w.]+)` \|/gm)].map(
    ([, variable, option]) => [option, variable],
  )
  const all = allOptions.map(({ name, option: { variable } }) => [name, variable])
  expect(listed.sort()).toEqual(all.sort())
})
