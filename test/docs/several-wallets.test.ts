import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const page = await readFile(new URL('docs/several-wallets.md', root), 'utf8')

test('every test that docs/several-wallets.md names is there', async () => {
  const tables = [...page.matchAll(/^\| `(test\/[\w./-]+\.test\.ts)` \| .+\n\|[-|]+\n((?:\| .+\n)+)/gm)]
  expect(tables.length).toBe(1)
  for (const [, file = '', rows = ''] of tables) {
    const names = [...rows.matchAll(/^\| (.+?) \| .+ \|$/gm)].map(([, name]) => name)
    expect(names.length).toBeGreaterThan(7)
    const source = await readFile(new URL(file, root), 'utf8')
    for (const name of names) expect(source, file).toContain(name)
  }
})

test('its links lead somewhere', () => {
  for (const [, target] of page.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
    expect(existsSync(new URL(target as string, new URL('docs/', root))), target).toBe(true)
  }
})
