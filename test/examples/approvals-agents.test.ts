import { cp, symlink, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { run } from '../support/command.ts'
import { root } from '../support/repository.ts'
import { folderOfFile } from '../support/temporary-folder.ts'

const clone = folderOfFile()
const env = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) }
const minuteMs = 60_000

/** A clone, whose example installs its own packages. */
beforeAll(async () => {
  for (const name of ['src', 'gen', 'node_modules']) await symlink(join(root, name), join(clone, name))
  await cp(join(root, 'package.json'), join(clone, 'package.json'))
  await cp(join(root, 'examples/approvals'), join(clone, 'examples/approvals'), { recursive: true })
})

async function runExample(name: string): Promise<string[]> {
  const { stdout } = await run('npm', ['run', '--silent', name, '--', '--approve'], { cwd: clone, env })
  return stdout.trim().split('\n')
}

test(
  'the MCP server transfers and deletes once the demo wallet has signed each call',
  async () => {
    const lines = await runExample('example:approvals-mcp')
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^"Transfer 25 to bakery" waits for your approval: http/),
        expect.stringMatching(/^The agent got: .*"Transferred 25 to bakery"/),
        expect.stringMatching(/^"Delete the repository archive" waits for your approval: http/),
        expect.stringMatching(/^The agent got: .*"Deleted archive"/),
        'Accounts: {"yours":75,"bakery":25}, repositories: website',
        expect.stringMatching(/^The agent got: .*"Transferred 10 to bakery"/),
        'Accounts: {"yours":90,"bakery":10}',
      ]),
    )
    expect(lines.filter((line) => line.startsWith('Signed by NQ'))).toHaveLength(2)
  },
  5 * minuteMs,
)

test(
  'the AI SDK’s tool mails once the demo wallet has signed, and the model goes on',
  async () => {
    expect(await runExample('example:approvals-ai')).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^"Mail to ada@example\.com" waits for your approval: http/),
        'The model got: Sent to ada@example.com',
        'The model said: That is settled.',
        'Mails that were sent: The figures → ada@example.com',
      ]),
    )
  },
  5 * minuteMs,
)

test(
  'the examples compile',
  async () => {
    const config = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { preserveSymlinks: true, rootDir: clone, paths: { '#pages': ['./src/http/built-pages.d.ts'] } },
      include: ['examples/approvals', 'src/oidc/library-files.d.ts'],
      exclude: [],
    }
    await writeFile(join(clone, 'tsconfig.json'), JSON.stringify(config))
    await run(join(root, 'node_modules/.bin/tsc'), ['-p', '.'], { cwd: clone, env })
  },
  minuteMs,
)
