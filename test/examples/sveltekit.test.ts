import { spawn } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import { useBrowser } from '../browser/support.ts'
import { signInClients } from '../support/clients.ts'
import { killAtEnd, run } from '../support/command.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { orderClients } from '../support/orders.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { writeFiles } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { environment, minuteMs } from './tools.ts'

describe('SvelteKit', () => {
  const browser = useBrowser()

  test(
    'an application of SvelteKit 3.2 as examples/sveltekit has it signs in, and completes an order with its events',
    async () => {
      const folder = temporaryFolder()
      await cp(join(root, 'examples/sveltekit'), folder, { recursive: true })
      const files = new Map<string, string>()
      // What the page says to add for the issuer.
      const csrf = "csrf: { trustedOrigins: ['*'] }"
      expect(await readFromRoot('docs/mounting.md')).toContain(csrf)
      const config = await readFromRoot('examples/sveltekit/vite.config.js')
      files.set('vite.config.js', config.replace('adapter: adapter()', `$&, ${csrf}`))
      files.set('package.json', '{"private":true,"type":"module"}')
      files.set('tsconfig.json', '{"extends":"$app/tsconfig"}')
      files.set(
        'src/app.html',
        '<!doctype html><html><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>\n',
      )
      files.set('src/routes/+page.svelte', '<p>The application</p>\n')
      await writeFiles(folder, files)
      const tools = [
        '@sveltejs/kit@3.2',
        '@sveltejs/adapter-node@6',
        '@sveltejs/vite-plugin-svelte@7',
        'svelte@5',
        'vite@8',
        'typescript@6',
      ]
      const install = ['install', '--no-audit', '--no-fund']
      await run('npm', [...install, await packPackage()], { cwd: folder, env: environment })
      await run('npm', [...install, '--save-dev', ...tools], { cwd: folder, env: environment })
      const vite = join(folder, 'node_modules/vite/bin/vite.js')
      const port = await freePort()
      const url = `http://localhost:${port}`
      const env = { ...environment, APP_URL: url, HOST: 'localhost', PORT: String(port) }
      await run(process.execPath, [vite, 'build'], { cwd: folder, env, timeout: 10 * minuteMs })

      const child = spawn(process.execPath, ['build'], {
        cwd: folder,
        env,
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      killAtEnd(child, 'SIGKILL')
      const page = async (): Promise<string> => await (await fetch(url)).text()
      await expect.poll(() => page().catch(() => ''), { timeout: minuteMs }).toContain('The application')
      await signInWith(signInClients.REST!(url))
      await completeOrder(orderClients.REST!(url))
      const { page: tab } = await browser.open()
      for (const [path, name] of [
        ['/api/auth/sign-in', 'Sign in'],
        ['/c/0123456789abcdefABCDEF', 'This link is incomplete'],
        ['/cross-device/continue/0123456789abcdefABCDEF', 'This link is incomplete'],
      ] as const) {
        await tab.goto(url + path)
        await tab.getByRole('heading', { name }).waitFor()
      }
      expect(await (await fetch(`${url}/.well-known/jwks.json`)).json()).toMatchObject({ code: 'ROUTE_NOT_FOUND' })
      // A form without an Origin, as applications send it to the issuer.
      const form = { method: 'POST', body: new URLSearchParams({ grant_type: 'authorization_code' }) }
      expect((await fetch(`${url}/api/auth/oidc/token`, form)).status).toBe(404)
    },
    15 * minuteMs,
  )
})
