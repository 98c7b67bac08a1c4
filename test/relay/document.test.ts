import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const file = new URL('docs/cross-device-security.md', root)
const page = await readFile(file, 'utf8')

test('every test that the document names is there', () => {
  const named = page.match(/`test\/[^`]+`/g) ?? []
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((path) => !existsSync(new URL(path.slice(1, -1), root)))).toEqual([])
})
