import { type ChildProcess, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { phoneClient } from '../browser/client/phone.ts'
import { hasBrowser, scan, useBrowser } from '../browser/support.ts'
import { killAtEnd } from '../support/command.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { makeWallet } from '../support/wallet.ts'
import { manifestOf, root } from '../types/emit.ts'
import { makeProject, type Project, pnpm } from './projects.ts'

const { devDependencies } = await manifestOf()

/** Newer versions of what builds it may have warnings that are new. */
const versions = {
  '@vitejs/plugin-react': '6.3.0',
  typescript: devDependencies.typescript,
  vite: (await manifestOf('vite')).version,
}

/** Starts a program of a project. It is ended when the test ends. */
function start(
  project: Project,
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): ChildProcess {
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    cwd: project.folder,
    env: { ...project.environment, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  killAtEnd(child)
  return child
}

describe.runIf(hasBrowser && hasPart('npm registry'))('the React application', () => {
  const browser = useBrowser()

  test('is checked and built without a warning in the node_modules of pnpm, and signs in with a phone', async () => {
    const project = await makeProject(pnpm, join(root, 'examples/react'), versions)
    onTestFinished(() => project.remove())
    expect(project.printed).not.toMatch(/\bWARN|deprecated|build script/i)
    const [servicePort, pagePort] = [await freePort(), await freePort()]
    const url = `http://localhost:${servicePort}`
    const origin = `http://localhost:${pagePort}`
    const client = await readFile(join(project.folder, 'client.ts'), 'utf8')
    expect(client).toContain("'http://localhost:8080'")
    await writeFile(join(project.folder, 'client.ts'), client.replace('http://localhost:8080', url))
    const { scripts } = JSON.parse(await readFile(join(project.folder, 'package.json'), 'utf8'))
    expect(scripts.build).toBe('tsc && vite build')
    for (const command of [['tsc'], ['vite', 'build']]) {
      const { stdout, stderr } = await project.run([...pnpm.run, ...command])
      expect(stdout + stderr).not.toMatch(/\(!\)|\[(?!PLUGIN_TIMINGS)[A-Z_]+\]/)
    }

    // Its script `service`, with other ports.
    const trusted = 'http://localhost:8080,http://localhost:5173'
    expect(scripts.service).toBe(`COUNTERSIGN_TRUSTED_ORIGINS=${trusted} countersign`)
    const settings = {
      COUNTERSIGN_TRUSTED_ORIGINS: `http://localhost:${servicePort},${origin}`,
      COUNTERSIGN_STORE: 'sqlite::memory:',
      COUNTERSIGN_DRAIN_SECONDS: '0',
      LOG_LEVEL: 'error',
      PORT: `${servicePort}`,
    }
    start(project, [join(project.folder, 'node_modules/.bin/countersign')], settings)
    const preview = ['preview', '--host', 'localhost', '--port', `${pagePort}`, '--strictPort']
    start(project, [join(project.folder, 'node_modules/.bin/vite'), ...preview], {})
    const answers = (address: string) =>
      fetch(address).then(
        ({ ok }) => ok,
        () => false,
      )
    for (const address of [`${url}/readyz`, origin]) await expect.poll(() => answers(address)).toBe(true)

    const { page, trail } = await browser.open()
    await page.goto(origin)
    const code = page.getByRole('img', { name: 'QR code for your phone' })
    await code.waitFor()
    const wallet = makeWallet()
    const phone = phoneClient(url, wallet)
    const claim = await phone.claimOrder(await scan(code))
    await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
    await page.getByText(`Signed in as ${wallet.address}`).waitFor()
    await page.reload()
    await page.getByText(`Signed in as ${wallet.address}`).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await code.waitFor()
    expect(trail.faults).toEqual([])
  }, 300_000)
})
