import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { programPath } from '../support/browser.ts'
import { run } from '../support/command.ts'
import { hasPart } from '../support/optional.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { withSources, workFolder } from '../support/snippets.ts'

const hasChromium = hasPart('chromium')

/** The examples, with the package's sources in place of the package, in a folder that finds the other packages. */
async function copyExamples(): Promise<string> {
  const folder = await workFolder()
  for (const file of await readdir(join(root, 'examples/testing'))) {
    const code = withSources(await readFromRoot(`examples/testing/${file}`))
    await writeFile(join(folder, file), code.replace('chromium.launch()', `chromium.launch(${launchOptions()})`))
  }
  return folder
}

function launchOptions(): string {
  return hasChromium ? JSON.stringify({ executablePath: programPath('chromium'), args: ['--no-sandbox'] }) : ''
}

/** The environment without the variables of the test runner that runs this. */
function ownEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_TEST_CONTEXT|TEST$)/.test(name)),
  )
}

async function runNodeTest(file: string): Promise<string> {
  const args = ['--test', '--test-reporter=tap', join(await copyExamples(), file)]
  return (await run(process.execPath, args, { env: ownEnvironment() })).stdout
}

test("the application's tests pass with vitest", async () => {
  const folder = await copyExamples()
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const report = join(folder, 'report.json')
  const args = ['run', '--root', folder, '--no-cache', '--reporter=json', `--outputFile=${report}`, 'sign-in.test.ts']
  await run(process.execPath, [vitest, ...args], { cwd: folder, env: ownEnvironment() })
  expect(JSON.parse(await readFile(report, 'utf8'))).toMatchObject({ success: true, numPassedTests: 2 })
})

test('the orders pass with node:test', async () => {
  expect(await runNodeTest('order.test.ts')).toMatch(/^# pass 2\n# fail 0$/m)
})

test.skipIf(!hasChromium)('the browser signs in with the wallet that the test puts into the page', async () => {
  expect(await runNodeTest('page.test.ts')).toMatch(/^# pass 1\n# fail 0$/m)
})
