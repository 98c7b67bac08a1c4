import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../support/command.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** The subpaths of the package that the example imports, and where their sources are. */
const sources: Readonly<Record<string, string>> = {
  countersign: 'src/index.ts',
  'countersign/client': 'src/browser/client/index.ts',
  'countersign/testing': 'src/integrations/testing/index.ts',
}

/** A program with the package's sources in place of the package, and its dependencies where they are installed. */
function withSources(program: string): string {
  return program.replace(/(?<= from )'([^']+)'/g, (written, specifier: string) => {
    if (/^@(noble|scure)\//.test(specifier)) return JSON.stringify(import.meta.resolve(specifier))
    const source = sources[specifier]
    if (source === undefined) expect(specifier).toMatch(/^(node:|\.\/\w+\.ts$)/)
    return source === undefined ? written : JSON.stringify(join(root, source))
  })
}

test.each([
  ['ring.test.ts', 27],
  ['chains.test.ts', 36],
])(
  "the guide's adapters keep the contract and sign in: %s",
  async (file, tests) => {
    const folder = temporaryFolder()
    for (const name of await readdir(join(root, 'examples/custom-wallet'))) {
      await writeFile(join(folder, name), withSources(await readFromRoot(`examples/custom-wallet/${name}`)))
    }
    // Without the variable that tells node:test that it runs within another test runner of Node's own.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const args = ['--test', '--test-reporter=tap', join(folder, file)]
    const { stdout } = await run(process.execPath, args, { env, timeout: 120_000 }).catch((failed) => failed)
    expect(stdout).not.toMatch(/^\s*not ok [\s\S]*/m)
    expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(tests)
    expect(stdout).toMatch(/^# fail 0$/m)
  },
  150_000,
)
