import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { hasPart } from '../support/optional.ts'
import { trustedAuthority } from '../support/tls.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'
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

const isComplete = ['npm registry', 'openssl'].every(hasPart)
/** Those that ran, which the files of examples/oidc name. */
const packages = ['@actual-app/sync-server@26.9.0', 'node-red@5.0.7', 'passport-openidconnect@0.1.2']

const authority = isComplete ? await trustedAuthority() : undefined
const folder = isComplete ? await folderWith(packages, programs) : ''
vi.setConfig({ testTimeout: 3 * minuteMs })

const [ada, bob, eve] = [makeWallet(), makeWallet(), makeWallet()]

/** A program of the installed packages. */
const nodeProgram =
  (file: string, ...args: readonly string[]) =>
  () =>
    [process.execPath, join(folder, 'node_modules', file), ...args] as const

const clientOf = (callback: string) => ({
  metadata: {
    client_id: 'app',
    client_name: 'The application',
    client_secret: clientSecret,
    redirect_uris: [`${appUrl}${callback}`],
  },
})

/** The user's id at the issuer. */
async function userIdOf(issuer: Browser): Promise<string> {
  return (await (await issuer.fetch('/api/auth/session')).json()).session.userId
}

describe.skipIf(!isComplete)('Node-RED', () => {
  const client = { ...clientOf('/auth/strategy/callback'), pkce: 'optional' }

  /** Starts the issuer and the application. Resolves with what signs a wallet in at the editor. */
  async function start(of: object, options: CountersignOptions) {
    const url = await startIssuer(authority!, options, { ...client, ...of })
    const port = await startProgram({
      command: nodeProgram('node-red/red.js', '--settings', join(folder, 'node-red.cjs')),
      folder,
      authority: authority!,
      environment: { ISSUER: url, CLIENT_ID: 'app' },
    })
    return async (wallet: TestWallet) => {
      const [app, issuer] = [new AppBrowser(port), new Browser(url)]
      const begin = async () => (await app.open('/auth/strategy')).address
      const { request, address, consents } = await signIn(app, issuer, wallet, begin)
      expect(askedIn(request)).toEqual({ scope: 'openid groups', hasPkce: false })
      // As its own script reads it: it is not encoded.
      const [, code] = /[?&]code=(.*?)(?:$|&)/.exec(address.search) ?? []
      const exchanged = await (await post(app, '/auth/token', { code })).json()
      const authorization = `Bearer ${exchanged.accessToken}`
      const headers = { authorization, 'content-type': 'application/json' }
      /** Reads the flows, then deploys none. */
      const statuses = [
        (await app.fetch('/flows', { headers })).status,
        (await app.fetch('/flows', { method: 'POST', headers, body: '[]' })).status,
      ]
      const settings = await app.fetch('/settings', { headers })
      const user = settings.status === 200 ? (await settings.json()).user : undefined
      return { issuer, consents, message: address.searchParams.get('session_message'), statuses, user }
    }
  }

  test('a wallet deploys or reads by its group, and one without a group does not get in', async () => {
    const people = peopleFile([ada, { groups: ['admins'] }], [bob, { groups: ['staff'] }])
    const enter = await start({ groups: ['admins', 'staff'] }, { people })
    const { issuer, ...editor } = await enter(ada)
    const user = { username: await userIdOf(issuer), permissions: '*' }
    expect(editor).toMatchObject({ consents: 1, message: null, statuses: [200, 204], user })
    expect(await enter(bob)).toMatchObject({ statuses: [200, 401], user: { permissions: 'read' } })
    const outside = { consents: 0, message: 'AuthenticationError: Unauthorized', statuses: [401, 401] }
    expect(await enter(eve)).toMatchObject(outside)
  })

  test('without groups at the client any wallet gets in, with and without an e-mail address', async () => {
    for (const oidc of [{}, { email: '{user_id}@users.example' }]) {
      const enter = await start({}, { oidc })
      expect(await enter(eve)).toMatchObject({ statuses: [200, 401], user: { permissions: 'read' } })
    }
  })
})

describe.skipIf(!isComplete)('Actual Budget', () => {
  const file = readFileSync(join(programs, 'actual-budget.env'), 'utf8')
  const written = Object.fromEntries([...file.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]))

  /** Starts the issuer and the application. Resolves with what signs a wallet in. */
  async function start(of: object, options: CountersignOptions, environment: Record<string, string> = {}) {
    const url = await startIssuer(authority!, options, { ...clientOf('/openid/callback'), ...of })
    const data = mkdtempSync(join(folder, 'actual-'))
    const port = await startProgram({
      command: nodeProgram('@actual-app/sync-server/build/app.js'),
      folder,
      authority: authority!,
      environment: {
        ...written,
        NODE_ENV: 'production',
        ACTUAL_DATA_DIR: data,
        ACTUAL_HOSTNAME: '127.0.0.1',
        ACTUAL_OPENID_DISCOVERY_URL: url,
        ACTUAL_OPENID_CLIENT_ID: 'app',
        ACTUAL_OPENID_CLIENT_SECRET: clientSecret,
        ACTUAL_OPENID_SERVER_HOSTNAME: appUrl,
        ...environment,
      },
    })
    return async (wallet: TestWallet) => {
      const [app, issuer] = [new AppBrowser(port), new Browser(url)]
      const begin = async () => {
        const answer = await post(app, '/account/login', { loginMethod: 'openid', returnUrl: appUrl })
        return new URL((await answer.json()).data.returnUrl)
      }
      const { request, address, text, consents } = await signIn(app, issuer, wallet, begin)
      expect(askedIn(request)).toEqual({ scope: 'openid email profile', hasPkce: true })
      const token = address.searchParams.get('token')
      if (token === null) return { consents, refusal: JSON.parse(text).reason }
      const headers = { 'x-actual-token': token }
      /** Adds a user by the name that the application knows a wallet by. */
      const add = async (userName: string) => {
        const body = JSON.stringify({ userName, role: 'BASIC', enabled: true })
        const json = { ...headers, 'content-type': 'application/json' }
        return (await app.fetch('/admin/users', { method: 'POST', headers: json, body })).status
      }
      const { data } = await (await app.fetch('/account/validate', { headers })).json()
      const users: { userName: string; owner: boolean }[] = await (await app.fetch('/admin/users/', { headers })).json()
      const isOwner = users.find(({ userName }) => userName === data.userName)?.owner
      return { consents, add, user: { name: data.userName, shown: data.displayName, role: data.permission, isOwner } }
    }
  }

  test('the first wallet is the owner by its address, and others get in once it adds theirs', async () => {
    const enter = await start({}, {})
    const name = ada.address.replaceAll(' ', '')
    const owner = await enter(ada)
    expect(owner).toMatchObject({ consents: 1, user: { name, shown: name, role: 'ADMIN', isOwner: true } })
    expect(await enter(bob)).toEqual({ consents: 1, refusal: 'openid-grant-failed' })
    expect(await owner.add?.(bob.address.replaceAll(' ', ''))).toBe(200)
    expect(await enter(bob)).toMatchObject({ consents: 0, user: { isOwner: false } })
    expect(await enter(eve)).toMatchObject({ refusal: 'openid-grant-failed' })
  })

  test('with groups at the client their first wallet is the owner, by the names of the people file, and further ones get in', async () => {
    const person = { groups: ['family'], name: 'Ada', preferred_username: 'ada', email: 'ada@company.example' }
    const people = peopleFile([ada, person], [bob, { groups: ['family'] }])
    const enter = await start({ groups: ['family'] }, { people }, { ACTUAL_USER_CREATION_MODE: 'login' })
    expect(await enter(eve)).toEqual({ consents: 0, refusal: 'missing-authorization-code' })
    const owner = { name: 'ada', shown: 'Ada', role: 'ADMIN', isOwner: true }
    expect(await enter(ada)).toMatchObject({ user: owner })
    expect(await enter(bob)).toMatchObject({ user: { role: 'BASIC', isOwner: false } })
    expect(await enter(ada)).toMatchObject({ user: owner })
  })
})
