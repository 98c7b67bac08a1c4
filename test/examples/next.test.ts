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

/** The environment of npm and of Next.js: on the Node that runs this test, and without messages to its maker. */
const environment = {
  ...process.env,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  NODE_ENV: undefined,
  NEXT_TELEMETRY_DISABLED: '1',
}

/** The files of docs/mounting.md that name themselves in their first line. */
async function documented(): Promise<Map<string, string>> {
  const page = await readFile(join(root, 'docs/mounting.md'), 'utf8')
  const blocks = page.matchAll(/```(?:ts|js)\n\/\/ ((?:lib|app|next)[^\n]*)\n([\s\S]*?)```/g)
  return new Map([...blocks].map(([, path = '', text = '']) => [path, text]))
}

test(
  'an application of Next.js as docs/mounting.md describes it signs in, and completes an order with its events',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-next-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const application = join(folder, 'application')
    const files = await documented()
    expect([...files.keys()].sort()).toEqual([
      'app/api/auth/[...path]/route.ts',
      'app/cross-device/[...path]/route.ts',
      'app/pages/[...path]/route.ts',
      'lib/countersign.ts',
      'next.config.mjs',
    ])
    files.set('package.json', '{"private":true,"type":"module"}')
    files.set(
      'app/layout.tsx',
      'export default function Layout({ children }: { children: React.ReactNode }) {\n  return <html lang="en"><body>{children}</body></html>\n}\n',
    )
    files.set('app/page.tsx', 'export default function Page() {\n  return <p>The application</p>\n}\n')
    for (const [path, text] of files) {
      await mkdir(dirname(join(application, path)), { recursive: true })
      await writeFile(join(application, path), text)
    }
    const packages = ['next', 'react', 'react-dom', 'typescript@5', '@types/react', '@types/node']
    const install = ['install', '--no-audit', '--no-fund', ...packages, await packPackage()]
    await run('npm', install, { cwd: application, env: environment })
    const next = join(application, 'node_modules/next/dist/bin/next')
    await run(process.execPath, [next, 'build'], { cwd: application, env: environment, timeout: 10 * minuteMs })

    const port = await freePort()
    const url = `http://localhost:${port}`
    const child = spawn(process.execPath, [next, 'start', '--port', String(port), '--hostname', 'localhost'], {
      cwd: application,
      env: { ...environment, APP_URL: url },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    onTestFinished(async () => {
      const exited = once(child, 'exit')
      child.kill()
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
