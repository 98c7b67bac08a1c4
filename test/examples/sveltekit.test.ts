import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import { signInClients } from '../support/clients.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { orderClients } from '../support/orders.ts'
import { freePort } from '../support/redis-server.ts'
import { root } from '../types/emit.ts'

const run = promisify(execFile)
const minuteMs = 60_000

/** The environment of npm and of SvelteKit: on the Node that runs this test. */
const environment = {
  ...process.env,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  NODE_ENV: undefined,
}

/** The files of docs/mounting.md that name themselves in their first line. */
async function documented(): Promise<Map<string, string>> {
  const page = await readFile(join(root, 'docs/mounting.md'), 'utf8')
  const blocks = page.matchAll(/```(?:ts|js)\n\/\/ ((?:src|vite)[^\n]*)\n([\s\S]*?)```/g)
  return new Map([...blocks].map(([, path = '', text = '']) => [path, text]))
}

test(
  'an application of SvelteKit 3.2 as docs/mounting.md describes it signs in, and completes an order with its events',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-sveltekit-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const files = await documented()
    expect([...files.keys()].sort()).toEqual([
      'src/lib/server/countersign.ts',
      'src/routes/api/auth/[...path]/+server.ts',
      'src/routes/cross-device/[...path]/+server.ts',
      'src/routes/pages/[...path]/+server.ts',
      'vite.config.js',
    ])
    files.set('package.json', '{"private":true,"type":"module"}')
    files.set('tsconfig.json', '{"extends":"$app/tsconfig"}')
    files.set(
      'src/app.html',
      '<!doctype html><html><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>\n',
    )
    files.set('src/routes/+page.svelte', '<p>The application</p>\n')
    for (const [path, text] of files) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), text)
    }
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
    onTestFinished(async () => {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    })
    const page = async (): Promise<string> => await (await fetch(url)).text()
    await expect.poll(() => page().catch(() => ''), { timeout: minuteMs }).toContain('The application')
    await signInWith(signInClients.REST!(url))
    await completeOrder(orderClients.REST!(url))
    const approval = await fetch(`${url}/cross-device/claim/0123456789abcdefABCDEF`)
    const [, asset = ''] = /src="(\/pages\/[^"]+)"/.exec(await approval.text()) ?? []
    expect((await fetch(url + asset)).status).toBe(200)
  },
  15 * minuteMs,
)
