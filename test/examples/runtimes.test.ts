import { spawn } from 'node:child_process'
import { cp, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import { useBrowser } from '../browser/support.ts'
import { signInClients } from '../support/clients.ts'
import { killAtEnd, run } from '../support/command.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { orderClients } from '../support/orders.ts'
import { freePort } from '../support/redis-server.ts'
import { root } from '../support/repository.ts'
import { writeFiles } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { environment, minuteMs } from './tools.ts'

const bun = `@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : 'x64'}`
const deno = `@deno/${process.platform}-${process.arch}-glibc`

interface Runtime {
  /** Packages that are installed beside Countersign. */
  readonly packages: readonly string[]
  /** Files besides those of examples/mounting and examples/react-router. */
  readonly files?: Readonly<Record<string, string>>
  /** Arguments of Node that build the application. */
  readonly build?: readonly string[]
  /** The program that serves it, by its path or by that in node_modules, and its arguments. */
  readonly start: readonly [program: string, ...parameters: string[]]
}

const reactRouterVersion = '8.4.0'

const runtimes: Readonly<Record<string, Runtime>> = {
  Bun: { packages: [`${bun}@1.4.5`], start: [`${bun}/bin/bun`, 'bun.ts'] },
  Deno: { packages: [`${deno}@2.9.6`], start: [`${deno}/deno`, 'run', '--allow-all', 'deno.ts'] },
  'React Router': {
    packages: [
      ...['@react-router/dev', '@react-router/node', '@react-router/serve', 'react-router'].map(
        (name) => `${name}@${reactRouterVersion}`,
      ),
      'isbot@5',
      'react@19',
      'react-dom@19',
      'vite@8',
    ],
    files: {
      'vite.config.ts': `import { reactRouter } from '@react-router/dev/vite'
export default { plugins: [reactRouter()] }
`,
      'app/root.tsx': `import { Outlet } from 'react-router'
export default () => <html lang="en"><body><Outlet /></body></html>
`,
      'app/routes/home.tsx': 'export default () => <p>The application</p>\n',
    },
    build: ['node_modules/@react-router/dev/bin.cjs', 'build'],
    start: [process.execPath, 'node_modules/@react-router/serve/bin.cjs', 'build/server/index.js'],
  },
}

describe('fetch', () => {
  const browser = useBrowser()

  test.each(Object.entries(runtimes))(
    'in %s: a person reads the pages and signs in, applications get JSON, an order’s events come one by one',
    async (_, { packages, files = {}, build, start: [program, ...parameters] }) => {
      const folder = temporaryFolder()
      await writeFile(join(folder, 'package.json'), '{"private":true,"type":"module"}')
      for (const example of ['mounting', 'react-router']) {
        await cp(join(root, 'examples', example), folder, { recursive: true })
      }
      await writeFiles(folder, new Map(Object.entries(files)))
      // Without scripts: the programs of Bun and Deno are files of their packages.
      const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', await packPackage(), ...packages]
      await run('npm', install, { cwd: folder, env: environment })
      if (build) await run(process.execPath, [...build], { cwd: folder, env: environment, timeout: 5 * minuteMs })
      const port = await freePort()
      const url = `http://localhost:${port}`
      const child = spawn(resolve(folder, 'node_modules', program), parameters, {
        cwd: folder,
        env: { ...environment, APP_URL: url, HOST: 'localhost', PORT: String(port) },
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      killAtEnd(child, 'SIGKILL')
      const application = async () => await (await fetch(url)).text()
      await expect.poll(() => application().catch(() => ''), { timeout: minuteMs }).toContain('The application')

      const { page, trail } = await browser.open()
      const heading = (name: string) => page.getByRole('heading', { name })
      await page.goto(`${url}/c/0123456789abcdefABCDEF`)
      await heading('This link is incomplete').waitFor()
      await page.goto(`${url}/api/auth/sign-in?returnTo=/api/auth/account`)
      await heading('Sign in').waitFor()
      await page.getByRole('button', { name: 'Use a wallet on this device' }).click()
      await page.getByRole('button', { name: 'Demo wallet' }).click()
      await heading('Your account').waitFor()
      expect(trail.faults).toEqual([])

      await signInWith(signInClients.REST!(url))
      await completeOrder(orderClients.REST!(url))

      const form = { method: 'POST', body: new URLSearchParams({ grant_type: 'authorization_code' }) }
      for (const [path, init, status, code] of [
        ['/api/auth/sessions', {}, 401, 'SESSION_REQUIRED'],
        ['/api/auth/wallet/nonce', { method: 'POST', body: '{' }, 400, 'INVALID_REQUEST'],
        // What an application sends to the issuer, which is off here.
        ['/api/auth/oidc/token', form, 404, 'ROUTE_NOT_FOUND'],
      ] as const) {
        const headers = typeof init.body === 'string' ? { 'content-type': 'application/json' } : {}
        const answer = await fetch(url + path, { ...init, headers })
        expect([answer.status, (await answer.json()).code]).toEqual([status, code])
      }
    },
    10 * minuteMs,
  )
})
