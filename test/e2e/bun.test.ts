import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hasPart } from '../support/optional.ts'
import { folderOfFile } from '../support/temporary-folder.ts'

/** The package of the program for this machine; the one that is called `bun` downloads it in a script. */
const bun = {
  package: `@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : 'x64'}`,
  version: '1.4.5',
}
const folder = folderOfFile()

test.skipIf(!hasPart('npm registry'))('Bun does not start the port of its own, and says in one line what to do', () => {
  const packages = [`${bun.package}@${bun.version}`]
  const options = ['--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock']
  expect(spawnSync('npm', ['install', ...options, ...packages], { stdio: 'ignore' }).status).toBe(0)
  const program = join(folder, 'node_modules', bun.package, 'bin', 'bun')
  const env = { PATH: process.env.PATH, PORT: '0', HOST: '127.0.0.1', COUNTERSIGN_STORE: 'sqlite::memory:' }
  const { status, stdout, stderr } = spawnSync(program, ['src/main.ts'], { env, encoding: 'utf8', timeout: 30_000 })
  expect(stdout + stderr).toMatch(/^countersign: Bun cannot serve [^\n]* `handler` or `fetch` in Bun\n$/)
  expect(status).toBe(1)
})
