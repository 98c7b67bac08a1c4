import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { hasBrowser, useBrowser } from '../browser/support.ts'
import { run } from '../support/command.ts'
import { listen } from '../support/listening.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { trustedAuthority } from '../support/tls.ts'
import { makeWallet } from '../support/wallet.ts'
import {
  AppBrowser,
  appUrl,
  askedIn,
  clientSecret,
  folderWith,
  minuteMs,
  peopleFile,
  post,
  programs,
  signIn,
  startIssuer,
  startProgram,
} from './applications.ts'
import { Browser } from './support.ts'

const parts = ['npm registry', 'openssl', 'go', 'go-oidc', 'python3-social-django']
const isComplete = parts.every(hasPart)
vi.setConfig({ testTimeout: 3 * minuteMs })

/** Packages of the applications: those that ran, which the files of examples/oidc name. */
const packages = [
  '@auth/express@0.12.3',
  '@better-auth/core@1.7.5',
  '@better-auth/sso@1.7.5',
  '@fastify/cookie@11.1.5',
  '@fastify/oauth2@8.3.0',
  '@hono/node-server@2.1.9',
  '@hono/oidc-auth@1.8.1',
  'better-auth@1.7.5',
  'express@5.3.0',
  'express-openid-connect@3.4.0',
  'express-session@1.19.0',
  'fastify@5.12.8',
  'hono@4.13.19',
  'oidc-client-ts@3.5.0',
  'passport@0.7.0',
  'passport-openidconnect@0.1.2',
]

const authority = isComplete ? await trustedAuthority() : undefined
const folder = isComplete ? await folderWith(packages, programs) : ''
if (isComplete) {
  const go = { GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: join(folder, 'go-cache') }
  await run('go', ['build', '-o', 'go-oidc', 'go-oidc.go'], { cwd: folder, env: { ...process.env, ...go } })
}

/** What a sign-in at an application is like. Those that are not set are as for most. */
interface Application {
  readonly name: string
  readonly command: readonly [string, ...string[]]
  /** Path of its redirect URI. */
  readonly callback: string
  /** Begins a sign-in. Resolves with the address of the issuer that the browser is led to. */
  readonly begin?: (browser: Browser) => Promise<URL>
  /** Does not send PKCE. */
  readonly isWithoutPkce?: true
  /** What it asks for. */
  readonly scope?: string | ((hasEmail: boolean) => string)
  /** What its last address has if there is no e-mail address, without which it signs nobody in. */
  readonly refusal?: string
}

const node = (file: string) => [process.execPath, join(folder, file)] as const

/** Of Better Auth, the path that begins a sign-in and what names the provider. */
const betterAuth = (path: string, provider: object) => async (browser: Browser) => {
  const answer = await post(browser, path, { ...provider, callbackURL: '/' })
  return new URL((await answer.json()).url)
}

const applications: readonly Application[] = [
  { name: 'express-openid-connect', command: node('express-openid-connect.mjs'), callback: '/callback' },
  {
    name: 'Auth.js',
    command: node('auth-js.mjs'),
    callback: '/auth/callback/countersign',
    async begin(browser) {
      const { csrfToken } = await (await browser.fetch('/auth/csrf')).json()
      const form = new URLSearchParams({ csrfToken, callbackUrl: browser.url })
      const answer = await post(browser, '/auth/signin/countersign', form)
      return new URL(answer.headers.get('location') ?? '')
    },
  },
  {
    name: 'Better Auth, generic OAuth',
    command: node('better-auth-generic.mjs'),
    callback: '/api/auth/callback/countersign',
    begin: betterAuth('/api/auth/sign-in/social', { provider: 'countersign' }),
    refusal: 'error=email_not_found',
  },
  {
    name: 'Better Auth, SSO',
    command: node('better-auth-sso.mjs'),
    callback: '/api/auth/sso/callback/countersign',
    begin: betterAuth('/api/auth/sign-in/sso', { providerId: 'countersign' }),
    scope: 'openid email profile offline_access',
    refusal: 'error=invalid_provider',
  },
  { name: 'Fastify', command: node('fastify.mjs'), callback: '/callback' },
  {
    name: 'Hono',
    command: node('hono.mjs'),
    callback: '/callback',
    // All scopes that the issuer has. Without a setting for e-mail, that one is not among them.
    scope: (hasEmail) => `openid offline_access profile wallet groups${hasEmail ? ' email' : ''}`,
  },
  {
    name: 'passport-openidconnect',
    command: node('passport-openidconnect.mjs'),
    callback: '/callback',
    isWithoutPkce: true,
    scope: 'openid',
  },
  {
    name: 'social-auth',
    command: [systemPython, join(folder, 'social-auth.py')],
    callback: '/complete/oidc/',
    begin: async (browser) => (await browser.open('/login/oidc/')).address,
    isWithoutPkce: true,
  },
  {
    name: 'go-oidc',
    command: [join(folder, 'go-oidc')],
    callback: '/callback',
    isWithoutPkce: true,
  },
]

const login = async (browser: Browser): Promise<URL> => (await browser.open('/login')).address

const template = '{user_id}@users.example'
const wallet = makeWallet()

/** Settings of the issuer, and the e-mail address that an application learns, which asks for it. */
interface Setting {
  readonly name: string
  readonly options: () => CountersignOptions
  email?(userId: string): string
}

const settings: readonly Setting[] = [
  { name: 'without e-mail', options: () => ({}) },
  {
    name: 'with the template',
    options: () => ({ oidc: { email: template } }),
    email: (userId) => template.replace('{user_id}', userId),
  },
  {
    name: 'with a people file that has groups only',
    options: () => ({ people: peopleFile([wallet, { groups: ['staff'] }]) }),
  },
  {
    name: 'with a people file that has an e-mail address',
    options: () => ({ people: peopleFile([wallet, { email: 'ada@company.example' }]) }),
    email: () => 'ada@company.example',
  },
]

describe.skipIf(!isComplete).each(settings)('$name', ({ options, email }) => {
  test.each(applications)(
    '$name shows one page of consent, knows the user, and shows none the next time',
    async (application) => {
      const { command, callback, begin = login, scope = 'openid profile email', ...others } = application
      const { isWithoutPkce, refusal } = others
      const metadata = {
        client_id: 'app',
        client_name: application.name,
        client_secret: clientSecret,
        redirect_uris: [appUrl + callback],
        grant_types: ['authorization_code', 'refresh_token'],
      }
      const url = await startIssuer(authority!, options(), { metadata, ...(isWithoutPkce && { pkce: 'optional' }) })
      const environment = { ISSUER: url, CLIENT_ID: 'app' }
      const port = await startProgram({ command: () => command, folder, authority: authority!, environment })
      const issuer = new Browser(url)
      for (const expectedConsents of [1, 0]) {
        const app = new AppBrowser(port)
        const { request, consents, address } = await signIn(app, issuer, wallet, begin)
        const asked = typeof scope === 'string' ? scope : scope(email !== undefined)
        expect(askedIn(request)).toEqual({ scope: asked, hasPkce: !isWithoutPkce })
        expect(consents).toBe(expectedConsents)
        const { session } = await (await issuer.fetch('/api/auth/session')).json()
        const mail = scope === 'openid' ? undefined : email?.(session.userId)
        if (refusal !== undefined && mail === undefined) {
          expect(address.href).toContain(refusal)
          continue
        }
        const user = await (await app.fetch('/')).json()
        expect(user.sub).toBe(session.userId)
        // Some write it in lower case.
        expect(user.email?.toLowerCase()).toBe(mail?.toLowerCase())
      }
    },
  )
})

describe.skipIf(!isComplete)('with the scope groups', () => {
  test.each(applications)(
    '$name finds the groups of the user',
    async ({ name, command, callback, begin = login, isWithoutPkce, refusal }) => {
      const metadata = {
        client_id: 'app',
        client_name: name,
        client_secret: clientSecret,
        redirect_uris: [appUrl + callback],
      }
      const people = peopleFile([wallet, { groups: ['staff', 'admins'], email: 'ada@company.example' }])
      const url = await startIssuer(authority!, { people }, { metadata, ...(isWithoutPkce && { pkce: 'optional' }) })
      const scope = refusal === undefined ? 'openid profile groups' : 'openid profile email groups'
      const environment = { ISSUER: url, CLIENT_ID: 'app', SCOPE: scope }
      const port = await startProgram({ command: () => command, folder, authority: authority!, environment })
      const app = new AppBrowser(port)
      await signIn(app, new Browser(url), wallet, begin)
      expect((await (await app.fetch('/')).json()).groups).toEqual(['staff', 'admins'])
    },
  )
})

describe.skipIf(!isComplete || !hasBrowser)('oidc-client-ts', () => {
  const browser = useBrowser()

  /** A server of files that knows no user. */
  async function startPage(issuer: () => string, scope?: string): Promise<string> {
    const { cert, key } = await authority!.issue('localhost')
    const files: Record<string, () => [string, string]> = {
      '/oidc-client-ts.js': () => [
        'text/javascript',
        readFileSync(join(folder, 'node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js'), 'utf8'),
      ],
      '/settings.json': () => ['application/json', JSON.stringify({ issuer: issuer(), clientId: 'page', scope })],
    }
    const page = (): [string, string] => ['text/html', readFileSync(join(folder, 'oidc-client-ts.html'), 'utf8')]
    const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (asked, response) => {
      const [type, content] = (files[new URL(asked.url ?? '/', 'https://localhost').pathname] ?? page)()
      response.setHeader('content-type', type).end(content)
    })
    return `https://localhost:${await listen(server)}`
  }

  /** Signs the wallet in at a page. Resolves with the user's id and with what the page shows. */
  async function visit(options: CountersignOptions, scope?: string) {
    let issuer = ''
    const own = await startPage(() => issuer, scope)
    const metadata = { client_id: 'page', redirect_uris: [`${own}/callback`], token_endpoint_auth_method: 'none' }
    issuer = await startIssuer(authority!, options, { metadata })
    const { page } = await browser.open({ ignoreHTTPSErrors: true })
    const elsewhere = new Browser(issuer)
    const { session } = await elsewhere.signIn(wallet)
    const kept = [...elsewhere.cookies.values()].map(({ name, value }) => ({ name, value, url: issuer, secure: true }))
    await page.context().addCookies(kept)
    await page.goto(`${own}/login`)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${own}/`)
    return { userId: session.userId, shown: () => page.textContent('body') }
  }

  test.each(settings)(
    '$name, a page without a server shows one page of consent and knows the user',
    async ({ options }) => {
      const { userId, shown } = await visit(options())
      await expect.poll(shown).toBe(JSON.stringify({ sub: userId }))
    },
  )

  test('finds the groups of the user', async () => {
    const { userId, shown } = await visit({ people: peopleFile([wallet, { groups: ['staff'] }]) }, 'openid groups')
    await expect.poll(shown).toBe(JSON.stringify({ sub: userId, groups: ['staff'] }))
  })
})
