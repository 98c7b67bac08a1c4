import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readFromRoot, root } from '../support/repository.ts'

const page = await readFromRoot('docs/mounting.md')

test('the programs of docs/mounting.md are those of examples/mounting, to the letter, but for those it links to', async () => {
  const names = await readdir(join(root, 'examples/mounting'))
  expect(names.length).toBeGreaterThan(5)
  for (const name of names) {
    if (page.includes(`](../examples/mounting/${name})`)) continue
    expect(page, name).toContain(`\`\`\`ts\n${await readFromRoot(`examples/mounting/${name}`)}\`\`\``)
  }
})
