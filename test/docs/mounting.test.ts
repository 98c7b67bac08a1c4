import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const page = await readFile(new URL('docs/mounting.md', root), 'utf8')

test('the programs of docs/mounting.md are those of examples/mounting, to the letter, but for those it links to', async () => {
  const names = await readdir(new URL('examples/mounting/', root))
  expect(names.length).toBeGreaterThan(5)
  for (const name of names) {
    if (page.includes(`](../examples/mounting/${name})`)) continue
    expect(page, name).toContain(
      `\`\`\`ts\n${await readFile(new URL(`examples/mounting/${name}`, root), 'utf8')}\`\`\``,
    )
  }
})

test('its links lead somewhere', () => {
  for (const [, target] of page.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
    expect(existsSync(new URL(target as string, new URL('docs/', root))), target).toBe(true)
  }
})
