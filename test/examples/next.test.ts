import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import { addressOf, reviewOnPhone } from '../browser/flows.ts'
import { useBrowser } from '../browser/support.ts'
import { signInClients } from '../support/clients.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { orderClients } from '../support/orders.ts'
import { freePort } from '../support/redis-server.ts'
import { namedFiles, writeFiles } from '../support/snippets.ts'

const run = promisify(execFile)
const minuteMs = 60_000

const folder = await mkdtemp(join(tmpdir(), 'countersign-next-'))
const application = join(folder, 'application')
const next = join(application, 'node_modules/next/dist/bin/next')

/**
 * The environment of npm and of Next.js: on the Node that runs this test, without messages to its maker, and without the
 * fonts that the new application downloads from Google at each build.
 */
const environment = {
  ...process.env,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  NODE_ENV: undefined,
  NEXT_TELEMETRY_DISABLED: '1',
  NEXT_FONT_GOOGLE_MOCKED_RESPONSES: join(folder, 'fonts.cjs'),
}
const fonts = ['Geist', 'Geist+Mono'].map((name) => [
  `https://fonts.googleapis.com/css2?family=${name}:wght@100..900&display=swap`,
  `@font-face { font-family: '${name}'; font-style: normal; src: local('Arial') }`,
])

/** The application as create-next-app makes it by default, with the files of the documents and with nothing else. */
beforeAll(async () => {
  await writeFile(
    environment.NEXT_FONT_GOOGLE_MOCKED_RESPONSES,
    `module.exports = ${JSON.stringify(Object.fromEntries(fonts))}`,
  )
  const options = { cwd: folder, env: environment }
  await run('npx', ['--yes', 'create-next-app@latest', 'application', '--yes', '--use-npm'], options)
  const install = ['install', '--no-audit', '--no-fund', 'next@latest', await packPackage()]
  await run('npm', install, { ...options, cwd: application })
  for (const document of ['docs/mounting.md', 'docs/react.md']) {
    const files = await namedFiles(document)
    // Those of React Router begin with app, too.
    await writeFiles(application, new Map([...files].filter(([path]) => /^(app|lib)\/(?!routes)/.test(path))))
  }
  await run(process.execPath, [next, 'build'], { cwd: application, env: environment, timeout: 10 * minuteMs })
}, 20 * minuteMs)
afterAll(() => rm(folder, { recursive: true, force: true }))

const heading = (page: Page, name: string) => page.getByRole('heading', { name })

describe('Next.js', () => {
  const browser = useBrowser()

  test.each(['start', 'dev'])(
    'with next %s, the application of the documents signs in on this device and with a phone, and has the service’s pages',
    async (command) => {
      const port = await freePort()
      const url = `http://localhost:${port}`
      const child = spawn(process.execPath, [next, command, '--port', String(port), '--hostname', 'localhost'], {
        cwd: application,
        env: { ...environment, APP_URL: url },
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      onTestFinished(async () => {
        const exited = once(child, 'exit')
        child.kill()
        await exited
      })
      // The development server compiles at the first request, for longer than a page waits if the machine is busy.
      const answers = (path: string) =>
        fetch(url + path).then(
          ({ status }) => status < 500,
          () => false,
        )
      for (const path of ['/', '/api/auth/options', '/c/0123456789abcdefABCDEF', '/cross-device/x', '/pages/x']) {
        await expect.poll(() => answers(path), { timeout: 4 * minuteMs }).toBe(true)
      }
      const { page, trail } = await browser.open()
      page.setDefaultTimeout(minuteMs)

      // On this device, with the demo wallet. What says who is signed in is a server component.
      await page.goto(url)
      await heading(page, 'The tulip shop').waitFor()
      const code = page.getByRole('img', { name: 'QR code for your phone' })
      await code.waitFor()
      await page.getByRole('button', { name: 'Use a wallet on this device' }).click()
      await page.getByRole('button', { name: 'Demo wallet' }).click()
      await page.getByText(/^Signed in as NQ/).waitFor()
      await page.reload()
      await page.getByText(/^Signed in as NQ/).waitFor()
      await page.getByRole('link', { name: 'Your account' }).click()
      await heading(page, 'Your account').waitFor()
      await page.goto(url)
      await page.getByRole('button', { name: 'Sign out' }).click()

      // With a phone, which opens the approval page.
      await code.waitFor()
      const { page: phone, trail: phoneTrail } = await browser.open()
      phone.setDefaultTimeout(minuteMs)
      await reviewOnPhone(phone, code)
      const address = await addressOf(phone)
      await phone.getByRole('button', { name: 'Approve' }).click()
      await page.getByText(`Signed in as ${address}`).waitFor()

      await phone.goto(`${url}/api/auth/sign-in`)
      await heading(phone, 'Sign in').waitFor()
      expect([...trail.faults, ...phoneTrail.faults]).toEqual([])

      expect(await (await fetch(`${url}/.well-known/jwks.json`)).json()).toMatchObject({ code: 'ROUTE_NOT_FOUND' })
      await signInWith(signInClients.REST!(url))
      await completeOrder(orderClients.REST!(url))
    },
    20 * minuteMs,
  )
})
