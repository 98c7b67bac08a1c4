import { execFile, spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { blocksOf } from '../docs/blocks.ts'
import { startInternet } from '../support/internet.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { documentOf, json, loopback, startWithDocuments } from './documents.ts'
import { Browser, contentOf, decide, fileWith } from './support.ts'

const run = promisify(execFile)
const minuteMs = 60_000
const isComplete = hasPart('npm registry')
const root = fileURLToPath(new URL('../..', import.meta.url))
const internet = isComplete ? await startInternet() : undefined

/** Checks of the conformance suite that the issuer does not pass, each with the reason. The list may only shrink. */
const differences: Readonly<Record<string, string>> = {
  'authorization-code-grant': 'asks for no scope, and a user is never asked to allow nothing',
}

let folder = ''
beforeAll(async () => {
  if (!isComplete) return
  folder = await mkdtemp(join(tmpdir(), 'countersign-mcp-sdk-'))
  await writeFile(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  const packages = ['@modelcontextprotocol/sdk@1.32.2', '@modelcontextprotocol/conformance@0.2.0-alpha.12']
  await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], { cwd: folder })
}, 15 * minuteMs)
afterAll(async () => void (folder && (await rm(folder, { recursive: true, force: true }))))

/** The server of docs/mcp.md, at an address of this machine, and its issuer. */
async function start() {
  const port = await freePort()
  const resource = `http://localhost:${port}/mcp`
  const clients = fileWith({ clients: [], resources: [{ resource, scopes: ['notes:read', 'notes:write'] }] })
  const { url } = await startWithDocuments({ oidc: { clients } })
  const { id, document } = documentOf('sdk')
  internet?.put(
    'sdk',
    json(() => document),
  )
  const blocks = blocksOf(await readFile(join(root, 'docs/mcp.md'), 'utf8'))
  const [guarding = '', serving = ''] = blocks.filter(({ language }) => language === 'js').map(({ text }) => text)
  const backend = JSON.stringify(join(root, 'src/integrations/backend/index.ts'))
  await writeFile(
    join(folder, 'guard.mjs'),
    guarding
      .replace('https://auth.example', url)
      .replace('https://notes.example/mcp', resource)
      .replace("'countersign/backend'", backend),
  )
  await writeFile(join(folder, 'server.mjs'), serving.replace('3000', `${port}, () => console.log('ready')`))
  const child = spawn(process.execPath, ['server.mjs'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  await once(child.stdout, 'data')
  const browser = new Browser(url)
  const { session } = await browser.signIn()
  return { url, resource, id, browser, session }
}

/** The part of the SDK that is used here. */
async function loadSdk() {
  const from = async (path: string) =>
    await import(
      /* @vite-ignore */ pathToFileURL(join(folder, 'node_modules/@modelcontextprotocol/sdk/dist/esm', path)).href
    )
  const { Client } = await from('client/index.js')
  const { StreamableHTTPClientTransport } = await from('client/streamableHttp.js')
  return { Client, StreamableHTTPClientTransport }
}

describe.skipIf(!isComplete)('@modelcontextprotocol/sdk', () => {
  test(
    'signs in to the server of docs/mcp.md by its document, calls a tool, and refreshes',
    async () => {
      const { resource, id, browser, session } = await start()
      const { Client, StreamableHTTPClientTransport } = await loadSdk()
      const kept: Record<string, unknown> = {}
      let opened: URL | undefined
      const provider = {
        redirectUrl: loopback.used,
        clientMetadataUrl: id,
        clientMetadata: { redirect_uris: [loopback.used] },
        clientInformation: () => kept.client,
        saveClientInformation: (client: unknown) => void Object.assign(kept, { client }),
        tokens: () => kept.tokens,
        saveTokens: (tokens: unknown) => void Object.assign(kept, { tokens }),
        codeVerifier: () => kept.verifier,
        saveCodeVerifier: (verifier: unknown) => void Object.assign(kept, { verifier }),
        redirectToAuthorization: (address: URL) => {
          opened = address
        },
      }
      const newTransport = () => new StreamableHTTPClientTransport(new URL(resource), { authProvider: provider })
      const newClient = () => new Client({ name: 'agent', version: '1.0.0' })
      const first = newTransport()
      await expect(newClient().connect(first)).rejects.toThrow()
      const page = await browser.open(String(opened))
      expect(contentOf(page.text)).toMatchObject({ kind: 'consent', scopes: [`notes:read ${resource}`] })
      const answer = await decide(browser, page)
      await first.finishAuth(answer.searchParams.get('code'))
      expect(kept.client).toMatchObject({ client_id: id })
      const client = newClient()
      await client.connect(newTransport())
      const who = { content: [{ type: 'text', text: `${session.userId} by ${id}` }] }
      expect(await client.callTool({ name: 'who' })).toMatchObject(who)
      // One that the server refuses.
      const before = kept.tokens as { refresh_token: string }
      kept.tokens = { ...before, access_token: 'stale' }
      expect(await client.callTool({ name: 'who' })).toMatchObject(who)
      expect((kept.tokens as { refresh_token: string }).refresh_token).not.toBe(before.refresh_token)
      await client.close()
    },
    2 * minuteMs,
  )
})

describe.skipIf(!isComplete)('@modelcontextprotocol/conformance', () => {
  test(
    'of the scenarios for authorization servers, no check fails but those of the list',
    async () => {
      const { url, resource, id, browser } = await start()
      const [port, results] = [await freePort(), join(folder, 'results')]
      const program = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
      const asked = ['--url', url, '--client-id', id, '--resource', resource, '--port', `${port}`, '-o', results]
      const child = spawn(process.execPath, [program, 'authorization', ...asked], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      onTestFinished(() => void child.kill('SIGKILL'))
      const exited = once(child, 'exit')
      for await (const [line] of on(createInterface(child.stdout), 'line', { close: ['close'] })) {
        if (!String(line).startsWith(`${url}/`)) continue
        const opened = await browser.open(line)
        const { address } =
          contentOf(opened.text).kind === 'consent' ? { address: await decide(browser, opened) } : opened
        await fetch(address.origin === url ? `http://127.0.0.1:${port}/callback?error=refused` : address)
      }
      await exited
      const files = (await readdir(results, { recursive: true })).filter((name) => name.endsWith('checks.json'))
      const checks = (
        await Promise.all(files.map(async (file) => JSON.parse(await readFile(join(results, file), 'utf8'))))
      ).flat()
      expect(checks.length).toBeGreaterThanOrEqual(3)
      const failed = checks.filter(({ status }) => status !== 'SUCCESS').map(({ id }) => id)
      expect(failed.sort()).toEqual(Object.keys(differences).sort())
    },
    2 * minuteMs,
  )
})
