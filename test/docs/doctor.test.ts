import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { checks } from '../../src/commands/doctor/checks.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { blocksOf } from './blocks.ts'

const page = await readFromRoot('docs/doctor.md')

const snippets = blocksOf(page)
  .filter(({ language }) => language === 'sh')
  .map(({ text }) => text)
const [before = '', inJob = ''] = snippets

/** Runs a snippet as a shell does that stops at the first failure, in a folder of its own. */
async function runShell(code: string, env: Record<string, string> = {}) {
  const folder = temporaryFolder()
  const command = `countersign() { "$NODE" "$MAIN" "$@"; }\n${code}`
  const child = spawn('sh', ['-euc', command], {
    cwd: folder,
    env: { PORT: String(await freePort()), NODE: process.execPath, MAIN: join(root, 'src/main.ts'), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [stdout, [code_]] = await Promise.all([text(child.stdout), once(child, 'close')])
  return { folder, stdout, code: code_ as number }
}

test('there are two', () => expect(snippets).toHaveLength(2))

test('the first one finds what the page shows', async () => {
  const { code, stdout } = await runShell(before)
  expect(code).toBe(1)
  const shown = /```\n(✗ problem[\s\S]*?)```/.exec(page)?.[1]
  expect(shown).toContain('problem')
  expect(stdout).toContain(shown)
})

test('the one for a job ends it if there is a problem, and leaves the object that the page describes', async () => {
  expect((await runShell(`${inJob}echo deployed`)).stdout).toBe('deployed\n')
  const env = { COUNTERSIGN_STORE: 'redis://127.0.0.1:1' }
  const { folder, stdout, code } = await runShell(`${inJob}echo deployed`, env)
  expect([stdout, code]).toEqual(['', 1])
  const printed = JSON.parse(await readFile(join(folder, 'doctor.json'), 'utf8'))
  const shown = /The object is `(.*?)`/.exec(page.replaceAll('\n', ' '))?.[1]?.replaceAll('…', '0') ?? ''
  expect(Object.keys(printed)).toEqual(Object.keys(JSON.parse(shown)))
  expect(Object.keys(printed.checks[1])).toEqual(Object.keys(JSON.parse(shown).checks[0]))
  expect(printed.checks[1]).toMatchObject({
    check: 'configuration',
    status: 'problem',
    fix: expect.stringContaining('COUNTERSIGN_SECRET'),
  })
})

test('the page has a row for each check', () => {
  const rows = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name)
  expect(rows).toEqual(['node', 'configuration', ...checks.map(({ name }) => name)])
})
