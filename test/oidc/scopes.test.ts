import { writeFileSync } from 'node:fs'
import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { SessionClients } from '../../src/oidc/session-ends.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { openStore } from '../../src/store/open.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import {
  bearer,
  clientsFile,
  connect,
  contentOf,
  decide,
  fileWith,
  refusalOf,
  request,
  shop,
  signedIn,
  startIssuer,
} from './support.ts'

const firstParty = { ...shop, first_party: true }
const usual = { scope: 'openid email profile' }
/** A browser that is signed in at an issuer, and what opens requests of a client. */
async function start(clients: readonly object[] = [shop], options: CountersignOptions = {}) {
  const { url, service } = await startIssuer(clients, options)
  const { browser, config, token, session } = await signedIn(url)
  return {
    url,
    service,
    browser,
    config,
    token,
    session,
    /** Opens a request, and allows it if the user is asked: with the answer's error, the tokens' scope, and the claims. */
    async ask(parameters: Record<string, string>) {
      const { address, redeem } = await request(config, parameters)
      const sent = new URL(address)
      // Without openid, a nonce is a mistake of its own.
      if (!parameters.scope?.includes('openid')) sent.searchParams.delete('nonce')
      const opened = await browser.open(sent.href)
      const isAsked = contentOf(opened.text).kind === 'consent'
      const answer = isAsked ? await decide(browser, opened) : opened.address
      const error = answer.searchParams.get('error')
      if (error !== null) return { isAsked, error }
      const tokens = await redeem(answer)
      return { isAsked, scope: tokens.scope, claims: tokens.claims() }
    },
  }
}

describe('what is advertised, asked for and granted is one list', () => {
  test.each<[string, () => CountersignOptions, boolean]>([
    ['without e-mail', () => ({}), false],
    ['with a people file without e-mail', () => ({ people: fileWith({ usr_x: { groups: ['staff'] } }) }), false],
    ['with a people file', () => ({ people: fileWith({ usr_x: { email: 'ada@company.example' } }) }), true],
    ['with a template', () => ({ oidc: { email: '{user_id}@users.example' } }), true],
    ['with claims of its own', () => ({ oidc: { claims: async () => ({}) } }), true],
  ])('of a service %s', async (_name, options, isOffered) => {
    const { url, config, ask } = await start([shop], options())
    const metadata = config.serverMetadata()
    expect(metadata.scopes_supported?.includes('email')).toBe(isOffered)
    expect(metadata.claims_supported?.includes('email')).toBe(isOffered)
    const scope = isOffered ? 'openid email profile' : 'openid profile'
    expect(await ask(usual)).toMatchObject({ isAsked: true, scope })
    expect(await ask(usual)).toMatchObject({ isAsked: false, scope })
    expect(await ask({ ...usual, prompt: 'none' })).toMatchObject({ isAsked: false, scope })
    expect((await fetch(`${url}/.well-known/oauth-authorization-server`)).status).toBe(200)
  })

  test('so that the operator’s own client is not asked about, whatever it asks for', async () => {
    const { ask } = await start([firstParty])
    for (const parameters of [usual, { ...usual, prompt: 'none' }, { scope: 'openid email address phone' }]) {
      expect(await ask(parameters)).toMatchObject({ isAsked: false, claims: { aud: 'shop' } })
    }
  })

  test('and a client that is bound to some scopes may name one that the service does not offer now', async () => {
    const metadata = { ...shop.metadata, scope: 'openid email' }
    const { ask } = await start([{ metadata }])
    expect(await ask({ scope: 'openid email' })).toMatchObject({ isAsked: true, scope: 'openid' })
    expect(await ask({ scope: 'openid profile' })).toMatchObject({ error: 'invalid_scope' })
  })

  test('also for tokens that are out once the file takes a scope away', async () => {
    const file = clientsFile(shop)
    const { url, service } = await startService({ oidc: { clients: file } })
    const { config, tokens, session } = await connect(url, { scope: 'openid profile' })
    writeFileSync(file, JSON.stringify({ clients: [{ metadata: { ...shop.metadata, scope: 'openid' } }] }))
    await service.reload()
    const claims = await client.fetchUserInfo(config, tokens.access_token, session.userId)
    expect(claims).not.toHaveProperty('preferred_username')
    const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(next.scope).toBe('openid')
    expect(next.claims()).not.toHaveProperty('preferred_username')
  })

  test.each([
    { asked: 'openid profile email', granted: 'openid profile' },
    { asked: 'openid profile unknown claudeai', granted: 'openid profile' },
    { asked: 'openid offline_access profile', granted: 'openid profile' },
    { asked: 'openid orders:read', granted: 'openid' },
    { asked: 'openid offline_access email', granted: 'openid offline_access', prompt: 'consent' },
  ])('and a refresh may name it again: $asked', async ({ granted, asked: scope, ...prompt }) => {
    const resources = [{ resource: 'https://orders.example', scopes: ['orders:read'] }]
    const { url } = await startService({ oidc: { clients: fileWith({ clients: [shop], resources }) } })
    const { config, tokens } = await connect(url, { scope, ...prompt })
    expect(tokens.scope).toBe(granted)
    const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '', { scope })
    expect(next.scope).toBe(granted)
    const [narrow] = [await client.refreshTokenGrant(config, next.refresh_token ?? '', { scope: 'openid email' })]
    expect(narrow.scope).toBe('openid')
  })

  test('but for one that there is and that was not asked for, or for none that was given', async () => {
    const { url } = await startIssuer()
    const { config, tokens } = await connect(url, { scope: 'openid profile' })
    for (const scope of ['openid profile wallet', 'email', 'offline_access', 'unknown']) {
      const refused = client.refreshTokenGrant(config, tokens.refresh_token ?? '', { scope })
      expect([scope, await refusalOf(refused)]).toEqual([scope, 'invalid_scope'])
    }
    expect((await client.refreshTokenGrant(config, tokens.refresh_token ?? '')).scope).toBe('openid profile')
  })
})

describe('nothing is connected before it is decided', () => {
  const connected = async ({ url, token }: { url: string; token: string }) =>
    (await rest(url, '/apps', undefined, bearer(token))).json.apps

  test.each([['nothing'], ['']])('for a request of scope "%s"', async (scope) => {
    const store = await openStore('sqlite::memory:')
    const issuer = await start([firstParty], { store })
    for (const prompt of ['none', 'consent']) {
      expect(await issuer.ask({ scope, prompt })).toMatchObject({ isAsked: false, error: expect.any(String) })
    }
    expect(await connected(issuer)).toEqual([])
    expect(await new SessionClients(store).of(issuer.session.id)).toEqual(new Map())
  })

  test.each([
    { prompt: 'login' },
    { prompt: 'select_account' },
    { max_age: '0' },
    { login_hint: 'usr_'.padEnd(26, 'x') },
  ])('for a request of a known client that first wants a sign-in: %j', async (parameters) => {
    const store = await openStore('sqlite::memory:')
    const issuer = await start([firstParty], { store })
    const { address } = await request(issuer.config, { scope: 'openid', ...parameters })
    expect((await issuer.browser.open(address)).address.pathname).toBe('/api/auth/sign-in')
    expect(await connected(issuer)).toEqual([])
    expect(await new SessionClients(store).of(issuer.session.id)).toEqual(new Map())
  })
})

test('what the page of consent has not shown is not given: it is shown again, or the client refused if nothing is left', async () => {
  const file = clientsFile(shop)
  const { url, service } = await startService({ oidc: { clients: file } })
  const bound = async (scope?: string) => {
    writeFileSync(file, JSON.stringify({ clients: [{ metadata: { ...shop.metadata, scope } }] }))
    await service.reload()
  }
  const { browser, config, token } = await signedIn(url)
  const { address, redeem } = await request(config, { scope: 'openid profile' })
  const asked = await browser.open(address)
  const shows = async () => await browser.open(asked.address.href)
  await bound('openid')
  const narrow = await shows()
  expect(contentOf(narrow.text).scopes).toEqual(['openid'])
  await bound()
  await expect(decide(browser, narrow)).rejects.toThrow(/load the page again/)
  const { sessionId } = contentOf(narrow.text)
  expect((await browser.post(asked.address.pathname, { allow: true, sessionId })).status).toBe(400)
  expect((await rest(url, '/apps', undefined, bearer(token))).json.apps).toEqual([])
  const tokens = await redeem(await decide(browser, await shows()))
  expect(tokens.scope).toBe('openid profile')

  const next = await browser.open((await request(config, { scope: 'openid profile', prompt: 'consent' })).address)
  expect(contentOf(next.text).kind).toBe('consent')
  await bound('groups')
  await expect(decide(browser, next)).rejects.toThrow(/load the page again/)
  expect((await browser.open(next.address.href)).address.searchParams.get('error')).toBe('access_denied')
})

test('what a client of the operator’s own got without a question is asked about once it is no longer that', async () => {
  const file = clientsFile(firstParty)
  const { url, service } = await startService({ oidc: { clients: file } })
  const { browser, config, token } = await signedIn(url)
  const open = async (scope: string) => await browser.open((await request(config, { scope })).address)
  expect((await open('openid profile')).address.searchParams.has('code')).toBe(true)
  expect((await rest(url, '/apps', undefined, bearer(token))).json.apps).toMatchObject([
    { scopes: ['openid', 'profile'] },
  ])
  writeFileSync(file, JSON.stringify({ clients: [shop] }))
  await service.reload()
  const page = await open('openid profile')
  expect(contentOf(page.text)).toMatchObject({ kind: 'consent', scopes: ['openid', 'profile'] })
  expect((await decide(browser, page)).searchParams.has('code')).toBe(true)
  expect((await open('openid profile')).address.searchParams.has('code')).toBe(true)
})
