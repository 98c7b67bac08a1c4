import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCountersignClient } from '../../src/client/index.ts'
import { hasChromium, scan, useBrowser } from '../browser/support.ts'
import { fetchFrom, MapStorage, pageWallet } from '../client/support.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { makeProject, root, tsc } from '../types/emit.ts'

const run = promisify(execFile)
const types: Readonly<Record<string, string>> = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript' }

/** Serves what the application is built to. Its files are there once it is built. */
async function serveFolder(folder: string): Promise<string> {
  const server = createServer(async ({ url = '/' }, response) => {
    const path = url === '/' ? '/index.html' : url
    const file = await readFile(join(folder, path)).catch(() => undefined)
    response.writeHead(file === undefined ? 404 : 200, { 'content-type': types[extname(path)] ?? 'text/plain' })
    response.end(file)
  }).listen(0, 'localhost')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://localhost:${(server.address() as AddressInfo).port}`
}

describe.runIf(hasChromium)('the React application', () => {
  const browser = useBrowser()

  test('is checked and built from a copy, with the package installed, and signs in with a phone', async () => {
    const folder = await makeProject()
    await cp(join(root, 'examples/react'), folder, { recursive: true })
    const origin = await serveFolder(join(folder, 'dist'))
    const { url } = await startService({ trustedOrigins: [origin] })
    const client = await readFile(join(folder, 'client.ts'), 'utf8')
    expect(client).toContain("'http://localhost:8080'")
    await writeFile(join(folder, 'client.ts'), client.replace('http://localhost:8080', url))
    // Its script `build`.
    const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    expect(scripts.build).toBe('tsc && vite build')
    await run(process.execPath, [tsc], { cwd: folder })
    const vite = join(root, 'node_modules/vite/bin/vite.js')
    const env = { ...process.env, NODE_ENV: undefined }
    await run(process.execPath, [vite, 'build'], { cwd: folder, env, timeout: 60_000 })

    const { page, trail } = await browser.open()
    await page.goto(origin)
    const code = page.getByRole('img', { name: 'QR code for your phone' })
    await code.waitFor()
    const wallet = makeWallet()
    const phone = createCountersignClient({
      baseUrl: url,
      storage: new MapStorage(),
      fetch: fetchFrom(url),
      wallet: pageWallet(wallet),
    })
    const claim = await phone.claimOrder(await scan(code))
    await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
    await page.getByText(`Signed in as ${wallet.address}`).waitFor()
    await page.reload()
    await page.getByText(`Signed in as ${wallet.address}`).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await code.waitFor()
    expect(trail.faults).toEqual([])
  }, 240_000)
})
