import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { blocksOf } from './blocks.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8')

/** The subpaths of the package that the example imports, and where their sources are. */
const sources: Readonly<Record<string, string>> = {
  countersign: 'src/index.ts',
  'countersign/client': 'src/browser/client/index.ts',
  'countersign/testing': 'src/integrations/testing/index.ts',
}

/** A program with the package's sources in place of the package. Its other imports are Node's and its own. */
function withSources(program: string): string {
  return program.replace(/(?<= from )'([^']+)'/g, (written, specifier: string) => {
    const source = sources[specifier]
    if (source === undefined) expect(specifier).toMatch(/^(node:|\.\/ring\.ts$)/)
    return source === undefined ? written : JSON.stringify(join(root, source))
  })
}

test("the guide's adapter keeps the contract, signs in and approves an order", async () => {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-custom-wallet-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'ring.ts'), withSources(await read('examples/custom-wallet/ring.ts')))
  await writeFile(join(folder, 'ring.test.ts'), withSources(await read('examples/custom-wallet/ring.test.ts')))
  // Without the variable that tells node:test that it runs within another test runner of Node's own.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--test', '--test-reporter=tap', join(folder, 'ring.test.ts')]
  const { stdout } = await run(process.execPath, args, { env, timeout: 120_000 }).catch((failed) => failed)
  expect(stdout).not.toMatch(/^\s*not ok [\s\S]*/m)
  expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(27)
  expect(stdout).toMatch(/^# fail 0$/m)
}, 150_000)

test('the guide shows parts of examples/custom-wallet, to the letter', async () => {
  const adapter = await read('examples/custom-wallet/ring.ts')
  const blocks = blocksOf(await read('docs/custom-wallet.md')).map(({ text }) => text)
  const parts = blocks.filter((text) => text.includes('signedBytes'))
  expect(parts).toHaveLength(2)
  for (const part of parts) expect(adapter).toContain(part)
})
