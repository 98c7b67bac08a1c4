import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { createServer, get, type IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { hasBrowser, provokes, useBrowser } from '../browser/support.ts'
import { listen } from '../support/listening.ts'
import { hasPart } from '../support/optional.ts'
import { startProxy } from '../support/proxy-process.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot } from '../support/repository.ts'
import { startService } from '../support/service.ts'
import { clientsFile, shop } from './support.ts'

const read = async (name: string): Promise<string> => await readFromRoot(`examples/oidc/${name}`)
const host = await read('apache.conf')
const [, behindProxy = ''] = /^# (OIDCXForwardedHeaders .*)$/m.exec(host) ?? []
const secret = 'a-secret-that-Apache-and-the-issuer-share'

/** An application that answers with the headers that it gets. */
async function startApplication(): Promise<number> {
  const server = createServer(({ headers }, response) => response.end(JSON.stringify(headers)))
  return await listen(server)
}

/** Apache with the virtual host of the example, in front of an application. `own` is its address for browsers. */
async function startApache(issuer: string, port: number, own: string, further = '') {
  const application = await startApplication()
  const written = (host + further)
    .replaceAll('https://auth.example', issuer)
    .replaceAll('https://app.example', own)
    .replaceAll('the same secret', secret)
  const modules = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'proxy', 'proxy_http', 'auth_openidc']
  let logs = ''
  const { url } = await startProxy({
    program: 'apache2',
    port,
    configuration(folder) {
      logs = `${folder}/logs`
      mkdirSync(logs)
      return `
        ServerRoot ${folder}
        ServerName localhost
        PidFile ${folder}/pid
        DefaultRuntimeDir ${folder}
        Mutex file:${folder}
        ErrorLog ${logs}/error.log
        LogFormat "%>s %m %U%q"
        TransferLog ${logs}/access.log
        Listen 127.0.0.1:${port}
        ${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
        ${process.getuid?.() === 0 ? 'User www-data\nGroup www-data' : ''}
        ProxyPass / http://127.0.0.1:${application}/
        ${written}
      `
    },
    args: (_folder, file) => ['-X', '-f', file],
  })
  /** Statuses that the issuer got for its logouts. */
  const logoutStatuses = (): readonly number[] => {
    const requests = readFileSync(`${logs}/access.log`, 'utf8').trim().split('\n')
    const logouts = requests.filter((line) => line.endsWith(' POST /private/callback?logout=backchannel'))
    return logouts.map((line) => Number.parseInt(line, 10))
  }
  return { url, logoutStatuses }
}

describe.skipIf(!hasBrowser || !hasPart('libapache2-mod-auth-openidc'))('Apache with mod_auth_openidc', () => {
  const browser = useBrowser()

  test('lets the people of a group in with their wallet, tells the application who they are, and signs them out', async () => {
    provokes(/401 /)
    const port = await freePort()
    const own = `http://127.0.0.1:${port}`
    const written = (await read('apache-client.json')).replaceAll('https://app.example', own)
    const [{ metadata }] = JSON.parse(written.replace('openssl rand -hex 32', secret)).clients
    let groups: string[] = []
    const { url } = await startService({
      oidc: { clients: clientsFile({ metadata, private_network: true }), claims: async () => ({ groups }) },
      pages: { demoWallet: true },
    })
    const apache = await startApache(url, port, own)
    const { page } = await browser.open()

    await page.goto(`${apache.url}/private/`)
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
    await page.getByRole('button', { name: 'wallet on this device' }).click()
    await page.getByRole('button', { name: /demo/i }).click()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${apache.url}/private/**`)
    // The wallet signs in, and is of no group.
    expect(await page.textContent('body')).toContain('Unauthorized')

    groups = ['staff']
    await page.context().clearCookies({ domain: '127.0.0.1' })
    await page.goto(`${apache.url}/private/`)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${apache.url}/private/**`)
    const seen = JSON.parse((await page.textContent('body')) ?? '')
    expect(seen.oidc_claim_groups).toBe('staff')
    expect(seen.oidc_claim_sub).toMatch(/^usr_/)
    expect(seen.oidc_claim_preferred_username).toMatch(/^NQ\d\d\w{32}$/)
    // A claim that the browser makes up is not passed on.
    await page.setExtraHTTPHeaders({ OIDC_CLAIM_sub: 'usr_other', 'OIDC-CLAIM-sub': 'usr_other' })
    await page.reload()
    expect(JSON.parse((await page.textContent('body')) ?? '').oidc_claim_sub).toBe(seen.oidc_claim_sub)
    await page.setExtraHTTPHeaders({})

    await page.goto(`${apache.url}/private/callback?logout=${encodeURIComponent(`${apache.url}/`)}`)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(`${apache.url}/`)
    await page.goto(`${apache.url}/private/`)
    await page.getByRole('button', { name: 'wallet on this device' }).click()
    await page.getByRole('button', { name: /demo/i }).click()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${apache.url}/private/**`)

    // Signed out at Countersign: Apache is told, and ends its own session.
    const elsewhere = await page.context().newPage()
    await elsewhere.goto(`${url}/api/auth/sign-in`)
    expect(await elsewhere.evaluate(async () => (await fetch('/api/auth/sign-out', { method: 'POST' })).status)).toBe(
      200,
    )
    const isOut = async (): Promise<boolean> => {
      await page.goto(`${apache.url}/private/`)
      return page.url().startsWith(url)
    }
    await expect.poll(isOut).toBe(true)
    // One for each sign-out. Anything else than 200 or 204 makes the issuer send the logout again for days.
    await expect.poll(apache.logoutStatuses).toEqual([200, 200])
  })

  test('leads to the sign-in behind a proxy that ends TLS', async () => {
    const { url } = await startService({ oidc: { clients: clientsFile(shop) } })
    const apache = await startApache(url, await freePort(), 'https://app.example', behindProxy)
    const headers = { accept: 'text/html', 'x-forwarded-host': 'app.example', 'x-forwarded-proto': 'https' }
    // fetch says that it is a script, which Apache answers with 401.
    const asked = once(get(`${apache.url}/private/`, { headers }), 'response')
    const [answer] = (await asked) as [IncomingMessage]
    answer.resume()
    const target = new URL(answer.headers.location ?? 'about:blank')
    expect([answer.statusCode, target.origin]).toEqual([302, url])
    expect(target.searchParams.get('redirect_uri')).toBe('https://app.example/private/callback')
  })
})
