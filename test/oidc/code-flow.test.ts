import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { Browser, contentOf, decide, discover, redirectUri, refusalOf, request, shop, startIssuer } from './support.ts'

test('signs a user in at a client: sign-in page, consent, code, tokens, userinfo, refresh', async () => {
  const { url } = await startIssuer()
  const config = await discover(url)
  const browser = new Browser(url)
  const { address, redeem } = await request(config)

  const signIn = await browser.open(address)
  expect(signIn.address.pathname).toBe('/api/auth/sign-in')
  const returnTo = signIn.address.searchParams.get('returnTo') ?? ''
  const { session, wallet } = await browser.signIn()

  const page = await browser.open(returnTo)
  expect(contentOf(page.text)).toEqual({
    kind: 'consent',
    scopeWords: {},
    client: { name: 'Tulip Shop', home: 'https://shop.example' },
    host: 'shop.example',
    scopes: ['openid', 'profile', 'wallet'],
    wallet: { adapterId: 'nimiq', address: wallet.address },
    sessionId: session.id,
    signIn: `/api/auth/sign-in?${new URLSearchParams({ returnTo: `${page.address.pathname}?back=1`, again: '1' })}`,
  })
  const answer = await decide(browser, page)
  expect(answer.origin + answer.pathname).toBe(redirectUri)

  const tokens = await redeem(answer)
  const claims = tokens.claims()
  const name = wallet.address.replaceAll(' ', '')
  const own = { adapter_id: 'nimiq', address: wallet.address, public_key_hex: wallet.publicKeyHex }
  expect(claims).toMatchObject({ sub: session.userId, name, preferred_username: name, wallets: [own], amr: ['swk'] })
  expect(await client.fetchUserInfo(config, tokens.access_token, session.userId)).toMatchObject({
    name,
    wallets: [own],
  })

  const second = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
  expect(second.refresh_token).not.toBe(tokens.refresh_token)
  expect(await client.fetchUserInfo(config, second.access_token, session.userId)).toMatchObject({ name })

  // Once more, without a question.
  const again = await request(config)
  expect((await again.redeem((await browser.open(again.address)).address)).claims()?.sub).toBe(session.userId)
})

test('openid-client with a wrong clock pushes its request, binds its tokens to a key, looks up and signs out', async () => {
  const { url } = await startIssuer()
  const browser = new Browser(url)
  const { session } = await browser.signIn()
  const config = await client.discovery(
    new URL(url),
    shop.metadata.client_id,
    { [client.clockSkew]: -3600 },
    client.ClientSecretBasic(shop.metadata.client_secret),
    { execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks] },
  )
  // The library sends a proof once more by itself if it is told a nonce.
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair())
  const { address, redeem } = await request(config, { scope: 'openid' })
  const pushed = await client.buildAuthorizationUrlWithPAR(config, new URL(address).searchParams, { DPoP })
  const answer = await decide(browser, await browser.open(pushed.href))
  const first = await redeem(answer, { DPoP })
  const tokens = await client.refreshTokenGrant(config, first.refresh_token ?? '', undefined, { DPoP })
  expect(tokens.token_type).toBe('dpop')

  const userinfo = (options?: client.DPoPOptions) =>
    client.fetchUserInfo(config, tokens.access_token, session.userId, options)
  expect(await userinfo({ DPoP })).toMatchObject({ sub: session.userId })
  expect(await refusalOf(userinfo())).toBe(401)
  const cnf = { jkt: await DPoP.calculateThumbprint() }
  expect(await client.tokenIntrospection(config, tokens.access_token)).toMatchObject({ active: true, cnf })

  const page = await browser.open(client.buildEndSessionUrl(config, { id_token_hint: tokens.id_token ?? '' }).href)
  await browser.post(page.address.pathname, { ticket: contentOf(page.text).ticket })
  const refresh = client.refreshTokenGrant(config, tokens.refresh_token ?? '', undefined, { DPoP })
  expect(await refusalOf(refresh)).toBe('invalid_grant')
})

test('an address on loopback without a path is taken in both spellings, with any port for an application on the device', async () => {
  const metadata = { ...shop.metadata, application_type: 'native', redirect_uris: ['http://127.0.0.1'] }
  const { url } = await startIssuer([{ metadata }])
  const config = await discover(url, metadata)
  const browser = await Browser.signedIn(url)
  for (const redirect_uri of ['http://127.0.0.1', 'http://127.0.0.1/', 'http://127.0.0.1:5000/']) {
    const { address } = await request(config, { redirect_uri })
    const answer = await decide(browser, await browser.open(address))
    expect([answer.origin, answer.searchParams.has('code')]).toEqual([new URL(redirect_uri).origin, true])
  }
  const { address } = await request(config, { redirect_uri: 'http://127.0.0.1/elsewhere' })
  expect(contentOf((await browser.open(address)).text).kind).toBe('error')
})
