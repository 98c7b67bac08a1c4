import { execFile } from 'node:child_process'
import { cpSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('without its folder, the rest compiles but for one import in the service and one in the commands', async () => {
  const copy = temporaryFolder()
  for (const each of ['src', 'gen', 'package.json', 'tsconfig.json']) {
    cpSync(join(root, each), join(copy, each), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  rmSync(join(copy, 'src/oidc'), { recursive: true })
  writeFileSync(join(copy, 'tsconfig.src.json'), JSON.stringify({ extends: './tsconfig.json', include: ['src'] }))
  const tsc = join(root, 'node_modules/.bin/tsc')
  const output = await new Promise<string>((resolve) => {
    execFile(
      tsc,
      ['-p', 'tsconfig.src.json', '--declaration', 'false', '--pretty', 'false'],
      { cwd: copy },
      (_, stdout) => resolve(stdout),
    )
  })
  expect(output.split('\n').flatMap((line) => /^(\S+)\(.*error (TS\d+)/.exec(line)?.slice(1).join(' ') ?? [])).toEqual([
    'src/commands/oidc.ts TS2307',
    'src/service/countersign.ts TS2307',
  ])
}, 120_000)
