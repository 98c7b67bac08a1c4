import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { Browser, contentOf, decide, discover, redirectUri, request, startIssuer } from './support.ts'

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
    client: 'Tulip Shop',
    host: 'shop.example',
    scopes: ['openid', 'profile', 'wallet'],
    wallet: wallet.address,
    sessionId: session.id,
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
