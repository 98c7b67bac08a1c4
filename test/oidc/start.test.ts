import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { run } from '../support/command.ts'
import { navigate } from '../support/navigate.ts'
import { readFromRoot } from '../support/repository.ts'
import { spawnService, startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import {
  asked,
  Browser,
  clientsFile,
  connect,
  contentOf,
  decide,
  fileWith,
  redirectUri,
  refusalOf,
  request,
  shop,
  signedIn,
  startIssuer,
} from './support.ts'

const { metadata } = shop

describe('a clients file stops the start with one line if it', () => {
  /** A file with the shop, whose metadata and settings differ by these. */
  const having = (changes: object, settings = {}) => [{ ...settings, metadata: { ...metadata, ...changes } }]

  test.each<[string, readonly object[], RegExp]>([
    ['has a name of no setting', [{ ...shop, privat_network: true }], /client 1: may have/],
    ['has no redirect URI', having({ redirect_uris: [] }), /redirect_uris/],
    ['has one client twice', [shop, shop], /client 2: client_id is that of another/],
    ['has another grant', having({ grant_types: ['client_credentials'] }), /client shop: grant_types can only contain/],
    ['has another response', having({ response_types: ['id_token'] }), /client shop: response_types can only contain/],
    ['has a short secret', having({ client_secret: 'short' }), /32 characters/],
    [
      'has a sentence as a secret',
      having({ client_secret: 'the output of: openssl rand -hex 32' }),
      /client 1: client_secret .*without spaces/,
    ],
    [
      'has a secret that is not ASCII',
      having({ client_secret: 'ü'.repeat(40) }),
      /client 1: client_secret .*visible ASCII/,
    ],
    [
      'has metadata that is misspelt',
      having({ bakchannel_logout_uri: 'https://shop.example/' }),
      /client 1: there is no metadata "bakchannel_logout_uri"/,
    ],
    ['has metadata of others', having({ web_origins: [] }), /no metadata "web_origins"/],
    ['asks for keys from elsewhere', having({ jwks_uri: 'https://shop.example/' }), /jwks_uri/],
    [
      'has a scheme of its own for a web client',
      having({ redirect_uris: ['shop:/callback'] }),
      /client shop: redirect_uris/,
    ],
    [
      'has a client without a secret that needs no PKCE',
      having({ token_endpoint_auth_method: 'none' }, { pkce: 'optional' }),
      /pkce must be "required"/,
    ],
    [
      'has a client without a secret that keeps its refresh token',
      having({ token_endpoint_auth_method: 'none' }, { refresh_rotation: false }),
      /refresh_rotation must be true for a client without a secret or key/,
    ],
    [
      'says something else of refresh tokens than yes or no',
      [{ metadata, refresh_rotation: 'false' }],
      /refresh_rotation must be true or false/,
    ],
    ['has a scope that is none', having({ scope: 'openid emial' }), /client shop: scope names "emial"/],
    ['has a typo that only the library sees', having({ subject_type: 'x' }), /client shop: subject_type/],
  ])('%s', async (_, clients, message) => {
    const refusal = startIssuer(clients)
    await expect(refusal).rejects.toThrow(TypeError)
    await expect(refusal).rejects.toThrow(message)
    await expect(refusal).rejects.toThrow(/^oidc[^\n]*$/)
  })
})

test('the files of the documents are taken once a secret is put into them, also with a byte order mark', async () => {
  const blocksIn = async (page: string) => {
    const text = await readFromRoot(`docs/${page}.md`)
    return [...text.matchAll(/```json\n([^`]*)```/g)].map(([, json = '']) => json.replace(/^ {3}/gm, ''))
  }
  const [clients = '', resources = ''] = await blocksIn('oidc')
  const [people = ''] = await blocksIn('private-applications')
  await expect(startService({ oidc: { clients: fileWith(clients) } })).rejects.toThrow(/client_secret must have 32/)
  const secret = clients.replace('openssl rand -hex 32', shop.metadata.client_secret)
  const mark = '\uFEFF'
  const { url } = await startService({
    oidc: { clients: fileWith(mark + secret) },
    people: fileWith(mark + people),
    pages: { textsFile: fileWith(`${mark}{}`) },
  })
  expect((await connect(url, { redirect_uri: 'https://shop.example/callback' })).tokens.scope).toBeDefined()
  await startService({ oidc: { clients: fileWith(resources) } })
})

test('is not for applications that keep the sessions themselves', async () => {
  await expect(startIssuer([shop], { sessionHost: {} as never })).rejects.toThrow(TypeError)
})

test('no client has an audience as its id', async () => {
  await expect(startIssuer([shop], { accessTokens: { audiences: ['shop'] } })).rejects.toThrow(/accessTokens.audiences/)
})

test('a clients file that is changed counts after a reload, all of it or nothing', async () => {
  const file = clientsFile(shop)
  const { url, service } = await startService({ oidc: { clients: file } })
  const status = async (id: string) => {
    const query = new URLSearchParams({ ...asked, client_id: id })
    return (await navigate(`${url}/api/auth/oidc/authorize?${query}`)).status
  }
  const other = { metadata: { ...metadata, client_id: 'other' } }
  writeFileSync(file, JSON.stringify({ clients: [other, { metadata: {} }] }))
  await expect(service.reload()).rejects.toThrow(/client 2/)
  expect([await status('shop'), await status('other')]).toEqual([303, 400])
  writeFileSync(file, JSON.stringify({ clients: [other] }))
  expect(await service.reload()).toEqual(['oidc.clients'])
  expect([await status('shop'), await status('other')]).toEqual([400, 303])
  expect(await service.reload()).toEqual([])
})

test('without a clients file the library is not loaded, and the issuer’s addresses are nowhere', async () => {
  const source = `
    import { registerHooks } from 'node:module'
    registerHooks({ load(url, context, next) { console.log(url); return next(url, context) } })
    const { createCountersign } = await import('./src/index.ts')
    const service = await createCountersign({ store: 'sqlite::memory:', port: 0, host: '127.0.0.1' })
    await service.listen()
    await service.close()
  `
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', source], { cwd })
  expect(stdout).toContain('/src/service/countersign.ts')
  const loaded = stdout.split('\n').flatMap((url) => /\/((src\/oidc|oidc-provider|koa)\/.*)/.exec(url)?.[1] ?? [])
  // What ends with sessions does so without the file, too.
  expect(loaded).toEqual(['src/oidc/lazy-issuer.ts', 'src/oidc/session-ends.ts', 'src/oidc/connected-apps.ts'])
  const { url } = await startService()
  for (const path of ['/.well-known/openid-configuration', '/api/auth/oidc/authorize', '/.well-known/jwks.json']) {
    expect((await fetch(url + path)).status, path).toBe(404)
  }
})

test('the library writes nothing to the standard streams', async () => {
  const service = await spawnService({
    COUNTERSIGN_OIDC_CLIENTS: clientsFile(shop),
    COUNTERSIGN_STORE: 'sqlite::memory:',
  })
  await connect(service.url)
  await navigate(`${service.url}/api/auth/oidc/authorize?client_id=unknown`, { headers: { accept: 'text/html' } })
  await fetch(`${service.url}/api/auth/oidc/token`, { method: 'POST', body: new URLSearchParams({ grant_type: 'x' }) })
  await service.stop()
  const lines = service.log().split('\n').filter(Boolean)
  for (const line of lines) expect(() => JSON.parse(line), line).not.toThrow()
  expect(service.log()).not.toContain('oidc-provider')
})

test('a client that takes its answer by a form gets it, under a policy that lets no other script run', async () => {
  const { url } = await startIssuer([{ ...shop, first_party: true }])
  const { browser, config } = await signedIn(url)
  const { address } = await request(config, { response_mode: 'form_post' })
  const { response, text } = await browser.open(address)
  expect(text).toContain(`action="${redirectUri}"`)
  expect(response.headers.get('content-security-policy')).toMatch(
    /^default-src 'none';script-src 'self' 'sha256-[^']+'/,
  )
  expect(response.headers.get('cache-control')).toMatch(/no-store/)
})

test('requests of one network that store something are limited, and so are wrong secrets', async () => {
  const { url } = await startIssuer([shop], { rateLimit: true, limits: { rates: { 'sign-in': 3, 'wrong-token': 3 } } })
  const query = new URLSearchParams(asked)
  const authorize = async () => (await navigate(`${url}/api/auth/oidc/authorize?${query}`)).status
  const wrong = async () => {
    const body = new URLSearchParams({ grant_type: 'refresh_token', client_id: 'shop', client_secret: 'wrong' })
    return (await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body })).status
  }
  const both: [number[], number[]] = [[], []]
  for (let time = 0; time < 5; time++) {
    both[0].push(await authorize())
    both[1].push(await wrong())
  }
  expect(both[0]).toEqual([303, 303, 303, 429, 429])
  expect(both[1]).toEqual([401, 401, 401, 429, 429])
})

test('a client without PKCE is refused, unless the file says that it needs none', async () => {
  const { url } = await startIssuer([shop, { pkce: 'optional', metadata: { ...metadata, client_id: 'old' } }])
  const browser = await Browser.signedIn(url)
  const open = (id: string) => {
    const { code_challenge: _, code_challenge_method: _method, ...others } = asked
    const query = new URLSearchParams({ ...others, client_id: id })
    return browser.open(`/api/auth/oidc/authorize?${query}`)
  }
  expect((await open('shop')).address.searchParams.get('error')).toBe('invalid_request')
  expect((await decide(browser, await open('old'))).searchParams.has('code')).toBe(true)
})

test('a request that comes as a form goes on as a navigation, with the same parameters', async () => {
  const { url } = await startIssuer()
  const { browser, config } = await connect(url)
  const { address, redeem } = await request(config)
  const { pathname, searchParams } = new URL(address)
  const post = (type: string) =>
    browser.fetch(pathname, {
      method: 'POST',
      headers: { 'content-type': type, origin: 'https://shop.example' },
      body: searchParams.toString(),
    })
  const answer = await post('application/x-www-form-urlencoded')
  expect(answer.status).toBe(303)
  expect((await redeem((await browser.open(String(answer.headers.get('location')))).address)).claims()?.aud).toBe(
    'shop',
  )
  expect((await post('text/plain')).status).toBe(400)
})

test('claims of a people file are those of the user’s id, else of the wallet, and are read again on a reload', async () => {
  const wallet = makeWallet()
  const compact = wallet.address.replaceAll(' ', '')
  const people = fileWith({ [`nimiq:${compact}`]: { name: 'Ada', email: 'ada@company.example', groups: ['staff'] } })
  const write = (json: unknown) => writeFileSync(people, typeof json === 'string' ? json : JSON.stringify(json))
  const { url, service } = await startIssuer([shop], { people })
  const { browser, config, session } = await signedIn(url, wallet)
  const claims = async () => {
    const { address, redeem } = await request(config, { scope: 'openid profile email groups' })
    const opened = await browser.open(address)
    const isAsked = contentOf(opened.text).kind === 'consent'
    return (await redeem(isAsked ? await decide(browser, opened) : opened.address)).claims()
  }
  const ada = { name: 'Ada', email: 'ada@company.example', email_verified: false, groups: ['staff'] }
  expect(await claims()).toMatchObject(ada)
  write({
    [session.userId]: { groups: ['admins'], role: 'authenticated', team: 'tulips' },
    [`nimiq:${compact}`]: { groups: ['staff'] },
  })
  expect(await service.reload()).toEqual(['people'])
  const admin = await claims()
  expect(admin).toMatchObject({ name: compact, groups: ['admins'], role: 'authenticated', team: 'tulips' })
  expect(admin).not.toHaveProperty('email')
  for (const broken of ['{', '[]', { x: 1 }, { x: { sub: 'usr_other' } }]) {
    write(broken)
    await expect(service.reload()).rejects.toThrow(/^people \(COUNTERSIGN_PEOPLE\), the file .*file.json, /)
    expect(await claims()).toMatchObject({ groups: ['admins'] })
  }
})

test('claims of the application’s own add to those of the people file, and win', async () => {
  const wallet = makeWallet()
  const told: [string, unknown][] = []
  const { url } = await startIssuer([shop], {
    people: fileWith({
      [`nimiq:${wallet.address}`]: { name: 'Ada', email: 'ada@old.example', email_verified: true, groups: ['staff'] },
    }),
    oidc: {
      claims: async () => ({ email: 'ada@new.example', groups: ['admins'], sub: 'admin', aud: 'x' }),
    },
    logger: { ...silentLogger, warn: (text, fields) => void told.push([text, fields]) },
  })
  const { browser, config } = await signedIn(url, wallet)
  const { address, redeem } = await request(config, { scope: 'openid profile email groups' })
  const { claims, ...tokens } = await redeem(await decide(browser, await browser.open(address)))
  // That another address is verified says nothing of this one.
  const expected = { name: 'Ada', email: 'ada@new.example', email_verified: false, groups: ['admins'] }
  expect(claims.call(tokens)).toMatchObject(expected)
  expect(await client.fetchUserInfo(config, tokens.access_token, client.skipSubjectCheck)).toMatchObject(expected)
  // Said once, however often it is asked.
  expect(told).toEqual([[expect.stringContaining('reserved for the protocol'), { claim: 'sub' }]])
})

test('claims that the application fails to tell are an outage, not an account without them', async () => {
  let isAway = false
  const { url } = await startIssuer([shop], {
    oidc: {
      claims: async () => {
        if (isAway) throw new Error('the directory is away')
        return {}
      },
    },
  })
  const { config, tokens, session } = await connect(url)
  isAway = true
  expect(await refusalOf(client.fetchUserInfo(config, tokens.access_token, session.userId))).toBe(503)
})

test('requests are counted by endpoint', async () => {
  const { url, service } = await startIssuer([shop], { metrics: true })
  const { browser } = await connect(url)
  await browser.open('/api/auth/oidc/logout')
  const counted = [
    ...(await service.metrics()).matchAll(/^countersign_calls_total\{method="oidc ([a-z]+)".*\} ([1-9]\d*)$/gm),
  ]
  expect(counted.map(([, endpoint]) => endpoint).sort()).toEqual([
    'authorize',
    'discovery',
    'interaction',
    'logout',
    'token',
  ])
})
