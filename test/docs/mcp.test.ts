import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as oauth from 'oauth4webapi'
import { describe, expect, onTestFinished, test } from 'vitest'
import { optionsFromEnvironment } from '../../src/service/config.ts'
import { json, loopback } from '../oidc/documents.ts'
import { Browser, contentOf, decide, fileWith } from '../oidc/support.ts'
import { startInternet } from '../support/internet.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { startService } from '../support/service.ts'
import { blocksOf } from './blocks.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const internet = await startInternet()
const blocks = blocksOf(await readFile(join(root, 'docs/mcp.md'), 'utf8'))
const [clients, document] = blocks.filter(({ language }) => language === 'json').map(({ text }) => text)
const [settings] = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text)
const [guarding] = blocks.filter(({ language }) => language === 'js').map(({ text }) => text)
const resource = 'https://notes.example/mcp'
const clientId = 'https://client.example/oauth/client.json'

/** The issuer and the server of the page. The server's own address is not that of the resource, as behind a proxy. */
async function start() {
  const variables = Object.fromEntries(
    String(settings)
      .trim()
      .split('\n')
      .map((line) => line.split('=', 2) as [string, string]),
  )
  const { publicUrl: _, ...options } = optionsFromEnvironment(variables)
  const { url } = await startService({ ...options, oidc: { ...options.oidc, clients: fileWith(String(clients)) } })
  internet.put(
    'client.example',
    json(() => JSON.parse(String(document))),
  )
  const folder = await mkdtemp(join(tmpdir(), 'countersign-mcp-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'guard.mjs')
  const code = String(guarding)
    .replace('https://auth.example', url)
    .replace("'countersign/backend'", JSON.stringify(join(root, 'src/integrations/backend/index.ts')))
  await writeFile(file, code)
  type Authed = IncomingMessage & { readonly auth: { readonly clientId: string; readonly extra: object } }
  const { guard } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as {
    guard(request: IncomingMessage, response: ServerResponse, next: (request: Authed) => Promise<void>): Promise<void>
  }
  const server = createServer((request, response) => {
    void guard(request, response, async ({ auth: { clientId, extra } }) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ clientId, ...extra }))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const browser = new Browser(url)
  const { session } = await browser.signIn()
  return { url, server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, browser, session }
}

test('oauth4webapi finds the issuer through the server, and gets a token that the server takes', async () => {
  const { url, server, browser, session } = await start()
  const insecure = { [oauth.allowInsecureRequests]: true }
  const refused = await fetch(server, { method: 'POST' })
  expect(refused.status).toBe(401)
  const challenge = refused.headers.get('www-authenticate')
  expect(challenge).toBe(
    'Bearer resource_metadata="https://notes.example/.well-known/oauth-protected-resource/mcp", scope="notes:read"',
  )
  const at = new URL('/.well-known/oauth-protected-resource/mcp', server)
  const metadata = await oauth.processResourceDiscoveryResponse(new URL(resource), await fetch(at))
  const issuer = new URL(String(metadata.authorization_servers?.[0]))
  expect(issuer.href).toBe(new URL(url).href)
  const found = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' })
  const as = await oauth.processDiscoveryResponse(issuer, found)
  expect(as.client_id_metadata_document_supported).toBe(true)

  const client: oauth.Client = { client_id: clientId }
  const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()]
  const asked = new URLSearchParams({
    client_id: clientId,
    redirect_uri: loopback.used,
    response_type: 'code',
    scope: 'notes:read',
    resource,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
  })
  const page = await browser.open(`${as.authorization_endpoint}?${asked}`)
  expect(contentOf(page.text)).toMatchObject({
    client: { name: 'Tulip Agent' },
    documentHost: 'client.example',
    scopes: [`notes:read ${resource}`],
  })
  const answer = oauth.validateAuthResponse(as, client, await decide(browser, page), state)
  const named = { ...insecure, additionalParameters: { resource } }
  const grant = [as, client, oauth.None(), answer, loopback.used, verifier, named] as const
  const response = await oauth.authorizationCodeGrantRequest(...grant)
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, response)
  const called = await oauth.protectedResourceRequest(
    tokens.access_token,
    'POST',
    new URL(server),
    undefined,
    null,
    insecure,
  )
  expect(await called.json()).toEqual({ clientId, userId: session.userId })

  const again = await oauth.refreshTokenGrantRequest(as, client, oauth.None(), String(tokens.refresh_token), insecure)
  expect((await oauth.processRefreshTokenResponse(as, client, again)).access_token).toBeDefined()
  const wrong = await fetch(server, { method: 'POST', headers: { authorization: 'Bearer wrong' } })
  expect([wrong.status, wrong.headers.get('www-authenticate')?.slice(0, 29)]).toEqual([
    401,
    'Bearer error="invalid_token",',
  ])
})

describe.skipIf(!hasPart('python3-authlib'))('Authlib', () => {
  test('walks the same steps', async () => {
    const { server, browser, session } = await start()
    const file = fileURLToPath(new URL('authlib-mcp.py', import.meta.url))
    const child = spawn(systemPython, [file, server, resource, clientId, loopback.used], {
      env: { ...process.env, AUTHLIB_INSECURE_TRANSPORT: '1' },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill())
    const lines = on(createInterface(child.stdout), 'line', { close: ['close'] })
    const readLine = async (): Promise<string> => (await lines.next()).value?.[0] ?? ''
    const answer = await decide(browser, await browser.open(await readLine()))
    child.stdin.write(`${answer.href}\n`)
    expect(JSON.parse(await readLine())).toEqual({
      called: [200, { clientId, userId: session.userId }],
      isRotated: true,
      calledAgain: 200,
    })
  })
})
