import { spawn } from 'node:child_process'
import { on } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { hasBrowser, useBrowser } from '../browser/support.ts'
import { listen } from '../support/listening.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { trustedAuthority } from '../support/tls.ts'
import { clientSecret, folderWith, minuteMs, programs, startIssuer } from './applications.ts'
import { Browser, decide } from './support.ts'

const isComplete = ['npm registry', 'openssl', 'python3-requests-oauthlib'].every(hasPart)

const packages = [
  '@angular/common@22.2.6',
  '@angular/compiler@22.2.6',
  '@angular/core@22.2.6',
  '@angular/platform-browser@22.2.6',
  'angular-oauth2-oidc@22.0.2',
  'oidc-client-ts@3.5.0',
  'react@19.3.1',
  'react-dom@19.3.1',
  'react-oauth2-code-pkce@1.24.0',
  'rxjs@7.8.2',
]
const pages = ['angular', 'react', 'oidc-client-ts']

const authority = isComplete ? await trustedAuthority() : undefined
const folder = isComplete ? await folderWith(packages, join(programs, 'refreshing')) : ''
for (const page of isComplete ? pages : []) {
  const [entry, outfile] = [join(folder, `${page}.js`), join(folder, `${page}.bundle.js`)]
  await build({ entryPoints: [entry], outfile, bundle: true, format: 'esm', logLevel: 'error' })
}
vi.setConfig({ testTimeout: 2 * minuteMs })

const asked = 'openid profile email offline_access'

/** What of that a client gets. */
function grantedOf({ oidc }: CountersignOptions, prompt: string | undefined): string[] {
  const email = oidc?.email === undefined ? [] : ['email']
  const offline = prompt === undefined ? [] : ['offline_access']
  return ['openid', 'profile', ...email, ...offline].sort()
}

const settings: readonly (readonly [name: string, CountersignOptions, prompt: string | undefined])[] = [
  ['without e-mail', {}, undefined],
  ['without e-mail, with prompt=consent', {}, 'consent'],
  ['with e-mail', { oidc: { email: '{user_id}@users.example' } }, undefined],
  ['with e-mail and prompt=consent', { oidc: { email: '{user_id}@users.example' } }, 'consent'],
]

const publicClient = { token_endpoint_auth_method: 'none', grant_types: ['authorization_code', 'refresh_token'] }

/** A program that writes an address, and what reads its lines. */
function startProgram([command, ...args]: readonly [string, ...string[]], environment: Record<string, string>) {
  const env = { ...process.env, REQUESTS_CA_BUNDLE: authority!.cert, SSL_CERT_FILE: authority!.cert, ...environment }
  const child = spawn(command, args, {
    cwd: mkdtempSync(join(folder, 'run-')),
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill())
  const lines = on(createInterface(child.stdout), 'line', { close: ['close'] })
  const readLine = async (): Promise<string> => {
    const { value, done } = await lines.next()
    if (done === true) throw new Error('the program has ended')
    return value[0]
  }
  return { readLine, write: (line: string) => void child.stdin.write(`${line}\n`) }
}

describe.skipIf(!isComplete).each(settings)('%s', (_name, options, prompt) => {
  describe.skipIf(!hasBrowser)('a page', () => {
    const browser = useBrowser()

    test.each(pages)('of %s refreshes with the scopes that it asked for', async (name) => {
      const { cert, key } = await authority!.issue('localhost')
      let issuer = ''
      const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, ({ url }, response) => {
        if (url === '/settings.json') {
          const content = { issuer, clientId: 'page', scope: asked, prompt }
          return response.setHeader('content-type', 'application/json').end(JSON.stringify(content))
        }
        if (url !== '/page.js') {
          const html = '<!doctype html><title>A page</title><body><script type="module" src="/page.js"></script>'
          return response.setHeader('content-type', 'text/html').end(html)
        }
        response.setHeader('content-type', 'text/javascript').end(readFileSync(join(folder, `${name}.bundle.js`)))
      })
      const own = `https://localhost:${await listen(server)}`
      const metadata = { client_id: 'page', redirect_uris: [`${own}/`], ...publicClient }
      issuer = await startIssuer(authority!, options, { metadata })
      const { page } = await browser.open({ ignoreHTTPSErrors: true })
      const elsewhere = new Browser(issuer)
      await elsewhere.signIn()
      const kept = [...elsewhere.cookies.values()].map(({ name, value }) => ({
        name,
        value,
        url: issuer,
        secure: true,
      }))
      await page.context().addCookies(kept)
      await page.goto(own)
      await page.getByRole('button', { name: 'Allow' }).click()
      await expect.poll(() => page.title(), { timeout: 30_000 }).toMatch(/^\{/)
      const { scope, ...others } = JSON.parse(await page.title())
      expect({ ...others, scope: scope?.split(' ').sort() }).toMatchObject({
        status: 200,
        scope: grantedOf(options, prompt),
      })
      // That library asks for what it got.
      if (name !== 'oidc-client-ts') expect(others.asked).toBe(asked)
    })
  })

  test('oauthlib refreshes with the scopes that it asked for', async () => {
    const redirectUri = 'https://app.example/callback'
    const client = { client_id: 'app', client_secret: clientSecret, redirect_uris: [redirectUri] }
    const metadata = { ...client, grant_types: publicClient.grant_types }
    const issuer = await startIssuer(authority!, options, { metadata, pkce: 'optional' })
    const args = [issuer, 'app', clientSecret, redirectUri, asked, ...(prompt === undefined ? [] : [prompt])]
    const program = startProgram([systemPython, join(folder, 'requests-oauthlib.py'), ...args], {
      OAUTHLIB_RELAX_TOKEN_SCOPE: '1',
    })
    const browser = new Browser(issuer)
    await browser.signIn()
    program.write((await decide(browser, await browser.open(await program.readLine()))).href)
    const { asked: body, scope } = JSON.parse(await program.readLine())
    expect(new URLSearchParams(body).get('scope')).toBe(asked)
    expect(scope.sort()).toEqual(grantedOf(options, prompt))
  })
})
