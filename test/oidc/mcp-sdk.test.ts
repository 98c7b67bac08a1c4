import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { blocksOf } from '../docs/blocks.ts'
import { application, TestUser } from '../integrations/approvals/support.ts'
import { startInternet } from '../support/internet.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { folderWith, minuteMs } from './applications.ts'
import { discoverAs, documentOf, json, loopback, startWithDocuments } from './documents.ts'
import { allow, Browser, contentOf, decide, fileWith } from './support.ts'

const isComplete = hasPart('npm registry')
const root = fileURLToPath(new URL('../..', import.meta.url))
const internet = isComplete ? await startInternet() : undefined
const packages = [
  '@modelcontextprotocol/sdk@1.32.2',
  '@modelcontextprotocol/conformance@0.2.0-alpha.12',
  'mcp-remote@0.15.1',
]
const folder = isComplete ? await folderWith(packages) : ''
vi.setConfig({ testTimeout: 2 * minuteMs })

/** Lines that make the server of docs/mcp.md that of the example, whose tools wait for the wallet of a token's user. */
function guardedBy(user: TestUser, serving: string): string {
  const from = (path: string) => JSON.stringify(join(root, path))
  const { startKey, appName } = application
  const known = JSON.stringify({ [user.id]: user.wallets })
  const lines = [
    `import { guardOf } from ${from('examples/approvals/service.ts')}`,
    `import { createApprovals } from ${from('src/integrations/approvals/index.ts')}`,
    `import { guardedServer } from './example.ts'`,
    `const approvals = createApprovals(${JSON.stringify({ url: user.url, startKey, appName, origin: user.url })})`,
    'function guarded({ extra: { userId } }) {',
    `  return guardedServer(guardOf(approvals, { userId, wallets: ${known}[userId] })).server`,
    '}',
  ]
  return [...lines, serving.replace('notes().connect', 'guarded(request.auth).connect')].join('\n')
}

/** mcp-remote as docs/mcp.md lists it. */
const mcpRemote = JSON.parse(await readFile(join(root, 'examples/oidc/mcp/mcp-remote.json'), 'utf8'))

/** The server of docs/mcp.md, at an address of this machine, and its issuer. With `isGuarded`, that of the example. */
async function start(isGuarded = false) {
  const port = await freePort()
  const resource = `http://localhost:${port}/mcp`
  const clients = fileWith({
    clients: [mcpRemote],
    resources: [{ resource, scopes: ['notes:read', 'notes:write'] }],
  })
  const { url } = await startWithDocuments({
    appName: application.appName,
    oidc: { clients },
    orderStartKeys: [`agent=${application.startKey}`],
  })
  const { id, document } = documentOf('sdk')
  internet?.put(
    'sdk',
    json(() => document),
  )
  const browser = new Browser(url)
  const { wallet, token, session } = await browser.signIn()
  const user = new TestUser(url, wallet, { id: session.userId, token })
  const blocks = blocksOf(await readFile(join(root, 'docs/mcp.md'), 'utf8'))
  const guarding = blocks.find(({ language }) => language === 'js')?.text ?? ''
  const serving = await readFile(join(root, 'examples/oidc/mcp/server.mjs'), 'utf8')
  const backend = JSON.stringify(join(root, 'src/integrations/backend/index.ts'))
  await writeFile(
    join(folder, 'guard.mjs'),
    guarding
      .replace('https://auth.example', url)
      .replace('https://notes.example/mcp', resource)
      .replace("'countersign/backend'", backend),
  )
  await copyFile(join(root, 'examples/approvals/agents/server.ts'), join(folder, 'example.ts'))
  const told = serving.replace('3000', `${port}, () => console.log('ready')`)
  await writeFile(join(folder, 'server.mjs'), isGuarded ? guardedBy(user, told) : told)
  const child = spawn(process.execPath, ['server.mjs'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const lines = createInterface(child.stdout)
  await once(lines, 'line')
  /** The id of the next order that a tool waits for. */
  const nextOrder = async (): Promise<string> => {
    for await (const [line] of on(lines, 'line')) {
      const address = / waits for your approval: (.+)/.exec(line)?.[1]
      if (address !== undefined) return String(new URL(address).searchParams.get('order'))
    }
    throw new Error('the server has ended')
  }
  return { url, resource, id, browser, user, nextOrder }
}

/** The part of the SDK that is used here. */
async function loadSdk() {
  const from = async (path: string) =>
    await import(
      /* @vite-ignore */ pathToFileURL(join(folder, 'node_modules/@modelcontextprotocol/sdk/dist/esm', path)).href
    )
  const { Client } = await from('client/index.js')
  const { StdioClientTransport } = await from('client/stdio.js')
  const { StreamableHTTPClientTransport } = await from('client/streamableHttp.js')
  return { Client, StdioClientTransport, StreamableHTTPClientTransport }
}

/** A client of the SDK that the user has let in, and what it keeps. */
async function signInBySdk({ resource, id, browser }: Awaited<ReturnType<typeof start>>) {
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
  onTestFinished(() => client.close())
  return { client, kept }
}

const said = (text: string) => ({ content: [{ type: 'text', text }] })

describe.skipIf(!isComplete)('@modelcontextprotocol/sdk', () => {
  test('signs in to the server of docs/mcp.md by its document, calls a tool, and refreshes', async () => {
    const started = await start()
    const { client, kept } = await signInBySdk(started)
    const who = said(`${started.user.id} by ${started.id}`)
    expect(await client.callTool({ name: 'who' })).toMatchObject(who)
    // One that the server refuses.
    const before = kept.tokens as { refresh_token: string }
    kept.tokens = { ...before, access_token: 'stale' }
    expect(await client.callTool({ name: 'who' })).toMatchObject(who)
    expect((kept.tokens as { refresh_token: string }).refresh_token).not.toBe(before.refresh_token)
  })

  test('signs in to the server of the example, whose tools run once the user has signed the call', async () => {
    const started = await start(true)
    const { user, nextOrder } = started
    const { client } = await signInBySdk(started)
    const transfer = () => client.callTool({ name: 'transfer_money', arguments: { to: 'bakery', amount: 25 } })
    const [declined, refused] = [nextOrder(), transfer()]
    await user.reject(await declined)
    expect(await refused).toMatchObject(said('Not done: declined'))
    const [asked, done] = [nextOrder(), transfer()]
    await user.approve(await asked)
    expect(await done).toMatchObject(said('Transferred 25 to bakery'))
  })
})

describe.skipIf(!isComplete)('mcp-remote', () => {
  // test/package/jobs signs in with the id of a listed client.
  test('as it comes stops, and says that the issuer registers no clients', async () => {
    const { resource } = await start()
    const { Client, StdioClientTransport } = await loadSdk()
    const home = temporaryFolder()
    const program = join(folder, 'node_modules/mcp-remote/dist/proxy.js')
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [program, resource],
      // Without a browser to open.
      env: { PATH: '', HOME: home, MCP_REMOTE_CONFIG_DIR: home },
      stderr: 'pipe',
    })
    const lines = on(createInterface(transport.stderr), 'line', { close: ['close'] })
    const client = new Client({ name: 'agent', version: '1.0.0' })
    onTestFinished(() => client.close())
    client.connect(transport).catch(() => undefined)
    let printed = ''
    for await (const [line] of lines) printed += line
    expect(printed).toContain('does not support dynamic client registration')
  })
})

describe.skipIf(!isComplete)('openid-client, without the SDK', () => {
  test('signs in to the server of the example, too, and the user signs its call', async () => {
    const { resource, id, browser, user, nextOrder } = await start(true)
    const { pathname, origin } = new URL(resource)
    const metadata = await (await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`)).json()
    const config = await discoverAs(metadata.authorization_servers[0], id)
    const asked = { redirect_uri: loopback.used, scope: 'openid notes:read', resource }
    const tokens = await allow({ browser, config }, asked)
    const [order, answer] = [
      nextOrder(),
      fetch(resource, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${tokens.access_token}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'delete_repository', arguments: { name: 'archive' } },
        }),
      }),
    ]
    await user.approve(await order)
    expect(await (await answer).text()).toContain('"text":"Deleted archive"')
  })
})

describe.skipIf(!isComplete)('@modelcontextprotocol/conformance', () => {
  test('of the scenarios for authorization servers, no check fails', async () => {
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
    expect(failed).toEqual([])
  })
})
