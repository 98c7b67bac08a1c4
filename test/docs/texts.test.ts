import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readPageTexts } from '../../src/http/page-texts.ts'
import { english } from '../../src/shared/texts/english.ts'
import { readFromRoot } from '../support/repository.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const page = await readFromRoot('docs/pages.md')
const [, example = ''] = /```json\n(\{\n {2}"fr"[\s\S]*?)```/.exec(page) ?? []

test('docs/texts.en.json has every text as the page has it', async () => {
  expect(JSON.parse(await readFromRoot('docs/texts.en.json'))).toEqual(english)
})

test('docs/pages.md says where the texts of each name are', () => {
  const named = [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names = '']) => names.match(/[a-z-]+(?=\.`)/g) ?? [])
  const first = new Set(Object.keys(english).map((name) => name.slice(0, name.indexOf('.'))))
  expect(named.sort()).toEqual([...first].sort())
})

test('the service takes its example', async () => {
  const file = join(temporaryFolder(), 'texts.json')
  writeFileSync(file, example)
  expect(readPageTexts(file)).toEqual(JSON.parse(example))
})
