import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeFile } from '../store/formats.ts'
import { root } from '../support/repository.ts'
import { executedSnippets } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const snippets = await executedSnippets('docs/operations.md')

test('the commands of the section on backups make a copy, and restore it', async () => {
  expect(snippets).toHaveLength(2)
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'backups'))
  makeFile(join(folder, 'countersign.db'), '0.1.0')
  for (const { code } of snippets) {
    const child = spawn('sh', ['-euc', `countersign() { "$NODE" "$MAIN" "$@"; }\n${code}`], {
      cwd: folder,
      env: { PATH: process.env.PATH, NODE: process.execPath, MAIN: join(root, 'src/main.ts') },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    expect((await once(child, 'exit'))[0]).toBe(0)
  }
  expect(readdirSync(join(folder, 'backups'))).toEqual([expect.stringMatching(/^countersign-\d{4}-\d\d-\d\d\.db$/)])
  expect(readdirSync(folder).sort()).toEqual([
    'backups',
    'countersign.db',
    expect.stringMatching(/^countersign\.db\.before-\d{4}-/),
  ])
})
