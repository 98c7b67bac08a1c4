import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import { useBrowser } from '../browser/support.ts'
import { run } from '../support/command.ts'
import { startService } from '../support/service.ts'
import { filesIn, writeFiles } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { minuteMs, environment as ownNode, serveFolder } from './tools.ts'

const page = await readFile(new URL('../../docs/frameworks.md', import.meta.url), 'utf8')

/** Without questions, and messages to the maker. */
const environment = { ...ownNode, CI: '1', NG_CLI_ANALYTICS: 'false' }

/** The application of a section, made by its commands and with the files of its example, in a folder that is removed again. */
async function makeApplication(section: string, serviceUrl: string): Promise<string> {
  const folder = temporaryFolder()
  const [, text = ''] = page.split(`\n## ${section}\n`)
  const commands = /<!-- executed by test\/examples -->\n```sh\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
  const install = `npm install --no-audit --no-fund ${await packPackage()}`
  const lines = commands.replace('npm install countersign', install)
  await run('bash', ['-euo', 'pipefail', '-c', lines], { cwd: folder, env: environment, timeout: 10 * minuteMs })
  const application = join(folder, 'tulip-shop')
  const files = await filesIn(`examples/${section.toLowerCase()}`)
  const own = [...files].map(([path, text]) => [path, text.replace('https://auth.shop.example', serviceUrl)] as const)
  await writeFiles(application, new Map(own))
  return application
}

const frameworks = [
  { section: 'Vue', scripts: ['build'], output: 'dist' },
  { section: 'Svelte', scripts: ['check', 'build'], output: 'dist' },
  { section: 'Angular', scripts: ['build'], output: 'dist/tulip-shop/browser' },
]

describe('docs/frameworks.md', () => {
  const browser = useBrowser()

  test.each(frameworks)(
    'the application of $section passes its own checks, shows the element, and learns of a sign-in by its event',
    async ({ section, scripts, output }) => {
      let built = ''
      const origin = await serveFolder(() => built)
      const { url } = await startService({ trustedOrigins: [origin], pages: { demoWallet: true } })
      const application = await makeApplication(section, url)
      built = join(application, output)
      for (const script of scripts) {
        const options = { cwd: application, env: environment, timeout: 10 * minuteMs }
        const { stdout, stderr } = await run('npm', ['run', script], options)
        // Angular says so of a library of the demo wallet, which is loaded where it is offered.
        expect(`${stdout}${stderr}`.replace(/WARNING.*'tweetnacl'.*is not ESM/, '')).not.toMatch(/\bwarn(ing)?\b/i)
      }
      const { page: tab, trail } = await browser.open()
      await tab.goto(origin)
      await tab.getByRole('img', { name: 'QR code for your phone' }).waitFor()
      await tab.getByRole('button', { name: 'Use a wallet on this device' }).click()
      await tab.getByRole('button', { name: 'Demo wallet' }).click()
      await tab.getByText(/^Signed in as NQ/).waitFor()
      expect(await tab.locator('countersign-sign-in').count()).toBe(0)
      await tab.reload()
      await tab.getByText(/^Signed in as NQ/).waitFor()
      expect(trail.faults).toEqual([])
    },
    20 * minuteMs,
  )
})
