import { expect, test } from 'vitest'
import { readFromRoot } from '../support/repository.ts'

const page = await readFromRoot('src/core/users/README.md')

test('every test that src/core/users/README.md names is there', async () => {
  const tables = [...page.matchAll(/^\| `(test\/[\w./-]+\.test\.ts)` \| .+\n\|[-|]+\n((?:\| .+\n)+)/gm)]
  expect(tables.length).toBe(1)
  for (const [, file = '', rows = ''] of tables) {
    const names = [...rows.matchAll(/^\| (.+?) \| .+ \|$/gm)].map(([, name]) => name)
    expect(names.length).toBeGreaterThan(7)
    const source = await readFromRoot(file)
    for (const name of names) expect(source, file).toContain(name)
  }
})
