import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { AccessTokenError, createSessionVerifier, verifyAccessToken } from '../../src/integrations/backend/index.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import {
  Browser,
  bearer,
  connect,
  contentOf,
  decide,
  discover,
  fileWith,
  refusalOf,
  request,
  shop,
  signedIn,
} from './support.ts'

const other = { metadata: { ...shop.metadata, client_id: 'other' } }
const orders = { resource: 'https://orders.example', scopes: ['read'] }

/** One service with a user, and a token of each kind that it issues for that user. */
async function issueAll() {
  const file = fileWith({ clients: [shop, other], resources: [orders] })
  const { url } = await startService({ oidc: { clients: file }, accessTokens: { audiences: ['api'] } })
  const { browser, config, tokens, token, session } = await connect(url)
  const { json } = await rest(url, '/access-token', { audience: 'api' }, bearer(token))
  const foreign = await discover(url, other.metadata)
  const allowed = async (parameters: Record<string, string>) => {
    const { address, redeem } = await request(foreign, parameters)
    return await redeem(await decide(browser, await browser.open(address)))
  }
  const forOrders = await allowed({ scope: 'openid read', resource: orders.resource })
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair())
  const { address, redeem } = await request(config, { scope: 'openid' })
  const ofKey = await redeem((await browser.open(address)).address, { DPoP })
  const code = (await browser.open((await request(config)).address)).address.searchParams.get('code')
  const cookie = [...browser.cookies.values()].find(({ name }) => name.endsWith('countersign_session'))
  const issued = {
    'bearer token of a session': token,
    'value of the session’s cookie': cookie?.value,
    'access token of the service': json.accessToken,
    'access token of a client': tokens.access_token,
    'access token of a client for a key': ofKey.access_token,
    'access token of another client for a resource': forOrders.access_token,
    'ID token': tokens.id_token,
    'refresh token': tokens.refresh_token,
    code,
  }
  return { url, config, foreign, session, issued }
}

/** The places that take a token, each as it refuses one that is not for it. */
async function placesThatTake(token: string, { url, config, session }: Awaited<ReturnType<typeof issueAll>>) {
  const places = {
    'backend of the service’s tokens': () => verifyAccessToken(token, { issuer: url, audience: 'api' }),
    'backend of the resource': () =>
      verifyAccessToken(token, { issuer: url, audience: orders.resource, scopes: ['read'] }),
    'backend with the client as audience': () => verifyAccessToken(token, { issuer: url, audience: 'shop' }),
    'session verifier': async () => {
      if ((await createSessionVerifier({ url }).verify(token)) === undefined)
        throw Object.assign(new Error(), { status: 401 })
    },
    'session service': async () => {
      const { status } = await rest(url, '/session', undefined, bearer(token))
      if (status !== 200) throw Object.assign(new Error(), { status })
    },
    userinfo: () => client.fetchUserInfo(config, token, session.userId),
    refresh: () => client.refreshTokenGrant(config, token),
  }
  const taken: string[] = []
  for (const [place, ask] of Object.entries(places)) {
    const refusal = await refusalOf(ask())
    if (refusal === undefined) taken.push(place)
    else if (refusal instanceof AccessTokenError) expect(refusal.reason, place).toBe('TOKEN_INVALID')
    else expect([401, 'invalid_grant'], place).toContain(refusal)
  }
  return taken
}

test('a token of each kind is taken where it belongs, and another client neither looks it up nor revokes it', async () => {
  const all = await issueAll()
  const taken: Record<string, string[]> = {}
  for (const [kind, token] of Object.entries(all.issued)) {
    expect(token, kind).toEqual(expect.any(String))
    // Its own client is `other`.
    const stranger = kind.includes('another client') ? all.config : all.foreign
    expect((await client.tokenIntrospection(stranger, String(token)).catch(() => undefined))?.active, kind).not.toBe(
      true,
    )
    await client.tokenRevocation(stranger, String(token)).catch(() => {})
    taken[kind] = await placesThatTake(String(token), all)
  }
  expect(taken).toEqual({
    'bearer token of a session': ['session verifier', 'session service'],
    'value of the session’s cookie': [],
    'access token of the service': ['backend of the service’s tokens'],
    'access token of a client': ['userinfo'],
    'access token of a client for a key': [],
    'access token of another client for a resource': ['backend of the resource'],
    'ID token': [],
    'refresh token': ['refresh'],
    code: [],
  })
})

describe('the ID token of another user as a hint', () => {
  test('signs no one in, and the session that is there does not answer it', async () => {
    const file = fileWith({ clients: [{ ...shop, first_party: true }] })
    const { url } = await startService({ oidc: { clients: file } })
    const { browser, config } = await signedIn(url)
    const attacker = new Browser(url)
    await attacker.signIn()
    const own = await request(config)
    const { id_token: hint = '' } = await own.redeem((await attacker.open(own.address)).address)
    const silent = await request(config, { prompt: 'none', id_token_hint: hint })
    const { address } = await browser.open(silent.address)
    expect([address.searchParams.get('error'), address.searchParams.has('code')]).toEqual(['login_required', false])
    const asked = await browser.open((await request(config, { id_token_hint: hint })).address)
    expect(asked.address.pathname).toBe('/api/auth/sign-in')
  })

  test('signs the user out no sooner than the user says so', async () => {
    const { url } = await startService({ oidc: { clients: fileWith({ clients: [shop] }) } })
    const [{ tokens: foreign }, { browser, config, tokens, session }] = [await connect(url), await connect(url)]
    const page = await browser.open(client.buildEndSessionUrl(config, { id_token_hint: foreign.id_token ?? '' }).href)
    expect(contentOf(page.text).kind).toMatch(/logout|error/)
    expect(await client.fetchUserInfo(config, tokens.access_token, session.userId)).toMatchObject({
      sub: session.userId,
    })
  })
})
