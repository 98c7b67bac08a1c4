import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const read = (name: string) => readFile(new URL(`../../${name}`, import.meta.url), 'utf8')

test('CONTRIBUTING.md explains every script of package.json', async () => {
  const { scripts } = JSON.parse(await read('package.json')) as { scripts: Record<string, string> }
  const guide = await read('CONTRIBUTING.md')
  const lines = guide.split('\n').filter((line) => line.startsWith('- `npm '))
  const table = lines.flatMap((line) =>
    [...(line.split(': ')[0] ?? '').matchAll(/`npm (?:run )?([\w:-]+)/g)].map(([, name]) => name),
  )
  const automatic = ['prestart', 'prepack']
  for (const name of automatic) expect(guide).toContain(`\`${name}\``)
  expect(table.toSorted()).toEqual(
    Object.keys(scripts)
      .filter((name) => !automatic.includes(name))
      .toSorted(),
  )
})
