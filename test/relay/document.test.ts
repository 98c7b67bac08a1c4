import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { withRelayTable } from '../../scripts/docs.ts'

const root = new URL('../../', import.meta.url)
const file = new URL('docs/cross-device-security.md', root)
const page = await readFile(file, 'utf8')

test('the relay table in the document is that of the scripts; if not, run `npm run docs`', () => {
  expect(withRelayTable(page)).toBe(page)
})

test('every test that the document names is there', () => {
  const named = page.match(/`test\/[^`]+`/g) ?? []
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((path) => !existsSync(new URL(path.slice(1, -1), root)))).toEqual([])
})

test('its links lead somewhere', () => {
  for (const [, target] of page.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
    expect(existsSync(new URL(target as string, file)), target).toBe(true)
  }
})
