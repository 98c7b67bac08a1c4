import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readPageTexts } from '../../src/http/page-texts.ts'
import { english } from '../../src/shared/texts/english.ts'

const page = readFileSync(new URL('../../docs/texts.md', import.meta.url), 'utf8')
const [, example = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? []

test('docs/texts.en.json has every text as the page has it', () => {
  const file = readFileSync(new URL('../../docs/texts.en.json', import.meta.url), 'utf8')
  expect(JSON.parse(file)).toEqual(english)
})

test('docs/texts.md says where the texts of each name are', () => {
  const named = [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names = '']) => names.match(/[a-z-]+(?=\.`)/g) ?? [])
  const first = new Set(Object.keys(english).map((name) => name.slice(0, name.indexOf('.'))))
  expect(named.sort()).toEqual([...first].sort())
})

test('the service takes its example', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-texts-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'texts.json')
  writeFileSync(file, example)
  expect(readPageTexts(file)).toEqual(JSON.parse(example))
})
