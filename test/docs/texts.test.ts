import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readPageTexts } from '../../src/http/page-texts.ts'
import { english } from '../../src/shared/texts/english.ts'

const page = readFileSync(new URL('../../docs/texts.md', import.meta.url), 'utf8')
const [example = '', all = ''] = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, json]) => json as string)

test('docs/texts.md lists every text as the page has it', () => {
  expect(JSON.parse(all)).toEqual(english)
})

test('the service takes its example', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-texts-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'texts.json')
  writeFileSync(file, example)
  expect(JSON.parse(readPageTexts(file))).toEqual(JSON.parse(example))
})
