import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { putClient, startNotes } from '../docs/mcp-server.ts'
import { startInternet } from '../support/internet.ts'
import { signIn } from './flows.ts'
import { applicationPage, serveSite } from './other-site.ts'
import { hasBrowser, provokes, useBrowser } from './support.ts'

const internet = await startInternet()

async function clientScript(): Promise<string> {
  const entry = fileURLToPath(new URL('mcp-client.ts', import.meta.url))
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: 'esm', write: false })
  return String(outputFiles[0]?.text)
}

describe.skipIf(!hasBrowser)('a page of another origin', () => {
  const browser = useBrowser()

  test('signs in at the server of docs/mcp.md as a client of its own, and calls it', async () => {
    // The first call, which has no token.
    provokes(/401/)
    const { url, resource } = await startNotes()
    const site = await serveSite(applicationPage, await clientScript())
    const { clientId } = putClient(internet, { redirect_uris: [`${site.url}/`] })
    const { page } = await browser.open()
    await signIn(page, url)
    await page.goto(`${site.url}/?${new URLSearchParams({ server: resource, client: clientId })}`)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByText(clientId).waitFor()
    const said = JSON.parse((await page.textContent('body')) ?? '')
    expect(said).toEqual({ clientId, userId: expect.stringMatching(/^usr_/) })
  })
})
