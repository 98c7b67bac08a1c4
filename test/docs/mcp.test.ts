import { spawn } from 'node:child_process'
import { on } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import * as oauth from 'oauth4webapi'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loopback } from '../oidc/documents.ts'
import { Browser, contentOf, decide } from '../oidc/support.ts'
import { startInternet } from '../support/internet.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { putClient, startNotes } from './mcp-server.ts'

const internet = await startInternet()
const resource = 'https://notes.example/mcp'

/** The issuer and the server of the page. The server's own address is not that of the resource, as behind a proxy. */
async function start() {
  const { url, server } = await startNotes(resource)
  const { clientId } = putClient(internet)
  const browser = new Browser(url)
  const { session } = await browser.signIn()
  return { url, server, clientId, browser, session }
}

test('oauth4webapi finds the issuer through the server, and gets a token that the server takes', async () => {
  const { url, server, clientId, browser, session } = await start()
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
    const { server, clientId, browser, session } = await start()
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
