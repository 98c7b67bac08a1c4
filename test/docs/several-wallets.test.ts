import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const page = await readFile(new URL('docs/several-wallets.md', root), 'utf8')

test('every test that docs/several-wallets.md names is there', async () => {
  const rows = [...page.matchAll(/\| `(test\/[\w./-]+\.test\.ts)`: (.+) \|$/gm)]
  expect(rows.length).toBeGreaterThan(15)
  expect(rows).toHaveLength(page.match(/`test\/(?:e2e|core\/users)\//g)?.length ?? 0)
  for (const [, file, name] of rows) {
    expect(await readFile(new URL(file as string, root), 'utf8'), file).toContain(name)
  }
})

test('its links lead somewhere', () => {
  for (const [, target] of page.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
    expect(existsSync(new URL(target as string, new URL('docs/', root))), target).toBe(true)
  }
})
