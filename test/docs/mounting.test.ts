import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readFromRoot, root } from '../support/repository.ts'

const page = await readFromRoot('docs/mounting.md')

test('each program of examples/mounting is on docs/mounting.md, to the letter or with the line that serves', async () => {
  const names = await readdir(join(root, 'examples/mounting'))
  expect(names.length).toBeGreaterThan(5)
  for (const name of names) {
    const code = await readFromRoot(`examples/mounting/${name}`)
    const [row] = page
      .split('\n')
      .filter((line) => line.startsWith('| ') && line.includes(`](../examples/mounting/${name})`))
    if (row === undefined) expect(page, name).toContain(`\`\`\`ts\n${code}\`\`\``)
    else expect(code, name).toContain(/\| `(.+)` \|$/.exec(row)?.[1])
  }
})
