import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { dirname, join } from 'node:path'
import { createPackageFromTarballData } from '@arethetypeswrong/core'
import { describe, expect, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import { hasBrowser, provokes, useBrowser } from '../browser/support.ts'
import { run } from '../support/command.ts'
import { listening } from '../support/listening.ts'
import { readFromRoot } from '../support/repository.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const guide = await readFromRoot('docs/script-tag.md')

/** What docs/script-tag.md says to run, in a language. */
function codeIn(language: string): string {
  const [, code = ''] =
    new RegExp(`<!-- executed by test/package -->\n\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(guide) ?? []
  return code
}

/** A folder with the built files where the package has them. */
async function install(): Promise<string> {
  const folder = temporaryFolder()
  const published = createPackageFromTarballData(new Uint8Array(await readFile(await packPackage())))
  const files = published.listFiles().filter((file) => /\/countersign\/(package\.json|dist\/client\/.*)$/.test(file))
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, file), published.readFile(file))
  }
  return folder
}

test('the documented way to find the files leads to those that the page names', async () => {
  const folder = await install()
  await writeFile(join(folder, 'find.mjs'), `${codeIn('ts')}\nconsole.log(folder)`)
  const { stdout } = await run(process.execPath, ['find.mjs'], { cwd: folder })
  const integrity = JSON.parse(await readFile(join(stdout.trim(), 'integrity.json'), 'utf8'))
  const documented = [...guide.matchAll(/^- `(countersign-[^`]+\.js)`: /gm)].map(([, name]) => name)
  const names = Object.keys(integrity).map((name) => name.replace(/-[0-9a-f]{8}\.js$/, '-….js'))
  expect(documented.toSorted()).toEqual(names.toSorted())
})

/**
 * Copies the files as documented and serves a page with the element. The files whose names match are altered on the
 * way.
 */
async function servePage(altered?: RegExp): Promise<string> {
  const folder = await install()
  await run('sh', ['-c', codeIn('sh')], { cwd: folder })
  const files = join(folder, 'public/countersign')
  const integrity: Record<string, string> = JSON.parse(await readFile(join(files, 'integrity.json'), 'utf8'))
  const onDemand = Object.keys(integrity).find((name) => name.includes('-device-')) ?? ''
  const importMap = { integrity: { [`/countersign/${onDemand}`]: integrity[onDemand] } }
  const server = createServer(async ({ url = '' }, response) => {
    if (url.startsWith('/countersign/')) {
      // As most servers do, it serves the same file whatever the query.
      const name = url.replace('/countersign/', '').replace(/\?.*/, '')
      const script = await readFile(join(files, name), 'utf8')
      response.setHeader('content-type', 'text/javascript').end(altered?.test(name) ? `${script};0` : script)
    } else {
      response.setHeader('content-type', 'text/html').end(`<!doctype html>
        <script type="importmap">${JSON.stringify(importMap)}</script>
        <script type="module" src="/countersign/countersign-sign-in.js" integrity="${integrity['countersign-sign-in.js']}"></script>
        <countersign-sign-in base-url="${service}"></countersign-sign-in>`)
    }
  })
  const origin = await listening(server, 'localhost')
  const { url: service } = await startService({ trustedOrigins: [origin] })
  return origin
}

describe.runIf(hasBrowser)('a page without a bundler', () => {
  const browser = useBrowser()

  test('has the element, and what it loads on demand, from the copied files', async () => {
    const { page } = await browser.open()
    await page.goto(await servePage())
    await page.getByRole('img', { name: 'QR code for your phone' }).waitFor()
    await page.getByRole('button', { name: 'Use a wallet on this device' }).click()
    await page.getByText('No wallet extension found. You can still use:').waitFor()
  })

  test('runs no file that differs from the one whose integrity the package names', async () => {
    provokes(/integrity/)
    const { page } = await browser.open()
    const refused = () =>
      page.waitForEvent('console', (message) => message.type() === 'error' && /integrity/i.test(message.text()))
    const withoutElement = refused()
    await page.goto(await servePage(/^countersign-sign-in\.js$/))
    expect((await withoutElement).text()).toContain('countersign-sign-in.js')
    expect(await page.evaluate(() => customElements.get('countersign-sign-in') === undefined)).toBe(true)

    const withoutWallets = refused()
    await page.goto(await servePage(/^countersign-device-sign-in-/))
    await page.getByRole('button', { name: 'Use a wallet on this device' }).click()
    expect((await withoutWallets).text()).toContain('countersign-device-sign-in-')
    await page.getByText('The wallets couldn’t be loaded. Try again.').waitFor()
  })
})
