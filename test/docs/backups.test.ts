import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { makeFile } from '../store/formats.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/operations.md'), 'utf8')
const section = page.slice(page.indexOf('\n## Backups\n'), page.indexOf('\n## Logs\n'))

/** The section's snippets that say they are executed. */
const snippets = [...section.matchAll(/<!-- executed by test\/docs -->\n```sh\n([\s\S]*?)```/g)].map(
  ([, code = '']) => code,
)

test('the commands of the section on backups make a copy, and restore it', async () => {
  expect(snippets).toHaveLength(2)
  const folder = mkdtempSync(join(tmpdir(), 'countersign-snippet-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'backups'))
  makeFile(join(folder, 'countersign.db'), '0.1.0')
  for (const snippet of snippets) {
    const child = spawn('sh', ['-euc', `countersign() { "$NODE" "$MAIN" "$@"; }\n${snippet}`], {
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
