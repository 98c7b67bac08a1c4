import { globSync } from 'node:fs'
import { join } from 'node:path'
import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { readFromRoot, root } from '../support/repository.ts'
import { makeWallet } from '../support/wallet.ts'
import { Browser, startIssuer } from './support.ts'

const read = async (name: string): Promise<string> => await readFromRoot(`examples/oidc/${name}`)
const secret = 'a-secret-of-the-provider-long-enough'
const file = await read('identity-providers.json')
/** Their settings, by the file that has them. */
const settings = ['authentik.yaml', 'zitadel.sh', 'logto.md', 'keycloak.md', 'keycloak.json'] as const
const { clients } = JSON.parse(file.replaceAll('a secret of 32 characters or more, of its own', secret))

/** How a provider's source has it sign in upstream. */
interface Provider {
  readonly clientId: string
  readonly scope: string
  readonly pkce: boolean
  readonly nonce: boolean
  /** Parameters that it sends beside them. */
  readonly others: Readonly<Record<string, string>>
  /** Claims that it makes its account of, beside `sub`. */
  readonly reads: 'ID token' | 'userinfo' | 'both'
}

/**
 * What each provider sends, by its source:
 *
 * - goauthentik/authentik `authentik/sources/oauth/types/oidc.py`, `clients/oauth2.py`
 * - zitadel/zitadel `internal/idp/providers/oidc/oidc.go`, `internal/command/idp_model.go`
 * - logto-io/logto `packages/connectors/connector-oidc/src/index.ts`
 * - keycloak/keycloak `services/src/main/java/org/keycloak/broker/oidc/AbstractOAuth2IdentityProvider.java`
 */
const providers: readonly Provider[] = [
  { clientId: 'authentik', scope: 'openid email profile', pkce: true, nonce: false, others: {}, reads: 'userinfo' },
  {
    clientId: 'zitadel',
    scope: 'openid profile email phone',
    pkce: true,
    nonce: false,
    others: { prompt: 'select_account' },
    reads: 'both',
  },
  // In place of prompt, if the application sends one. It is the name of a user of the provider.
  {
    clientId: 'zitadel',
    scope: 'openid profile',
    pkce: true,
    nonce: false,
    others: { login_hint: 'ada@company.example' },
    reads: 'both',
  },
  { clientId: 'logto', scope: 'openid profile', pkce: false, nonce: true, others: {}, reads: 'ID token' },
  {
    clientId: 'keycloak',
    scope: 'openid profile',
    pkce: true,
    nonce: true,
    others: { prompt: 'login', max_age: '60', acr_values: '1', ui_locales: 'de', login_hint: 'ada' },
    reads: 'both',
  },
]

test.each(providers)(
  '$clientId with $others signs a user in upstream, twice as the same one',
  async ({ clientId, scope, pkce, nonce, others, reads }) => {
    const { url } = await startIssuer(clients)
    const config = await client.discovery(new URL(url), clientId, undefined, client.ClientSecretBasic(secret), {
      execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks],
    })
    const { metadata } = clients.find(({ metadata }: { metadata: { client_id: string } }) => {
      return metadata.client_id === clientId
    })
    const wallet = makeWallet()
    const browser = new Browser(url)
    const signIn = async (redirectUri: string): Promise<string> => {
      const pkceCodeVerifier = client.randomPKCECodeVerifier()
      // Keycloak's has the client's own state in it, and more than a hundred characters.
      const state = client.randomState().repeat(4)
      const expectedNonce = client.randomNonce()
      const address = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope,
        state,
        ...(nonce ? { nonce: expectedNonce } : {}),
        ...(pkce
          ? {
              code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
              code_challenge_method: 'S256',
            }
          : {}),
        ...others,
      })
      let opened = await browser.open(address.href)
      if (opened.address.pathname === '/api/auth/sign-in') {
        await browser.signIn(wallet)
        opened = await browser.open(opened.address.searchParams.get('returnTo') ?? '')
      }
      expect(opened.address.origin + opened.address.pathname).toBe(redirectUri)
      const tokens = await client.authorizationCodeGrant(config, opened.address, {
        expectedState: state,
        ...(pkce ? { pkceCodeVerifier } : {}),
        ...(nonce ? { expectedNonce } : {}),
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      const known = { sub: claims?.sub, name: wallet.address.replaceAll(' ', '') }
      if (reads !== 'userinfo') expect(claims).toMatchObject({ ...known, iss: url, aud: clientId })
      if (reads !== 'ID token') {
        expect(await client.fetchUserInfo(config, tokens.access_token, String(claims?.sub))).toMatchObject(known)
      }
      return String(claims?.sub)
    }
    const subjects: string[] = []
    for (const redirectUri of [...metadata.redirect_uris, metadata.redirect_uris[0]]) {
      subjects.push(await signIn(redirectUri))
    }
    expect(new Set(subjects).size).toBe(1)
    expect(subjects[0]).toMatch(/^usr_/)
  },
)

test('the page says that the settings were not run, and so does each file that can have a comment', async () => {
  const page = await readFromRoot('docs/identity-providers.md')
  expect(page).toMatch(/^None of these settings was run\./m)
  for (const name of settings) {
    expect(page).toContain(`](../examples/oidc/${name})`)
    if (!name.endsWith('.json')) expect(await read(name)).toContain('Not run: ')
  }
})

test('what the settings of all applications name is where the issuer says', async () => {
  const { url } = await startIssuer(clients)
  const found = await (await fetch(`${url}/.well-known/openid-configuration`)).json()
  const files = globSync('**/*.*', { cwd: join(root, 'examples/oidc') })
  const text = (await Promise.all(files.map(read))).join('\n')
  const named = new Set(
    [...text.matchAll(/https:\/\/auth\.example(\/api\/auth\/oidc\/[\w./]+)/g)].map(([, path]) => path),
  )
  const offered = Object.values(found).filter((value) => typeof value === 'string' && value.startsWith(`${url}/`))
  for (const path of named) expect(offered).toContain(`${url}${path}`)
  expect(named.size).toBeGreaterThan(4)
})
