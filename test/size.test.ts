import { expect, test } from 'vitest'
import { countedFiles, linesOfCode } from '../scripts/size.ts'

test('blank lines and comments are not lines of code', () => {
  const text = ['/** Doc.', ' * More. */', '', 'const a = 1 // why', '  // alone', 'const b = /* in */ 2', '\t'].join(
    '\n',
  )
  expect(linesOfCode(text, 'ts')).toBe(2)
  expect(linesOfCode('/* rule */\na {\n\n  b: url("//c/*d");\n}\n', 'css')).toBe(3)
})

test.each([
  ['a string', `const a = 'it\\'s /*'\nconst b = "//"\nconst c = '*/'`],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a source text.
  ['a template literal', 'const a = `\n// ${b({ c: `/*${d}*/` })} /*\n`'],
  ['a regular expression', 'const a = b / 2 // half\nconst c = /[/"]\\/*\'/.test(d)\nreturn /\\/\\//g'],
])('what looks like a comment in %s is code', (_, text) => {
  expect(linesOfCode(text, 'ts')).toBe(3)
})

test('texts of pages are not counted', () => {
  const files = countedFiles()
  expect(files).toContain('src/shared/errors.ts')
  expect(files.filter((path) => path.includes('texts/'))).toEqual([])
})
