import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as client from 'openid-client'
import { expect, onTestFinished, vi } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { createCountersign } from '../../src/index.ts'
import { onePerFile } from '../support/file-end.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'
import { Browser, contentOf, decide, redirectUri } from './support.ts'

/** The conformance suite's clients send no PKCE, but in the module that is about it. */
function fileClient(clientId: string, method: 'client_secret_basic' | 'client_secret_post') {
  return {
    pkce: 'optional',
    metadata: {
      client_id: clientId,
      client_secret: `the-secret-of-the-client-${clientId}-long-enough`,
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: method,
    },
  }
}

const [first, second, post] = [
  fileClient('first', 'client_secret_basic'),
  fileClient('second', 'client_secret_basic'),
  fileClient('post', 'client_secret_post'),
] as const

async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-basic-op-'))
  try {
    const oidcClients = join(folder, 'clients.json')
    writeFileSync(oidcClients, JSON.stringify({ clients: [first, second, post] }))
    return await createCountersign({
      store: 'sqlite::memory:',
      port: 0,
      host: '127.0.0.1',
      rateLimit: false,
      logger: silentLogger,
      oidc: { clients: oidcClients, email: '{user_id}@users.example' },
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function discover(
  url: string,
  { client_id, client_secret }: (typeof first)['metadata'],
  authentication: (secret: string) => client.ClientAuth,
): Promise<client.Configuration> {
  const execute = [client.allowInsecureRequests, client.enableNonRepudiationChecks]
  return await client.discovery(new URL(url), client_id, undefined, authentication(client_secret), { execute })
}

/** A person with a wallet, and a browser that is not signed in yet. */
export interface Person {
  readonly browser: Browser
  readonly wallet: TestWallet
}

/** An authorization request: its address, and what the client remembers of it. */
export interface AuthorizationRequest {
  readonly address: URL
  readonly checks: client.AuthorizationCodeGrantChecks
}

/** What a person saw on the way from an authorization request to the client, and what the client was answered. */
export interface Answered {
  readonly shown: readonly ('sign-in' | 'consent')[]
  readonly answer: URL
}

/** Opens a request, signs in and allows it as the pages ask for, until the browser is back at the client. */
export async function answer(address: URL, { browser, wallet }: Person): Promise<Answered> {
  const shown: ('sign-in' | 'consent')[] = []
  let opened = await browser.open(address.href)
  while (opened.address.pathname === '/api/auth/sign-in') {
    if (shown.includes('sign-in')) throw new Error('the sign-in page is shown once more')
    shown.push('sign-in')
    await browser.signIn(wallet)
    opened = await browser.open(opened.address.searchParams.get('returnTo') ?? '')
  }
  if (contentOf(opened.text).kind !== 'consent') return { shown, answer: opened.address }
  shown.push('consent')
  return { shown, answer: await decide(browser, opened) }
}

/** What a client has in the end. */
export interface SignedIn extends Answered {
  readonly tokens: client.TokenEndpointResponse & client.TokenEndpointResponseHelpers
  readonly claims: client.IDToken
  readonly userinfo: client.UserInfoResponse
}

/** The types of standard claims (OpenID Connect Core, 5.1). */
function checkStandardClaims(claims: Readonly<Record<string, unknown>>): void {
  for (const name of ['sub', 'name', 'nickname', 'preferred_username', 'email']) {
    if (name in claims) expect(claims[name], name).toEqual(expect.stringMatching(/./))
  }
  if ('email' in claims) expect(claims.email_verified).toEqual(expect.any(Boolean))
}

/** The service under test, one for all modules of the plan, and what its clients and their users do. */
export const basicOp = onePerFile(async () => {
  const service = await start()
  const url = `http://localhost:${await service.listen()}`
  // The clients check the signature of each ID token.
  const firstClient = await discover(url, first.metadata, client.ClientSecretBasic)
  const secondClient = await discover(url, second.metadata, client.ClientSecretBasic)
  const postClient = await discover(url, post.metadata, client.ClientSecretPost)

  function newPerson(): Person {
    return { browser: new Browser(url), wallet: makeWallet() }
  }

  /** A request as the suite makes it, with state and nonce, and these parameters beside or in place of its own. */
  function newRequest(
    parameters: Readonly<Record<string, string>> = {},
    config: client.Configuration = firstClient,
  ): AuthorizationRequest {
    const [expectedState, expectedNonce] = [parameters.state ?? client.randomState(), client.randomNonce()]
    const own = { redirect_uri: redirectUri, scope: 'openid', state: expectedState, nonce: expectedNonce }
    const address = client.buildAuthorizationUrl(config, { ...own, ...parameters })
    return { address, checks: { expectedState, expectedNonce } }
  }

  /**
   * A whole sign-in, and what the suite checks in each: state and issuer of the answer, the ID token with its signature
   * and nonce, and userinfo, which is of the same user.
   */
  async function signIn({
    request = newRequest(),
    person = newPerson(),
    config = firstClient,
  }: {
    readonly request?: AuthorizationRequest
    readonly person?: Person
    readonly config?: client.Configuration
  } = {}): Promise<SignedIn> {
    const answered = await answer(request.address, person)
    const tokens = await client.authorizationCodeGrant(config, answered.answer, request.checks)
    const claims = tokens.claims() ?? expect.fail('there is no ID token')
    const userinfo = await client.fetchUserInfo(config, tokens.access_token, claims.sub)
    checkStandardClaims(claims)
    checkStandardClaims(userinfo)
    return { ...answered, tokens, claims, userinfo }
  }

  /** The error in an answer, which has the state and the issuer, and nothing that no error has. */
  function errorOf(address: URL, { checks }: AuthorizationRequest): string {
    expect(address.origin + address.pathname).toBe(redirectUri)
    const { error = '', error_description: description = 'none', ...others } = Object.fromEntries(address.searchParams)
    expect(others).toEqual({ state: checks.expectedState, iss: url })
    // The characters that RFC 6749 allows, 4.1.2.1.
    expect(description).toMatch(/^[ !#-[\]-~]+$/)
    return error
  }

  return {
    url,
    firstClient,
    secondClient,
    postClient,
    /** What the service says of itself. */
    metadata: firstClient.serverMetadata(),
    newPerson,
    newRequest,
    signIn,
    errorOf,
    [Symbol.asyncDispose]: () => service.close(500),
  }
})

/** Sets the clock of service and clients forward until the test ends. */
export function wait(seconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1000 })
  onTestFinished(() => void vi.useRealTimers())
}
